/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A birth or the free of an object, for qsort() by time. */
struct event {
	uint64_t time_ns;
	uint64_t id;
	bool is_free;
};

static inline int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (int)x->is_free - (int)y->is_free;
}
