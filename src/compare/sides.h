/* SPDX-License-Identifier: MIT */
#ifndef SP_COMPARE_SIDES_H
#define SP_COMPARE_SIDES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "compare/match.h"
#include "model/profile.h"
#include "report/question.h"
#include "symbols/symbolizer.h"

/* The runs of both sides, from the names of files. */

struct sp_sides {
	struct sp_paths paths;
	struct sp_summary **old, **new; /* owned */
	size_t n_old, n_new;
	struct sp_pair pair; /* of these */
	/* What is taken of each profile; borrowed. */
	const struct sp_question *question;
	const struct sp_symbolizer_options *symbols;
	struct sp_summary_wish wish;
	bool is_update; /* the new runs may be those of the baseline */
};

/* Is it the name of a baseline?  Else of a profile. */
bool sp_sides_is_baseline(const char *path);

/* The files of one side, each a run, or, a baseline, several.  0; negative
 * errno and *err, and what was loaded is to be released, too. */
int sp_sides_load(struct sp_sides *sides, bool is_new, const char *const *files,
		  size_t n, struct sp_error *err);

/* A profile as a run; as sp_sides_load(). */
int sp_sides_take(struct sp_sides *sides, bool is_new,
		  const struct sp_profile *profile, struct sp_error *err);

/* 0; -ENODATA and *err if a run has no such view. */
int sp_sides_need(const struct sp_sides *sides, enum sp_view view,
		  struct sp_error *err);

void sp_sides_done(struct sp_sides *sides);

#endif
