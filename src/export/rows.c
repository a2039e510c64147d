/* SPDX-License-Identifier: MIT */
#include "export/rows.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/order.h"
#include "stats/adjust.h"

SP_ORDER(compare_items, struct sp_alike,
	 SP_UP(one->stack) || SP_UP(one->size_bytes) || SP_UP(one->id));

static bool is_same_row(const struct sp_alike *a, const struct sp_alike *b)
{
	return a->one->stack == b->one->stack &&
	       a->one->size_bytes == b->one->size_bytes;
}

/* The samples that a row counts as allocated, and as alive. */
static void select_both(const struct sp_analysis *a, struct sp_selection *alloc,
			struct sp_selection *inuse)
{
	*alloc = *inuse = a->selection;
	alloc->has_survivors = true;
	if (a->selection.view != SP_VIEW_TEMPORARY)
		alloc->view = SP_VIEW_ALLOC;
	if (a->selection.view == SP_VIEW_ALLOC) {
		inuse->view = SP_VIEW_LIVE;
		inuse->at_ns = a->live_at_ns;
	}
}

static void add_item(const struct sp_analysis *a, struct sp_row *row,
		     const struct sp_selection *inuse,
		     const struct sp_alike *item)
{
	const struct sp_profile *p = a->profile;
	const struct sp_sample *s = item->one;
	struct sp_acc alive;

	sp_acc_add_many(&row->alloc, &p->law, s->size_bytes, item->samples,
			item->tail_bytes, s->period_bytes);
	/* Temporary objects were freed. */
	if (!p->has_frees || a->selection.view == SP_VIEW_TEMPORARY ||
	    !sp_selection_has(inuse, p, s))
		return;
	alive = sp_selection_terms(inuse, p, item);
	sp_acc_merge(&row->inuse, &alive);
}

/* The gains of (E46), so that rows add up to the report's figures. */
static void adjust_row(const struct sp_analysis *a,
		       const struct sp_selection *inuse, struct sp_row *row)
{
	const uint32_t class = sp_format_class(row->size_bytes);

	sp_adjust(&a->how, class, &row->alloc);
	if (!sp_selection_is_measured(inuse))
		sp_adjust(&a->how, class, &row->inuse);
}

/* Sum up the items, which are sorted; `rows` has room for all. */
static size_t sum_up(const struct sp_analysis *a,
		     const struct sp_selection *inuse,
		     const struct sp_alike *items, size_t n,
		     struct sp_row *rows)
{
	const uint64_t period_bytes = a->profile->period_bytes;
	size_t n_rows = 0;

	for (size_t i = 0; i < n; i++) {
		if (!i || !is_same_row(&items[i - 1], &items[i])) {
			struct sp_row *row = &rows[n_rows++];

			row->stack = items[i].one->stack;
			row->size_bytes = items[i].one->size_bytes;
			sp_acc_init(&row->alloc, period_bytes);
			sp_acc_init(&row->inuse, period_bytes);
		}
		add_item(a, &rows[n_rows - 1], inuse, &items[i]);
	}
	for (size_t i = 0; i < n_rows; i++)
		adjust_row(a, inuse, &rows[i]);
	return n_rows;
}

static size_t count_rows(const struct sp_alike *items, size_t n)
{
	size_t n_rows = 0;

	for (size_t i = 0; i < n; i++)
		n_rows += !i || !is_same_row(&items[i - 1], &items[i]);
	return n_rows;
}

/* The selected samples, by rows; `items` has room for all. */
static size_t collect_items(const struct sp_profile *p,
			    const struct sp_selection *alloc,
			    struct sp_alike *items)
{
	size_t n = 0;

	for (size_t i = 0; i < sp_alike_n(p); i++) {
		items[n] = sp_alike_at(p, i);
		n += sp_selection_has(alloc, p, items[n].one);
	}
	qsort(items, n, sizeof(*items), compare_items);
	return n;
}

int sp_rows_new(const struct sp_analysis *analysis, struct sp_row **ret_rows,
		size_t *ret_n, struct sp_error *err)
{
	const struct sp_profile *p = analysis->profile;
	struct sp_alike *items = malloc((sp_alike_n(p) + 1) * sizeof(*items));
	struct sp_selection alloc, inuse;
	struct sp_row *rows = NULL;
	size_t n = 0;

	select_both(analysis, &alloc, &inuse);
	if (items) {
		n = collect_items(p, &alloc, items);
		rows = malloc((count_rows(items, n) + 1) * sizeof(*rows));
	}
	if (!rows) {
		free(items);
		return sp_error_memory(err, p->path);
	}
	*ret_n = sum_up(analysis, &inuse, items, n, rows);
	*ret_rows = rows;
	free(items);
	return 0;
}

static void merge_row(struct sp_row *dst, const struct sp_row *src)
{
	sp_acc_merge(&dst->alloc, &src->alloc);
	sp_acc_merge(&dst->inuse, &src->inuse);
	dst->size_bytes = 0;
}

