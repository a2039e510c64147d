/* SPDX-License-Identifier: MIT */
#include "view/view_top.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"
#include "view/view_row.h"

enum column {
	FLAT,
	FLAT_SHARE,
	SUM_SHARE,
	CUM,
	CUM_SHARE,
	OBJECTS,
	FLAT_SAMPLES,
	CUM_SAMPLES,
	N_COLUMNS
};

struct row {
	struct sp_text_cell cells[N_COLUMNS];
};

static const struct row head = {{
	[FLAT] = {"flat"},
	[FLAT_SHARE] = {"flat%"},
	[SUM_SHARE] = {"sum%"},
	[CUM] = {"cum"},
	[CUM_SHARE] = {"cum%"},
	[OBJECTS] = {"flat"},
	[FLAT_SAMPLES] = {"flat"},
	[CUM_SAMPLES] = {"cum"},
}};

#define COLUMN_GAP 2

/* What a narrow screen goes without, the first of them first, so that this
 * much of a function's name can be seen. */
static const enum column dispensable[] = {SUM_SHARE, CUM_SAMPLES, FLAT_SAMPLES,
					  CUM, CUM_SHARE};
#define NAME_MIN 20

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
	bool has_bound;
};

static struct sp_text_estimate estimate(const struct table *table,
					const struct sp_tally *tally)
{
	return sp_text_estimate(
		sp_estimate_bytes(&table->aggregate->how, tally),
		tally->all.samples);
}

static void widen_parts(struct table *table, struct part_widths *widths,
			const struct sp_tally *tally)
{
	struct sp_text_estimate e = estimate(table, tally);
	int first = (int)strlen(e.first.text);
	int second = (int)strlen(e.second.text);

	table->has_few |= e.order == SP_TEXT_INTERVAL_FIRST;
	table->has_bound |= e.order == SP_TEXT_BOUND;
	if (e.order == SP_TEXT_INTERVAL_FIRST)
		return;
	if (first > widths->first)
		widths->first = first;
	if (second > widths->second)
		widths->second = second;
}

static struct sp_text_cell join(const struct table *table,
				struct part_widths widths,
				const struct sp_tally *tally)
{
	struct sp_text_estimate e = estimate(table, tally);
	struct sp_text_cell cell;

	if (e.order == SP_TEXT_INTERVAL_FIRST)
		widths = (struct part_widths){0, 0};
	snprintf(cell.text, sizeof(cell.text), "%*.23s %*.23s", widths.first,
		 e.first.text, widths.second, e.second.text);
	return cell;
}

/* "1,200 [1,050, 1,380]" */
static struct sp_text_cell objects(const struct table *table,
				   const struct sp_tally *tally)
{
	struct sp_interval n =
		sp_estimate_objects(&table->aggregate->how, tally);
	struct sp_text_cell cell;

	if (n.lo < n.hi)
		snprintf(cell.text, sizeof(cell.text), "%.14s [%.14s, %.14s]",
			 sp_text_count(sp_text_to_count(nearbyint(n.value)))
				 .text,
			 sp_text_count(sp_text_to_count(floor(n.lo))).text,
			 sp_text_count(sp_text_to_count(ceil(n.hi))).text);
	else
		snprintf(cell.text, sizeof(cell.text), "%.14s exact",
			 sp_text_count(sp_text_to_count(n.value)).text);
	return cell;
}

static void fill_row(struct table *table, struct row *row,
		     const struct sp_aggregate_function *f, double total,
		     double running)
{
	struct sp_text_cell *c = row->cells;

	c[FLAT] = join(table, table->flat, &f->flat);
	c[CUM] = join(table, table->cum, &f->cum);
	c[FLAT_SHARE] = sp_text_percent(f->flat_bytes, total);
	c[SUM_SHARE] = sp_text_percent(running, total);
	c[CUM_SHARE] = sp_text_percent(f->cum_bytes, total);
	c[OBJECTS] = objects(table, &f->flat);
	c[FLAT_SAMPLES] = sp_text_count(f->flat.all.samples);
	c[CUM_SAMPLES] = sp_text_count(f->cum.all.samples);
}

static void widen(struct table *table, const struct row *row)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		int n = (int)strlen(row->cells[i].text);

		if (n > table->widths[i])
			table->widths[i] = n;
	}
}

static void fill(struct table *table)
{
	const struct sp_aggregate *a = table->aggregate;
	const struct sp_aggregate_function *f = a->functions;
	const double total =
		sp_estimate_bytes(&a->how, a->analysis->whole).value;
	double running = 0;

	for (size_t i = 0; i < table->n_rows; i++) {
		widen_parts(table, &table->flat, &f[i].flat);
		widen_parts(table, &table->cum, &f[i].cum);
	}
	widen(table, &head);
	for (size_t i = 0; i < table->n_rows; i++) {
		running += f[i].flat_bytes;
		fill_row(table, &table->rows[i], &f[i], total, running);
		widen(table, &table->rows[i]);
	}
}

static int width_of(const struct table *table, enum column first,
		    enum column last)
{
	int width = 0;

	for (int i = (int)first; i <= (int)last; i++)
		if (!table->is_hidden[i])
			width += table->widths[i] + COLUMN_GAP;
	return width;
}

