/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/aggregate.h"

/*
 * Callers and callees of a function.  Each stack with the function counts once,
 * however often it calls itself: its caller is that of the outermost call, its
 * callee that of the innermost.  So the callers add up to the function, and so
 * do the callees together with its own allocations.  Library functions that
 * flat bytes skip are callees like others; allocators are not.
 */
#define SP_EDGE_NOBODY                                                         \
	UINT32_MAX /* in place of a row: outermost, or itself                  \
		    */

struct sp_edge {
	uint32_t row; /* of the other function, or SP_EDGE_NOBODY */
	double bytes; /* value of the estimate */
	struct sp_class_sums sums;
};

/* Of one function; both lists with most bytes first, then by name. */
struct sp_edges {
	const struct sp_aggregate_function *function;
	struct sp_edge *callers;
	size_t n_callers;
	struct sp_edge *callees;
	size_t n_callees;
};

/*
 * Of the functions whose names match the regular expression, in the present
 * order of the aggregate.  0, *ret_edges, to be freed with sp_edges_free(), and
 * *ret_n; -ENOMEM, -ENOENT if there are none, or the errors of
 * symbols/pattern.h, and *err.
 */
int sp_edges_match(const struct sp_aggregate *aggregate, const char *regex,
		   struct sp_edges **ret_edges, size_t *ret_n,
		   struct sp_error *err);

void sp_edges_free(struct sp_edges *edges, size_t n);
