/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"
#include "report/stats.h"

/* By entry points; then the n_max (0: all) functions with most bytes and those
 * with most objects, flat.  Leaves the aggregate in the latter order. */
void sp_view_stats_print(FILE *out, struct sp_aggregate *aggregate,
			 const struct sp_stats *stats, size_t n_max);

/* The view's estimate for each thread, most bytes first, with the exact total
 * that it allocated. 0 or -ENOMEM and *err. */
int sp_view_threads_print(FILE *out, const struct sp_analysis *analysis,
			  struct sp_error *err);
