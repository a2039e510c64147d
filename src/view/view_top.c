/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/style.h"
#include "text/text.h"
#include "view/view_row.h"

enum column {
	OBJECTS,
	FLAT,
	FLAT_SHARE,
	SUM_SHARE,
	CUM,
	CUM_SHARE,
	BYTES,
	FLAT_SAMPLES,
	CUM_SAMPLES,
	BAR,
	N_COLUMNS
};

struct row {
	struct sp_text_cell cells[N_COLUMNS];
	double share; /* of the view, for the column of the order */
};

static const struct row head = {.cells = {
					[FLAT] = {"flat"},
					[FLAT_SHARE] = {"flat%"},
					[SUM_SHARE] = {"sum%"},
					[CUM] = {"cum"},
					[CUM_SHARE] = {"cum%"},
					[OBJECTS] = {"objects"},
					[BYTES] = {"bytes"},
					[FLAT_SAMPLES] = {"samples"},
					[CUM_SAMPLES] = {"of cum"},
					[BAR] = {""},
				}};

#define COLUMN_GAP 2

/* The columns that a narrow screen leaves out, in this order, until so much of
 * a function's name can be seen.  The column of the order stays. */
#define NAME_MIN      34
#define N_DISPENSABLE 7

static const enum column dispensable[][N_DISPENSABLE] = {
	[SP_AGGREGATE_BY_FLAT] = {SUM_SHARE, CUM_SAMPLES, FLAT_SAMPLES, CUM,
				  BAR, CUM_SHARE, FLAT_SHARE},
	[SP_AGGREGATE_BY_CUM] = {SUM_SHARE, CUM_SAMPLES, FLAT_SAMPLES, FLAT,
				 BAR, FLAT_SHARE, CUM_SHARE},
	[SP_AGGREGATE_BY_COUNT] = {SUM_SHARE, CUM_SAMPLES, FLAT_SAMPLES, BYTES,
				   BAR, CUM_SHARE, FLAT_SHARE},
	[SP_AGGREGATE_BY_NAME] = {SUM_SHARE, CUM_SAMPLES, FLAT_SAMPLES, CUM,
				  BAR, CUM_SHARE, FLAT_SHARE},
};

/* Of the points and of the intervals in a column of estimates, so that they
 * stand below each other. */
struct part_widths {
	int first;
	int second;
};

struct table {
	const struct sp_aggregate *aggregate;
	struct row *rows;
	size_t n_rows;
	int widths[N_COLUMNS];
	bool is_hidden[N_COLUMNS];
	struct part_widths flat;
	struct part_widths cum;
	bool has_few;
	bool by_count; /* shares are of objects */
	double whole;
};

static double flat_of(const struct table *table,
		      const struct sp_aggregate_function *f)
{
	return table->by_count ? f->flat_objects : f->flat_bytes;
}

static double cum_of(const struct table *table,
		     const struct sp_aggregate_function *f)
{
	return table->by_count ? f->cum_objects : f->cum_bytes;
}

static struct sp_text_estimate estimate_cell(const struct table *table,
					     const struct sp_class_sums *sums)
{
	return sp_text_estimate(sp_estimate_bytes(&table->aggregate->how, sums),
				sums->all.samples);
}

static void widen_parts(struct table *table, struct part_widths *widths,
			const struct sp_class_sums *sums)
{
	struct sp_text_estimate e = estimate_cell(table, sums);
	int first = (int)strlen(e.first.text);
	int second = (int)strlen(e.second.text);

	table->has_few |= e.order == SP_TEXT_INTERVAL_FIRST;
	if (e.order != SP_TEXT_POINT_FIRST)
		return;
	if (first > widths->first)
		widths->first = first;
	if (second > widths->second)
		widths->second = second;
}

static struct sp_text_cell join_cell(const struct table *table,
				     struct part_widths widths,
				     const struct sp_class_sums *sums)
{
	struct sp_text_estimate e = estimate_cell(table, sums);
	struct sp_text_cell cell = {"."};

	if (!sums->all.samples)
		return cell;
	if (e.order == SP_TEXT_INTERVAL_FIRST)
		widths = (struct part_widths){0, 0};
	snprintf(cell.text, sizeof(cell.text), "%*.23s", widths.first,
		 e.first.text);
	if (widths.second || *e.second.text)
		snprintf(cell.text, sizeof(cell.text), "%*.23s %*.23s",
			 widths.first, e.first.text, widths.second,
			 e.second.text);
	return cell;
}

