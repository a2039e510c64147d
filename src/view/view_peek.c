/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include "report/edges.h"
#include "text/text.h"
#include "view/view_row.h"

struct peek {
	struct sp_view_rows rows;
	const struct sp_aggregate *aggregate;
	double least; /* bytes of an edge that is shown */
};

static void print_name(const struct peek *peek,
		       const struct sp_aggregate_function *f)
{
	sp_view_row_name(peek->rows.out, peek->aggregate->granularity, f);
	putc('\n', peek->rows.out);
}

/* All that are too small to be shown, in one line. */
static int print_others(struct peek *peek, const struct sp_edge *edges,
			size_t n)
{
	const struct sp_aggregate *a = peek->aggregate;
	struct sp_class_sums sum;
	int r = 0;

	sp_class_sums_init(&sum, a->analysis->profile->period_bytes);
	for (size_t i = 0; i < n && !r; i++)
		r = sp_class_sums_merge(&sum, &edges[i].sums);
	if (!r) {
		sp_view_row_print(&peek->rows, sp_estimate_bytes(&a->how, &sum),
				  sum.all.samples);
		fprintf(peek->rows.out, "    and %s other place%s\n",
			sp_text_count(n).text, sp_text_plural(n));
	}
	sp_class_sums_free(&sum);
	return r;
}

/* Largest first, so that the small ones are the last. */
static int print_edges(struct peek *peek, const struct sp_edge *edges, size_t n,
		       const char *nobody)
{
	size_t n_shown = 0;

	while (n_shown < n && edges[n_shown].bytes >= peek->least)
		n_shown++;
	for (size_t i = 0; i < n_shown; i++) {
		const struct sp_edge *e = &edges[i];

		sp_view_row_print(
			&peek->rows,
			sp_estimate_bytes(&peek->aggregate->how, &e->sums),
			e->sums.all.samples);
		fputs("    ", peek->rows.out);
		if (e->row == SP_EDGE_NOBODY)
			fprintf(peek->rows.out, "%s\n", nobody);
		else
			print_name(peek,
				   sp_aggregate_at(peek->aggregate, e->row));
	}
	return n_shown < n ? print_others(peek, edges + n_shown, n - n_shown)
			   : 0;
}

static int print_function(struct peek *peek, const struct sp_edges *e)
{
	const struct sp_estimation *how = &peek->aggregate->how;
	const struct sp_class_sums *cum = &e->function->cum;
	int r;

	putc('\n', peek->rows.out);
	r = print_edges(peek, e->callers, e->n_callers, "[no caller]");
	if (r < 0)
		return r;
	sp_view_row_print(&peek->rows, sp_estimate_bytes(how, cum),
			  cum->all.samples);
	fputs("* ", peek->rows.out);
	print_name(peek, e->function);
	return print_edges(peek, e->callees, e->n_callees, "itself");
}

int sp_view_peek_print(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, double share,
		       struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	const double whole = sp_estimate_bytes_value(&a->how, a->whole);
	struct peek peek = {
		.rows = {.out = out,
			 .whole = whole,
			 .confidence = aggregate->how.confidence},
		.aggregate = aggregate,
		.least = share * whole,
	};
	int r = 0;

	fprintf(out,
		"\n%s %s: callers above the line with the star, "
		"callees below;\n%% %s",
		sp_text_count(n).text,
		sp_view_row_noun(aggregate->granularity, n),
		sp_view_row_whole(a->selection.view));
	if (share > 0)
		fprintf(out, "; places below %s are summed up",
			sp_text_percent(share, 1).text);
	fputs(":\n\n", out);
	sp_view_row_head(&peek.rows,
			 sp_view_row_noun(aggregate->granularity, 1));
	for (size_t i = 0; i < n && !r; i++)
		r = print_function(&peek, &edges[i]);
	sp_view_row_legend(&peek.rows);
	return r < 0 ? sp_error_memory(err, a->profile->path) : 0;
}
