/* SPDX-License-Identifier: MIT */
#ifndef SP_VIEW_VIEW_PEEK_H
#define SP_VIEW_VIEW_PEEK_H

#include <stdio.h>

#include "base/error.h"
#include "report/edges.h"

/* The n functions with their callers above and their callees below; those with
 * less than that share of the view are summed up.  0 or -ENOMEM and *err. */
int sp_view_peek_print(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, double share,
		       struct sp_error *err);

#endif
