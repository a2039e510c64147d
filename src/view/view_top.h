/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"

/* How many of the first n_max (0: all) are printed: those before the first one
 * that is 0 in the column of the order. */
size_t sp_view_top_rows(const struct sp_aggregate *aggregate, size_t n_max);

/*
 * The table of the first n_max functions (0: all) in the present order of the
 * aggregate: bytes with their intervals, shares as in pprof, samples, and if
 * `has_bars` a bar for the column of the order.  In order of flat the table
 * ends before the first function without flat bytes.  If the table would be
 * wider than `columns` (0: no limit), some of its columns are left out.  An
 * estimate of few samples shows its interval first.  Nothing if there are no
 * samples. 0 or -ENOMEM and *err.
 */
int sp_view_top_print(FILE *out, const struct sp_aggregate *aggregate,
		      size_t n_max, unsigned int columns, bool has_bars,
		      struct sp_error *err);
