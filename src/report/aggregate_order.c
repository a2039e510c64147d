/* SPDX-License-Identifier: MIT */
/* Which rows of an aggregate are shown, under which names, in which order, at
 * which level. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/aggregate.h"
#include "report/label.h"

const char *sp_granularity_name(enum sp_granularity granularity)
{
	static const char *const names[] = {
		[SP_BY_FUNCTION] = "function", [SP_BY_FILE] = "file",
		[SP_BY_LINE] = "line",         [SP_BY_MODULE] = "module",
		[SP_BY_ADDRESS] = "address",
	};

	return names[granularity];
}

int sp_aggregate_label(struct sp_aggregate *a)
{
	struct sp_label_of *of;
	int r;

	if (a->granularity == SP_BY_FILE || a->granularity == SP_BY_MODULE)
		return 0;
	of = calloc(a->n_functions + 1, sizeof(*of));
	if (!of)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_functions; i++)
		of[i] = (struct sp_label_of){a->functions[i].identity,
					     a->functions[i].module};
	r = sp_labels_new(of, a->n_functions, &a->labels);
	free(of);
	if (r < 0)
		return r;
	a->n_labels = a->n_functions;
	for (size_t i = 0; i < a->n_functions; i++)
		a->functions[i].name = a->labels[i];
	return 0;
}

static int descending(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

int sp_aggregate_compare(const struct sp_aggregate_function *a,
			 const struct sp_aggregate_function *b)
{
	int c = strcmp(a->identity, b->identity);

	if (!c)
		c = strcmp(a->module, b->module);
	if (!c)
		c = compare_text(a->file, b->file);
	if (!c)
		c = (a->line > b->line) - (a->line < b->line);
	return c ? c : (a->offset > b->offset) - (a->offset < b->offset);
}

int sp_aggregate_matches(const struct sp_aggregate_function *f,
			 const struct sp_pattern *pattern, struct sp_error *err)
{
	const int r = sp_pattern_search(pattern, f->short_name, err);

	return r ? r : sp_pattern_search(pattern, f->identity, err);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct sp_aggregate_function *fa = a, *fb = b;
	const int by_flat = descending(fa->flat_bytes, fb->flat_bytes);
	const int by_cum = descending(fa->cum_bytes, fb->cum_bytes);
	int c = 0;

	switch (*(const enum sp_aggregate_order *)arg) {
	case SP_AGGREGATE_BY_NAME:
		return sp_aggregate_compare(fa, fb);
	case SP_AGGREGATE_BY_COUNT:
		c = descending(fa->flat_objects, fb->flat_objects);
		break;
	case SP_AGGREGATE_BY_CUM:
		c = by_cum;
		break;
	case SP_AGGREGATE_BY_FLAT:
		break;
	}
	if (!c)
		c = by_flat;
	if (!c)
		c = by_cum;
	return c ? c : sp_aggregate_compare(fa, fb);
}

void sp_aggregate_sort(struct sp_aggregate *aggregate,
		       enum sp_aggregate_order order)
{
	aggregate->order = order;
	if (aggregate->n_functions)
		qsort_r(aggregate->functions, aggregate->n_functions,
			sizeof(*aggregate->functions), compare_rows, &order);
}

const struct sp_aggregate_function **sp_aggregate_by_row(
	const struct sp_aggregate *aggregate)
{
	const size_t n = aggregate->n_functions + aggregate->n_dropped;
	const struct sp_aggregate_function **by_row =
		calloc(n + 1, sizeof(*by_row));

	for (size_t i = 0; by_row && i < n; i++)
		by_row[aggregate->functions[i].row] = &aggregate->functions[i];
	return by_row;
}

int sp_aggregate_drop(struct sp_aggregate *aggregate, double share,
		      struct sp_error *err)
{
	struct sp_aggregate_function *all = aggregate->functions;
	const struct sp_analysis *a = aggregate->analysis;
	const size_t n = aggregate->n_functions;
	const double least = share * sp_estimate_bytes(&a->how, a->whole).value;
	struct sp_aggregate_function *dropped = calloc(n + 1, sizeof(*dropped));
	size_t n_kept = 0, n_dropped = 0;

	if (!dropped)
		return sp_error_set(err, -ENOMEM, a->profile->path,
				    "not enough memory for %zu functions", n);
	for (size_t i = 0; i < n; i++) {
		if (all[i].cum_bytes < least)
			dropped[n_dropped++] = all[i];
		else
			all[n_kept++] = all[i];
	}
	if (n_dropped)
		memcpy(all + n_kept, dropped, n_dropped * sizeof(*dropped));
	free(dropped);
	aggregate->n_functions = n_kept;
	aggregate->n_dropped = n_dropped;
	aggregate->dropped_share = share;
	return 0;
}

void sp_aggregate_hold_together(struct sp_aggregate *aggregate, size_t n_rows)
{
	const double asked = aggregate->analysis->how.confidence;

	if (!n_rows)
		return;
	aggregate->n_together = n_rows;
	aggregate->how.confidence = sp_confidence_of_each(asked, n_rows);
}
