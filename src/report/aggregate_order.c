/* SPDX-License-Identifier: MIT */
/* Which rows of an aggregate are shown, under which names, in which order, at
 * which level. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/aggregate.h"

static const char *const granularities[] = {
	[SP_BY_FUNCTION] = "function", [SP_BY_FILE] = "file",
	[SP_BY_LINE] = "line",         [SP_BY_MODULE] = "module",
	[SP_BY_ADDRESS] = "address",   NULL,
};

const char *sp_granularity_word(size_t i)
{
	return granularities[i];
}

const char *sp_granularity_name(enum sp_granularity granularity)
{
	return granularities[granularity];
}

bool sp_granularity_parse(const char *text, enum sp_granularity *ret)
{
	for (int i = 0; granularities[i]; i++)
		if (strcmp(text, granularities[i]) == 0) {
			*ret = (enum sp_granularity)i;
			return true;
		}
	return false;
}

static const char *full_name(const struct sp_symbol *symbol)
{
	return symbol->identity ? symbol->identity : symbol->function;
}

const char *sp_aggregate_name(const struct sp_aggregate *aggregate,
			      const struct sp_symbol *symbol)
{
	const char *label =
		sp_labels_find(&aggregate->labels, full_name(symbol));

	return label ? label : symbol->function;
}

static int add_names(struct sp_labels *labels, const struct sp_aggregate *from,
		     const struct sp_stack *stack)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < stack->n_frames; i++) {
		const struct sp_symbols s =
			sp_aggregate_symbols(from, stack->frames[i]);

		for (size_t k = 0; !r && k < s.count; k++)
			r = sp_labels_add(labels, full_name(&s.symbol[k]));
	}
	return r;
}

/* The names of files and modules are shown unchanged. */
static int make_labels(struct sp_aggregate *a)
{
	int r = sp_labels_make(&a->labels);

	if (a->granularity == SP_BY_FILE || a->granularity == SP_BY_MODULE)
		return r;
	for (size_t i = 0; !r && i < a->n_functions + a->n_dropped; i++)
		a->functions[i].name =
			sp_labels_find(&a->labels, a->functions[i].identity);
	return r;
}

int sp_aggregate_label(struct sp_aggregate *a)
{
	int r = 0;

	if (a->granularity == SP_BY_FILE || a->granularity == SP_BY_MODULE)
		for (size_t i = 0; !r && i < a->n_stacks; i++)
			r = add_names(&a->labels, a, a->stacks[i].stack);
	else
		for (size_t i = 0; !r && i < a->n_functions; i++)
			r = sp_labels_add(&a->labels, a->functions[i].identity);
	return r ? r : make_labels(a);
}

int sp_aggregate_label_with(struct sp_aggregate *aggregate,
			    const struct sp_aggregate *other,
			    struct sp_error *err)
{
	const struct sp_profile *p = other->analysis->profile;
	struct sp_selection births = other->analysis->selection;
	bool *wanted;
	int r;

	births.view = SP_VIEW_ALLOC;
	births.has_survivors = true;
	wanted = sp_selection_stacks(&births, p);
	r = wanted ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < p->n_stacks; i++)
		if (wanted[i])
			r = add_names(&aggregate->labels, other, &p->stacks[i]);
	free(wanted);
	if (!r)
		r = make_labels(aggregate);
	return r ? sp_error_memory(err, p->path) : 0;
}

/* To 32 bits: the last ones of a sum depend on the order in which it was summed
 * up, and rows that are equal have to come by their names. */
static double rounded_value(double value)
{
	const double high = value * (double)((1u << 21) + 1);

	return high - (high - value);
}

int sp_aggregate_compare_values(double a, double b)
{
	const double x = rounded_value(a), y = rounded_value(b);

	return (x < y) - (x > y);
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

	return r ? r : sp_pattern_search_full(pattern, f->identity, err);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct sp_aggregate_function *fa = a, *fb = b;
	const int by_flat =
		sp_aggregate_compare_values(fa->flat_bytes, fb->flat_bytes);
	const int by_cum =
		sp_aggregate_compare_values(fa->cum_bytes, fb->cum_bytes);
	int c = 0;

	switch (*(const enum sp_aggregate_order *)arg) {
	case SP_AGGREGATE_BY_NAME:
		return sp_aggregate_compare(fa, fb);
	case SP_AGGREGATE_BY_COUNT:
		c = sp_aggregate_compare_values(fa->flat_objects,
						fb->flat_objects);
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

static void note_places(struct sp_aggregate *a)
{
	for (size_t i = 0; i < a->n_functions + a->n_dropped; i++)
		a->place_of_row[a->functions[i].row] = (uint32_t)i;
}

void sp_aggregate_sort(struct sp_aggregate *aggregate,
		       enum sp_aggregate_order order)
{
	aggregate->order = order;
	if (aggregate->n_functions)
		qsort_r(aggregate->functions, aggregate->n_functions,
			sizeof(*aggregate->functions), compare_rows, &order);
	note_places(aggregate);
}

double sp_aggregate_whole(const struct sp_aggregate *aggregate)
{
	const struct sp_analysis *a = aggregate->analysis;

	return aggregate->order == SP_AGGREGATE_BY_COUNT
		       ? sp_estimate_objects_value(&a->how, a->whole)
		       : sp_estimate_bytes(&a->how, a->whole).value;
}

int sp_aggregate_drop(struct sp_aggregate *aggregate, double share,
		      bool only_own, struct sp_error *err)
{
	struct sp_aggregate_function *all = aggregate->functions;
	const bool by_count = aggregate->order == SP_AGGREGATE_BY_COUNT;
	const size_t n = aggregate->n_functions;
	const double least = share * sp_aggregate_whole(aggregate);
	struct sp_aggregate_function *dropped = calloc(n + 1, sizeof(*dropped));
	size_t n_kept = 0, n_dropped = 0;

	if (!dropped)
		return sp_error_memory(err, aggregate->analysis->profile->path);
	for (size_t i = 0; i < n; i++) {
		if ((by_count ? all[i].cum_objects : all[i].cum_bytes) <
			    least ||
		    (only_own && !all[i].is_own))
			dropped[n_dropped++] = all[i];
		else
			all[n_kept++] = all[i];
	}
	if (n_dropped)
		memcpy(all + n_kept, dropped, n_dropped * sizeof(*dropped));
	free(dropped);
	aggregate->n_functions = n_kept;
	aggregate->n_dropped = n_dropped;
	note_places(aggregate);
	return 0;
}

/* (E19) A row with less can miss only if it expects many more. */
#define COUNTED_SAMPLES 2

void sp_aggregate_hold_together(struct sp_aggregate *aggregate)
{
	const double asked = aggregate->analysis->how.confidence;
	size_t functions = 0, stacks = 0;

	for (size_t i = 0; i < aggregate->n_functions + aggregate->n_dropped;
	     i++)
		functions += aggregate->functions[i].cum.all.samples >=
			     COUNTED_SAMPLES;
	for (size_t i = 0; i < aggregate->n_stacks; i++)
		stacks += aggregate->stacks[i].sums->all.samples >=
			  COUNTED_SAMPLES;
	aggregate->how.samples_min = COUNTED_SAMPLES;
	aggregate->how.confidence = sp_confidence_of_each(
		asked, functions > stacks ? functions : stacks);
}
