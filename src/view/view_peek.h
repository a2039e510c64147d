/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/edges.h"

/* The n functions with their callers above and their callees below; those with
 * less than that share of the view are summed up.  0 or -ENOMEM and *err. */
int sp_view_peek_print(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, double share,
		       struct sp_error *err);
