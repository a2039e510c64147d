/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "cli/options.h"
#include "model/profile.h"
#include "report/analysis.h"

/*
 * Which command to try next, as the shell takes it, and why.  All borrowed.
 */
struct sp_next {
	/* "tree", "--view live": the command or the options of the report. */
	const char *arguments;
	const char *why; /* "" or what stands behind it as a comment */
};

#define SP_NEXT_MAX 4

/* Lines with these commands, each with the options that choose the same samples
 * and symbols. */
void sp_next_print(FILE *out, const struct sp_options *options,
		   const struct sp_profile *profile, const struct sp_next *next,
		   size_t n);

/*
 * What fits to what the report found: a heap that is still there; or memory
 * that is freed at once, and a peak, if there is one; then who calls, then the
 * page.  How many of ret_next, of SP_NEXT_MAX.
 */
size_t sp_next_after_report(const struct sp_options *options,
			    const struct sp_analysis *analysis,
			    struct sp_next *ret_next);