static void narrow(struct table *table, unsigned int columns)
{
	const size_t n = sizeof(dispensable) / sizeof(dispensable[0]);

	for (size_t i = 0; columns && i < n; i++) {
		if (width_of(table, 0, N_COLUMNS - 1) + COLUMN_GAP + NAME_MIN <=
		    (int)columns)
			return;
		table->is_hidden[dispensable[i]] = true;
	}
}

/* What a run of columns has in common, above the head. */
static void print_group(FILE *out, const struct table *table, enum column first,
			enum column last, const char *title, int *blanks)
{
	int length = (int)strlen(title);
	int width = width_of(table, first, last) - COLUMN_GAP;
	int left;

	if (width < 0)
		return;
	left = length < width ? (width - length) / 2 : 0;
	fprintf(out, "%*s%s", *blanks + COLUMN_GAP + left, "", title);
	*blanks = width - left - length;
}

static void print_groups(FILE *out, const struct table *table)
{
	int blanks = 0; /* not yet written: none may end the line */
	char title[96];

	snprintf(title, sizeof(title), "estimated bytes [%s interval]",
		 sp_text_level(table->aggregate->how.confidence).text);
	print_group(out, table, FLAT, CUM_SHARE, title, &blanks);
	print_group(out, table, OBJECTS, OBJECTS, "objects", &blanks);
	print_group(out, table, FLAT_SAMPLES, CUM_SAMPLES, "samples", &blanks);
	putc('\n', out);
}

static void print_row(FILE *out, const struct table *table,
		      const struct row *row)
{
	for (int i = 0; i < N_COLUMNS; i++)
		if (!table->is_hidden[i])
			fprintf(out, "%*s%*s", COLUMN_GAP, "", table->widths[i],
				row->cells[i].text);
}

/* So that flat adds up to the view. */
static void print_rest(FILE *out, const struct table *table)
{
	const struct sp_aggregate *a = table->aggregate;
	const size_t n_all = a->n_functions + a->n_dropped;
	const size_t n_others = n_all - table->n_rows;
	double others = 0;

	if (!n_others)
		return;
	for (size_t i = table->n_rows; i < n_all; i++)
		others += a->functions[i].flat_bytes;
	fprintf(out, "%*sand %s (%s) flat in %s other %s; %s%s%s all\n",
		COLUMN_GAP, "", sp_text_bytes(others).text,
		sp_text_percent(
			others,
			sp_estimate_bytes(&a->how, a->analysis->whole).value)
			.text,
		sp_text_count(n_others).text,
		sp_view_row_noun(a->granularity, n_others),
		a->n_dropped ? "--nodefraction 0" : "",
		a->n_dropped && table->n_rows < a->n_functions ? " " : "",
		table->n_rows == a->n_functions ? " shows"
		: a->n_dropped                  ? "--top 0 show"
						: "--top 0 shows");
}

static void print_title(FILE *out, const struct table *table)
{
	const struct sp_aggregate *a = table->aggregate;
	const size_t n_all = a->n_functions + a->n_dropped;

	fprintf(out, "\nShowing %s of %s %s", sp_text_count(table->n_rows).text,
		sp_text_count(n_all).text,
		sp_view_row_noun(a->granularity, n_all));
	if (a->n_dropped)
		fprintf(out, ", dropped %s below %s",
			sp_text_count(a->n_dropped).text,
			sp_text_percent(a->dropped_share, 1).text);
	fprintf(out, "; %% %s:\n\n",
		sp_view_row_whole(a->analysis->selection.view));
}

int sp_view_top_print(FILE *out, const struct sp_aggregate *aggregate,
		      size_t n_max, unsigned int columns, struct sp_error *err)
{
	struct table table = {.aggregate = aggregate,
			      .n_rows = aggregate->n_functions};
	const struct sp_analysis *analysis = aggregate->analysis;

	if (!table.n_rows)
		return 0;
	if (n_max && n_max < table.n_rows)
		table.n_rows = n_max;
	table.rows = calloc(table.n_rows, sizeof(*table.rows));
	if (!table.rows)
		return sp_error_set(err, -ENOMEM, analysis->profile->path,
				    "not enough memory for a table of %zu "
				    "functions",
				    table.n_rows);
	table.is_hidden[OBJECTS] = aggregate->order != SP_AGGREGATE_BY_COUNT;
	fill(&table);
	narrow(&table, columns);

	print_title(out, &table);
	print_groups(out, &table);
	print_row(out, &table, &head);
	fprintf(out, "%*s%s\n", COLUMN_GAP, "",
		sp_view_row_noun(aggregate->granularity, 1));
	for (size_t i = 0; i < table.n_rows; i++) {
		print_row(out, &table, &table.rows[i]);
		fprintf(out, "%*s", COLUMN_GAP, "");
		sp_view_row_name(out, aggregate->granularity,
				 &aggregate->functions[i]);
		putc('\n', out);
	}
	print_rest(out, &table);
	sp_text_print_legend(out, table.has_few, table.has_bound,
			     aggregate->how.confidence);
	free(table.rows);
	return 0;
}