static size_t merge_sizes(struct sp_row *rows, size_t n)
{
	size_t n_merged = 0;

	for (size_t i = 0; i < n; i++)
		if (n_merged && rows[n_merged - 1].stack == rows[i].stack)
			merge_row(&rows[n_merged - 1], &rows[i]);
		else
			rows[n_merged++] = rows[i];
	return n_merged;
}

SP_ORDER(compare_alloc, struct sp_row,
	 SP_DOWN(alloc.est_bytes) || SP_UP(stack));

SP_ORDER(compare_inuse, struct sp_row,
	 SP_DOWN(inuse.est_bytes) || SP_BY(compare_alloc(x, y)));

size_t sp_rows_fold(struct sp_row *rows, size_t *n, uint64_t max, bool by_inuse)
{
	size_t n_folded = 0;

	if (!max || *n <= max)
		return 0;
	*n = merge_sizes(rows, *n);
	if (*n <= max)
		return 0;
	qsort(rows, *n, sizeof(*rows),
	      by_inuse ? compare_inuse : compare_alloc);
	n_folded = *n - (max - 1);
	for (size_t i = max; i < *n; i++)
		merge_row(&rows[max - 1], &rows[i]);
	rows[max - 1].stack = SP_ROWS_OTHER;
	rows[max - 1].size_bytes = 0;
	*n = max;
	return n_folded;
}

static void add_type(struct sp_export_rows *to, const char *name,
		     const char *unit, enum sp_row_figure figure)
{
	to->types[to->n_types].name = name;
	to->types[to->n_types].unit = unit;
	to->types[to->n_types++].figure = figure;
}

static void add_types(struct sp_export_rows *to, bool has_frees, bool has_error)
{
	const bool inuse = to->is_of_inuse;

	add_type(to, "alloc_objects", "count", SP_ROW_ALLOC_COUNT);
	add_type(to, "alloc_space", "bytes", SP_ROW_ALLOC_BYTES);
	if (has_frees) {
		add_type(to, "inuse_objects", "count", SP_ROW_INUSE_COUNT);
		add_type(to, "inuse_space", "bytes", SP_ROW_INUSE_BYTES);
	}
	if (has_error) {
		add_type(to,
			 inuse ? "inuse_space_variance"
			       : "alloc_space_variance",
			 "KiB^2", SP_ROW_VARIANCE);
		add_type(to, inuse ? "inuse_samples" : "alloc_samples", "count",
			 SP_ROW_SAMPLES);
	}
}

static double value_of(const struct sp_row *row, bool is_of_inuse,
		       enum sp_row_figure figure)
{
	const struct sp_acc *of = is_of_inuse ? &row->inuse : &row->alloc;

	switch (figure) {
	case SP_ROW_ALLOC_COUNT:
		return row->alloc.est_count;
	case SP_ROW_ALLOC_BYTES:
		return row->alloc.est_bytes;
	case SP_ROW_INUSE_COUNT:
		return row->inuse.est_count;
	case SP_ROW_INUSE_BYTES:
		return row->inuse.est_bytes;
	case SP_ROW_VARIANCE:
		return of->k2 / (1024.0 * 1024.0);
	case SP_ROW_SAMPLES:
		break;
	}
	return (double)of->samples;
}

void sp_export_rows_values(const struct sp_export_rows *rows, size_t i,
			   uint64_t values[SP_ROW_TYPES_MAX])
{
	const struct sp_row *row = &rows->rows[i];
	uint64_t hash = sp_hash_word(rows->seed, row->stack);

	hash = sp_hash_word(hash, row->size_bytes);
	for (size_t k = 0; k < rows->n_types; k++) {
		hash = sp_hash_word(hash, 1);
		values[k] = (uint64_t)sp_export_round(
			value_of(row, rows->is_of_inuse, rows->types[k].figure),
			hash, rows->value_max);
	}
}

int sp_export_rows_new(const struct sp_analysis *analysis,
		       const struct sp_export_options *options,
		       struct sp_export_rows *ret, struct sp_error *err)
{
	const struct sp_profile *p = analysis->profile;
	const struct sp_export_part *part = options->part;
	const enum sp_view view = analysis->selection.view;
	size_t n = 0;
	int r;

	*ret = (struct sp_export_rows){
		.is_of_inuse = view == SP_VIEW_LIVE || view == SP_VIEW_PEAK ||
			       view == SP_VIEW_LEAKS,
		.seed = sp_export_seed(p),
	};
	r = sp_rows_new(analysis, &ret->rows, &n, err);
	if (r < 0)
		return r;
	/* A stack is the same row in each part. */
	if (part) {
		n = merge_sizes(ret->rows, n);
		n = part->choose(part->arg, p, ret->rows, n);
	}
	if (n == SIZE_MAX) {
		free(ret->rows);
		return sp_error_memory(err, p->path);
	}
	ret->n_folded = sp_rows_fold(ret->rows, &n, options->max_samples,
				     ret->is_of_inuse);
	ret->n_rows = n;
	ret->value_max = INT64_MAX / (int64_t)(n + 1);
	add_types(ret, p->has_frees, options->pprof_error);
	return 0;
}
