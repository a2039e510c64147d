/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/profile.h"
#include "read/load.h"
#include "symbols/symbolizer.h"

/*
 * Selects and cuts call stacks by regular expressions, like pprof's options of
 * the same names.  A pattern is searched in the name of a function, of its
 * source file and of its module; that of PRUNE_FROM only in the name of the
 * function, without an argument list.  They apply in this order:
 *
 *   FOCUS, IGNORE  keep a stack if a frame matches; drop it if one does
 *   HIDE, SHOW     drop the frames that match; keep only those
 *   SHOW_FROM      drop the callers of the outermost frame that matches, and
 *                  stacks without one
 *   PRUNE_FROM     drop what the innermost frame that matches called
 *
 * A stack that loses all its frames is dropped.  Inlined functions at one
 * address are frames of their own, but SHOW_FROM and PRUNE_FROM cut the frames
 * of an address in the same way in every stack.
 */
enum sp_filter_kind {
	SP_FILTER_FOCUS,
	SP_FILTER_IGNORE,
	SP_FILTER_HIDE,
	SP_FILTER_SHOW,
	SP_FILTER_SHOW_FROM,
	SP_FILTER_PRUNE_FROM,
	SP_FILTER_COUNT,
};

/* NULL or "": none.  symbols/pattern.h has the syntax. */
struct sp_filter_patterns {
	const char *text[SP_FILTER_COUNT];
	/* At last drop the functions that are not the program's own
	 * (symbols/seethrough.h), but for stacks that have no others. */
	bool only_own;
};

/* "--focus", "--show-from", ...: the options. */
const char *sp_filter_name(enum sp_filter_kind kind);

/* Is there a pattern, or only_own? */
bool sp_filter_is_given(const struct sp_filter_patterns *patterns);

/* 0; -EINVAL and *err, which says which pattern is wrong and where; -ENOMEM
 * and *err. */
int sp_filter_check(const struct sp_filter_patterns *patterns,
		    struct sp_error *err);

struct sp_filter;

/*
 * Apply to the profile's stacks.  `progress` (may be NULL) counts stacks.  0
 * and *ret_filter, to be freed by the caller, which borrows the profile, the
 * symbolizer and the patterns; negative errno and *err.
 */
int sp_filter_new(const struct sp_profile *profile,
		  struct sp_symbolizer *symbolizer,
		  const struct sp_filter_patterns *patterns,
		  sp_progress_fn *progress, void *progress_arg,
		  struct sp_filter **ret_filter, struct sp_error *err);

/* The same profile with the frames that are left; positions of stacks are the
 * same.  Not to be freed with sp_profile_free(). */
const struct sp_profile *sp_filter_profile(const struct sp_filter *filter);

/* keeps[i]: is stack i of the profile kept? */
const bool *sp_filter_keeps(const struct sp_filter *filter);

const struct sp_filter_patterns *sp_filter_patterns_of(
	const struct sp_filter *filter);

/* The remaining symbols of a frame of a kept stack; never empty. */
struct sp_symbols sp_filter_symbols(const struct sp_filter *filter,
				    struct sp_frame frame);

void sp_filter_free(struct sp_filter *filter);
