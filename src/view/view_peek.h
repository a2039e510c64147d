/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/edges.h"

/* The n functions with their callers above and their callees below.  Callers
 * and callees with less than `share` of the view, in [0, 1], are summed up. 0
 * or -ENOMEM and *err. */
int sp_view_peek_print(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, double share,
		       struct sp_error *err);
