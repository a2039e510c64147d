/* SPDX-License-Identifier: MIT */
#include "lab/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"

int sp_lab_trace_add(struct sp_lab_trace *trace,
		     const struct sp_lab_alloc *alloc)
{
	void *array = trace->allocs;
	int r = sp_array_reserve(&array, &trace->room, trace->n_allocs,
				 sizeof(*trace->allocs));

	trace->allocs = array;
	if (r >= 0)
		trace->allocs[trace->n_allocs++] = *alloc;
	return r;
}

SP_ORDER(by_size, struct sp_period_model_class, SP_UP(size_bytes));

static size_t merge_equal(struct sp_period_model_class *classes, size_t n)
{
	size_t used = 0;

	qsort(classes, n, sizeof(*classes), by_size);
	for (size_t i = 0; i < n; i++) {
		if (used &&
		    classes[used - 1].size_bytes == classes[i].size_bytes)
			classes[used - 1].objects += classes[i].objects;
		else
			classes[used++] = classes[i];
	}
	return used;
}

static void add_up_focus(struct sp_lab_trace *trace)
{
	trace->focus_bytes = 0;
	for (size_t i = 0; i < trace->n_allocs; i++)
		if (trace->allocs[i].site == trace->focus)
			trace->focus_bytes += trace->allocs[i].size_bytes;
}

int sp_lab_trace_look_at(struct sp_lab_trace *trace, const char *site)
{
	const uint32_t old = trace->focus;
	uint32_t i = 0;

	while (i < trace->n_sites && strcmp(trace->sites[i], site) != 0)
		i++;
	if (i == trace->n_sites)
		return -ENOENT;
	trace->focus = i;
	add_up_focus(trace);
	if (trace->focus_bytes)
		return 0;
	trace->focus = old;
	add_up_focus(trace);
	return -ENOENT;
}

int sp_lab_trace_finish(struct sp_lab_trace *trace)
{
	trace->classes = calloc(trace->n_allocs + !trace->n_allocs,
				sizeof(*trace->classes));
	if (!trace->classes)
		return -ENOMEM;
	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];

		trace->classes[i].objects = 1;
		trace->classes[i].size_bytes = (double)a->size_bytes;
		trace->bytes += a->size_bytes;
	}
	add_up_focus(trace);
	trace->sizes.classes = trace->classes;
	trace->sizes.n = merge_equal(trace->classes, trace->n_allocs);
	return 0;
}

void sp_lab_trace_free(struct sp_lab_trace *trace)
{
	free(trace->allocs);
	free(trace->sites);
	free(trace->classes);
	sp_blocks_free(&trace->storage);
	*trace = (struct sp_lab_trace){0};
}