static struct sp_text_cell objects_cell(const struct table *table,
					const struct sp_class_sums *sums)
{
	return sp_text_objects_cell(
		sp_estimate_objects(&table->aggregate->how, sums));
}

static void fill_row(struct table *table, struct row *row,
		     const struct sp_aggregate_function *f, double running)
{
	const bool by_cum = table->aggregate->order == SP_AGGREGATE_BY_CUM;
	const double whole = table->whole;
	const double flat = flat_of(table, f), cum = cum_of(table, f);
	struct sp_text_cell *c = row->cells;

	row->share = whole > 0 ? (by_cum ? cum : flat) / whole : 0;
	c[FLAT] = c[BYTES] = join_cell(table, table->flat, &f->flat);
	c[CUM] = join_cell(table, table->cum, &f->cum);
	c[FLAT_SHARE] = sp_text_percent(flat, whole);
	c[SUM_SHARE] = sp_text_percent(running, whole);
	c[CUM_SHARE] = sp_text_percent(cum, whole);
	c[OBJECTS] = objects_cell(table, &f->flat);
	c[FLAT_SAMPLES] = sp_text_count(f->flat.all.samples);
	c[CUM_SAMPLES] = sp_text_count(f->cum.all.samples);
}

static void widen_columns(struct table *table, const struct row *row)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		int n = (int)strlen(row->cells[i].text);

		if (n > table->widths[i])
			table->widths[i] = n;
	}
	table->widths[BAR] = SP_STYLE_BAR_COLUMNS;
}

static void fill_table(struct table *table)
{
	const struct sp_aggregate *a = table->aggregate;
	const struct sp_aggregate_function *f = a->functions;
	double running = 0;

	for (size_t i = 0; i < table->n_rows; i++) {
		widen_parts(table, &table->flat, &f[i].flat);
		widen_parts(table, &table->cum, &f[i].cum);
	}
	widen_columns(table, &head);
	for (size_t i = 0; i < table->n_rows; i++) {
		running += flat_of(table, &f[i]);
		fill_row(table, &table->rows[i], &f[i], running);
		widen_columns(table, &table->rows[i]);
	}
}

static int width_of(const struct table *table)
{
	int width = 0;

	for (int i = 0; i < N_COLUMNS; i++)
		if (!table->is_hidden[i])
			width += table->widths[i] + COLUMN_GAP;
	return width;
}

static void narrow_columns(struct table *table, unsigned int columns)
{
	const enum column *next = dispensable[table->aggregate->order];

	for (size_t i = 0; columns && i < N_DISPENSABLE; i++) {
		if (width_of(table) + COLUMN_GAP + NAME_MIN <= (int)columns)
			return;
		table->is_hidden[next[i]] = true;
	}
}

static void print_row(FILE *out, const struct table *table,
		      const struct row *row)
{
	const enum column ordered =
		table->aggregate->order == SP_AGGREGATE_BY_CUM ? CUM_SHARE
							       : FLAT_SHARE;

	for (int i = 0; i < BAR; i++) {
		if (table->is_hidden[i])
			continue;
		fprintf(out, "%*s", COLUMN_GAP, "");
		if (i == (int)ordered && row != &head)
			sp_style_begin_share(out, row->share);
		fprintf(out, "%*s", table->widths[i], row->cells[i].text);
		if (i == (int)ordered && row != &head)
			sp_style_begin(out, SP_STYLE_PLAIN);
	}
	if (!table->is_hidden[BAR]) {
		fprintf(out, "%*s", COLUMN_GAP, "");
		sp_style_print_bar(out, row->share);
	}
	fprintf(out, "%*s", COLUMN_GAP, "");
}

static struct sp_text_cell amount(const struct table *table, double amount)
{
	const uint64_t n = (uint64_t)llround(amount);
	struct sp_text_cell cell;

