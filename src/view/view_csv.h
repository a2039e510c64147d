/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"

/* Tables as CSV (text/table.h). */

/* The head of the table of functions, and one row. */
void sp_view_csv_functions_head(FILE *out);
void sp_view_csv_function(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_aggregate_function *f);

/* The first n_max functions (0: all) in the present order. */
void sp_view_csv_functions(FILE *out, const struct sp_aggregate *aggregate,
			   size_t n_max);

/* Live bytes and objects over time, SP_VIEW_TIMELINE_POINTS rows.  The
 * profile has frees.  0, or -ENOMEM and *err with nothing written. */
int sp_view_csv_timeline(FILE *out, const struct sp_analysis *analysis,
			 struct sp_error *err);

/* The view's estimate for each size class with a sample. */
void sp_view_csv_sizes_estimated(FILE *out, const struct sp_analysis *analysis);

/* The exact totals of each size class that has any. */
void sp_view_csv_sizes(FILE *out, const struct sp_profile *profile);
