/* SPDX-License-Identifier: MIT */
#include "report/view_top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

enum column {
	FLAT,
	FLAT_SHARE,
	SUM_SHARE,
	CUM,
	CUM_SHARE,
	FLAT_INTERVAL,
	CUM_INTERVAL,
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
	[FLAT_INTERVAL] = {"flat"},
	[CUM_INTERVAL] = {"cum"},
	[FLAT_SAMPLES] = {"flat"},
	[CUM_SAMPLES] = {"cum"},
}};

/* What a run of columns has in common; stands above the head. */
static const struct {
	enum column first;
	enum column last;
	const char *title;
} groups[] = {
	{FLAT, CUM_SHARE, "estimated bytes"},
	{FLAT_INTERVAL, CUM_INTERVAL, SP_REPORT_CONFIDENCE_TEXT " interval"},
	{FLAT_SAMPLES, CUM_SAMPLES, "samples"},
};

#define COLUMN_GAP 2

struct table {
	const struct sp_aggregate *aggregate;
	struct row *rows;
	size_t n_rows;
	int widths[N_COLUMNS];
	bool has_few;
};

static void fill_estimate(struct table *table, const struct sp_acc *acc,
			  struct sp_text_cell *ret_point,
			  struct sp_text_cell *ret_interval)
{
	struct sp_interval bytes = sp_estimate_bytes(acc, SP_REPORT_CONFIDENCE);

	*ret_point = sp_text_point(bytes, acc->samples);
	*ret_interval = sp_text_interval(bytes);
	table->has_few |= ret_point->text[0] == '~';
}

static void fill_row(struct table *table, struct row *row,
		     const struct sp_aggregate_function *f, double running)
{
	double total = table->aggregate->profile->acc.est_bytes;
	struct sp_text_cell *c = row->cells;

	fill_estimate(table, &f->flat, &c[FLAT], &c[FLAT_INTERVAL]);
	fill_estimate(table, &f->cum, &c[CUM], &c[CUM_INTERVAL]);
	c[FLAT_SHARE] = sp_text_percent(f->flat.est_bytes, total);
	c[SUM_SHARE] = sp_text_percent(running, total);
	c[CUM_SHARE] = sp_text_percent(f->cum.est_bytes, total);
	c[FLAT_SAMPLES] = sp_text_count(f->flat.samples);
	c[CUM_SAMPLES] = sp_text_count(f->cum.samples);
}

static void widen(struct table *table, const struct row *row)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		int n = (int)strlen(row->cells[i].text);

		if (n > table->widths[i])
			table->widths[i] = n;
	}
}

static void print_groups(FILE *out, const struct table *table)
{
	int blanks = 0; /* not yet written: none may end the line */

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		int title = (int)strlen(groups[i].title);
		int width = -COLUMN_GAP;
		int left;

		for (int k = (int)groups[i].first; k <= (int)groups[i].last;
		     k++)
			width += table->widths[k] + COLUMN_GAP;
		left = title < width ? (width - title) / 2 : 0;
		fprintf(out, "%*s%s", blanks + COLUMN_GAP + left, "",
			groups[i].title);
		blanks = width - left - title;
	}
	putc('\n', out);
}

static void print_row(FILE *out, const struct table *table,
		      const struct row *row)
{
	for (int i = 0; i < N_COLUMNS; i++)
		fprintf(out, "%*s%*s", COLUMN_GAP, "", table->widths[i],
			row->cells[i].text);
}

static void print_name(FILE *out, const struct sp_aggregate_function *f)
{
	fprintf(out, "%*s", COLUMN_GAP, "");
	sp_text_print(out, f->name);
	if (*f->module) {
		fputs("  (", out);
		sp_text_print(out, sp_text_base_name(f->module));
		putc(')', out);
	}
	putc('\n', out);
}

static void print_rest(FILE *out, const struct table *table)
{
	const struct sp_aggregate *a = table->aggregate;
	size_t n_others = a->n_functions - table->n_rows;
	struct sp_acc others;

	if (!n_others)
		return;
	sp_acc_init(&others, a->profile->period_bytes);
	for (size_t i = table->n_rows; i < a->n_functions; i++)
		sp_acc_merge(&others, &a->functions[i].flat);
	fprintf(out,
		"%*sand %s (%s) flat in %s other function%s; --top 0 shows "
		"all\n",
		COLUMN_GAP, "", sp_text_bytes(others.est_bytes).text,
		sp_text_percent(others.est_bytes, a->profile->acc.est_bytes)
			.text,
		sp_text_count(n_others).text, n_others == 1 ? "" : "s");
}

static void fill(struct table *table)
{
	const struct sp_aggregate_function *f = table->aggregate->functions;
	double running = 0;

	widen(table, &head);
	for (size_t i = 0; i < table->n_rows; i++) {
		running += f[i].flat.est_bytes;
		fill_row(table, &table->rows[i], &f[i], running);
		widen(table, &table->rows[i]);
	}
}

int sp_view_top_print(FILE *out, const struct sp_aggregate *aggregate,
		      size_t n_max, struct sp_error *err)
{
	struct table table = {.aggregate = aggregate,
			      .n_rows = aggregate->n_functions};

	if (!table.n_rows)
		return 0;
	if (n_max && n_max < table.n_rows)
		table.n_rows = n_max;
	table.rows = calloc(table.n_rows, sizeof(*table.rows));
	if (!table.rows)
		return sp_error_set(err, -ENOMEM, aggregate->profile->path,
				    "not enough memory for a table of %zu "
				    "functions",
				    table.n_rows);
	fill(&table);

	fprintf(out,
		"\nShowing %s of %s functions; %% of the estimated "
		"total:\n\n",
		sp_text_count(table.n_rows).text,
		sp_text_count(aggregate->n_functions).text);
	print_groups(out, &table);
	print_row(out, &table, &head);
	fprintf(out, "%*sfunction\n", COLUMN_GAP, "");
	for (size_t i = 0; i < table.n_rows; i++) {
		print_row(out, &table, &table.rows[i]);
		print_name(out, &aggregate->functions[i]);
	}
	print_rest(out, &table);
	if (table.has_few)
		fprintf(out,
			"%*s~ from %d samples or fewer: read the interval\n",
			COLUMN_GAP, "", SP_TEXT_FEW_SAMPLES);
	free(table.rows);
	return 0;
}
