/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "report/analysis.h"

/* Points of the picture. */
#define SP_VIEW_TIMELINE_COLUMNS 64

/*
 * Live bytes over time with their limits, 80 columns wide: blocks of Unicode,
 * or ASCII if `ascii`; the peak is marked, and RSS if it was recorded.  The
 * profile must have frees. 0 or -ENOMEM and *err.
 */
int sp_view_timeline_print(FILE *out, const struct sp_analysis *analysis,
			   bool ascii, struct sp_error *err);
