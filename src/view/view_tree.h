/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"

/*
 * The call tree, callers above callees, of the places with at least that share
 * of the view.  A place that is all that its caller calls stands at the same
 * depth.  Nothing if there are no samples.  0 or -ENOMEM and *err.
 */
int sp_view_tree_print(FILE *out, const struct sp_aggregate *aggregate,
		       double share, struct sp_error *err);

/*
 * How far each place is indented, of n places in depth-first order, of these
 * depths from 0: one without siblings as its caller.  To be freed by the caller
 * (free()); NULL without memory.
 */
int *sp_view_tree_indents(const uint32_t *depths, size_t n);
