/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"

/*
 * The call tree, callers above callees, of the places with at least `share` of
 * the view, in [0, 1].  An only callee has the indentation of its caller.
 * Nothing if there are no samples. 0 or -ENOMEM and *err.
 */
int sp_view_tree_print(FILE *out, const struct sp_aggregate *aggregate,
		       double share, struct sp_error *err);

/*
 * The indentation of each of n places, given in depth-first order with depths
 * from 0.  A place without siblings is indented as its caller.  The caller
 * frees the result (free()); NULL without memory.
 */
int *sp_view_tree_indents(const uint32_t *depths, size_t n);
