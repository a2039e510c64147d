/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/lines.h"
#include "text/text.h"
#include "view/view_row.h"

static struct sp_view_rows rows_of(FILE *out, const struct sp_analysis *a)
{
	return (struct sp_view_rows){
		.out = out,
		.whole = sp_estimate_bytes_value(&a->how, a->whole),
		.confidence = a->how.confidence,
	};
}

static void print_entries(struct sp_view_rows *rows,
			  const struct sp_analysis *a,
			  const struct sp_stats *stats)
{
	fprintf(rows->out, "\nBy allocation function; %% %s:\n\n",
		sp_view_row_whole(a->selection.view));
	sp_view_row_head(rows, "called");
	for (unsigned int i = 0; i < stats->n_entries; i++) {
		const struct sp_class_sums *t =
			&stats->entries[stats->order[i]];

		sp_view_row_print(rows, sp_estimate_bytes(&a->how, t),
				  t->all.samples);
		fprintf(rows->out, "%s\n", sp_entry_name(stats->order[i]));
	}
}

static void print_top(struct sp_view_rows *rows,
		      const struct sp_aggregate *aggregate, size_t n_max,
		      bool by_count)
{
	const struct sp_analysis *a = aggregate->analysis;
	size_t n = aggregate->n_functions;

	if (n_max && n_max < n)
		n = n_max;
	fprintf(rows->out, "\nMost %s, flat:\n\n",
		by_count ? "objects" : "bytes");
	sp_view_row_head(rows, by_count ? "objects in function" : "function");
	for (size_t i = 0; i < n; i++) {
		const struct sp_aggregate_function *f =
			&aggregate->functions[i];

		if (!f->flat.all.samples)
			break;
		sp_view_row_print(rows, sp_estimate_bytes(&a->how, &f->flat),
				  f->flat.all.samples);
		if (by_count) {
			sp_text_print_objects(
				rows->out,
				sp_estimate_objects(&a->how, &f->flat));
			fputs(" in ", rows->out);
		}
		sp_view_row_name(rows->out, aggregate->granularity, f);
		putc('\n', rows->out);
	}
}

void sp_view_stats_print(FILE *out, struct sp_aggregate *aggregate,
			 const struct sp_stats *stats, size_t n_max)
{
	struct sp_view_rows rows = rows_of(out, aggregate->analysis);

	if (!stats->n_entries)
		return;
	print_entries(&rows, aggregate->analysis, stats);
	sp_aggregate_sort(aggregate, SP_AGGREGATE_BY_FLAT);
	print_top(&rows, aggregate, n_max, false);
	sp_aggregate_sort(aggregate, SP_AGGREGATE_BY_COUNT);
	print_top(&rows, aggregate, n_max, true);
	sp_view_row_legend(&rows);
}

static void print_thread(struct sp_view_rows *rows, const struct sp_analysis *a,
			 size_t i)
{
	const struct sp_thread_info *t = &a->profile->thread_infos[i];
	const struct sp_class_sums *sums = &a->view->threads[i];
	char name[SP_FORMAT_THREAD_NAME_MAX + 1] = "";

	memcpy(name, t->name, sizeof(t->name));
	sp_view_row_print(rows, sp_estimate_bytes(&a->how, sums),
			  sums->all.samples);
	fprintf(rows->out, "%12s  %6" PRIu32 "  ",
		t->has_totals ? sp_text_bytes((double)t->exact_alloc_bytes).text
			      : "-",
		t->index);
	if (*name)
		sp_lines_print_name(rows->out, name);
	fprintf(rows->out, "%s(tid %" PRIu64 ")\n", *name ? " " : "", t->tid);
}

static int compare_threads(const void *a, const void *b, void *arg)
{
	const struct sp_class_sums *threads = arg;
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const double bx = threads[x].all.est_bytes;
	const double by = threads[y].all.est_bytes;

	return bx != by ? (bx < by) - (bx > by) : (x > y) - (x < y);
}

int sp_view_threads_print(FILE *out, const struct sp_analysis *a,
			  struct sp_error *err)
{
	const bool is_exact = sp_profile_is_exact(a->profile);
	const size_t n = a->profile->n_thread_infos;
	struct sp_view_rows rows = rows_of(out, a);
	size_t *order = calloc(n + 1, sizeof(*order));
	size_t n_shown = 0;

	if (!order)
		return sp_error_memory(err, a->profile->path);
	for (size_t i = 0; i < n; i++)
		if (a->view->threads[i].all.samples)
			order[n_shown++] = i;
	qsort_r(order, n_shown, sizeof(*order), compare_threads,
		a->view->threads);
	fprintf(out,
		"\nBy the thread that allocated; %% %s;\n%s it allocated:\n\n",
		sp_view_row_whole(a->selection.view),
		is_exact ? "exact is all that" : "all is the least that");
	sp_view_row_head(&rows, is_exact ? "       exact  thread"
					 : "         all  thread");
	for (size_t i = 0; i < n_shown; i++)
		print_thread(&rows, a, order[i]);
	if (n_shown < n)
		fprintf(out, "  and %s thread%s without a sample\n",
			sp_text_count(n - n_shown).text,
			sp_text_plural(n - n_shown));
	sp_view_row_legend(&rows);
	free(order);
	return 0;
}