	if (!table->by_count)
		return sp_text_bytes(amount);
	snprintf(cell.text, sizeof(cell.text), "%.40s object%s",
		 sp_text_count(n).text, n == 1 ? "" : "s");
	return cell;
}

/* So that flat adds up to the view: first the other functions with flat bytes,
 * then those that only call. */
static void print_rest(FILE *out, const struct table *table)
{
	const struct sp_aggregate *a = table->aggregate;
	size_t n_flat = 0, n_callers = 0, n_hidden = 0, n_foreign = 0;
	double others = 0;

	for (size_t i = table->n_rows; i < a->n_functions + a->n_dropped; i++) {
		const bool has_flat = a->functions[i].flat.all.samples;

		n_flat += has_flat;
		if (!has_flat)
			*(a->functions[i].is_own ? &n_callers : &n_foreign) +=
				1;
		n_hidden += has_flat && i >= a->n_functions;
		others += flat_of(table, &a->functions[i]);
	}
	if (n_flat)
		fprintf(out, "%*sand %s (%s) flat in %s other %s: see %s%s%s\n",
			COLUMN_GAP, "", amount(table, others).text,
			sp_text_percent(others, table->whole).text,
			sp_text_count(n_flat).text,
			sp_view_row_noun(a->granularity, n_flat),
			n_hidden ? "--nodefraction 0" : "",
			n_hidden && n_hidden < n_flat ? " " : "",
			n_hidden < n_flat ? "--top 0" : "");
	if (n_callers)
		fprintf(out,
			"%*sand %s %s that only call%s others: see --cum%s\n",
			COLUMN_GAP, "", sp_text_count(n_callers).text,
			sp_view_row_noun(a->granularity, n_callers),
			n_callers == 1 ? "s" : "",
			a->order == SP_AGGREGATE_BY_CUM ? " --top 0" : "");
	if (n_foreign && a->order == SP_AGGREGATE_BY_CUM)
		fprintf(out, "%*sand %s of libraries: see --all-frames\n",
			COLUMN_GAP, "", sp_text_count(n_foreign).text);
}

size_t sp_view_top_rows(const struct sp_aggregate *aggregate, size_t n_max)
{
	const bool by_flat = aggregate->order == SP_AGGREGATE_BY_FLAT ||
			     aggregate->order == SP_AGGREGATE_BY_COUNT;
	size_t n = 0;

	while (n < aggregate->n_functions && (!n_max || n < n_max) &&
	       !(by_flat && !aggregate->functions[n].flat.all.samples))
		n++;
	return n;
}

static void print_head(FILE *out, const struct table *table)
{
	putc('\n', out);
	sp_style_begin(out, SP_STYLE_HEAD);
	print_row(out, table, &head);
	fputs(sp_view_row_noun(table->aggregate->granularity, 1), out);
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc('\n', out);
}

int sp_view_top_print(FILE *out, const struct sp_aggregate *aggregate,
		      size_t n_max, unsigned int columns, bool has_bars,
		      struct sp_error *err)
{
	struct table table = {
		.aggregate = aggregate,
		.n_rows = sp_view_top_rows(aggregate, n_max),
		.by_count = aggregate->order == SP_AGGREGATE_BY_COUNT,
		.whole = sp_aggregate_whole(aggregate),
	};

	if (!aggregate->n_functions)
		return 0;
	table.rows = calloc(table.n_rows + 1, sizeof(*table.rows));
	if (!table.rows)
		return sp_error_memory(err, aggregate->analysis->profile->path);
	table.is_hidden[FLAT] = table.is_hidden[CUM] = table.by_count;
	table.is_hidden[OBJECTS] = table.is_hidden[BYTES] = !table.by_count;
	table.is_hidden[BAR] = !has_bars;
	fill_table(&table);
	narrow_columns(&table, columns);

	print_head(out, &table);
	for (size_t i = 0; i < table.n_rows; i++) {
		print_row(out, &table, &table.rows[i]);
		sp_view_row_name(out, aggregate->granularity,
				 &aggregate->functions[i]);
		putc('\n', out);
	}
	print_rest(out, &table);
	sp_text_print_legend(out, table.has_few, false,
			     aggregate->how.confidence);
	free(table.rows);
	return 0;
}
