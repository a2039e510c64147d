/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/analysis.h"
#include "text/text.h"

/* One for each power of two: sizes up to 16 << row, the last without end. */
#define SP_VIEW_SIZES_ROWS 49

/* The row of a size class, and the name of a row: "64 B", "larger". */
size_t sp_view_sizes_row(unsigned int class);
struct sp_text_cell sp_view_sizes_row_name(size_t row);

/* -ENODATA and *err if the profile has no totals per size class, else 0. */
int sp_view_sizes_check(const struct sp_profile *profile, struct sp_error *err);

/*
 * Exact objects and bytes by object size, in steps of powers of two, with bars
 * for the bytes in Unicode or, if `ascii`, in ASCII; then percentiles.  The
 * profile has totals per size class.
 */
void sp_view_sizes_print(FILE *out, const struct sp_profile *profile,
			 bool ascii);

/*
 * The view's estimates in the same steps: bytes, samples, bars; then
 * percentiles of the bytes.
 */
void sp_view_sizes_print_estimated(FILE *out,
				   const struct sp_analysis *analysis,
				   bool ascii);
