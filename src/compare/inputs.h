/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/question.h"
#include "compare/summary.h"
#include "symbols/symbolizer.h"

/* The runs of both sides, from the names of files. */

struct sp_inputs {
	struct sp_paths paths;
	struct sp_summary **old, **new; /* owned */
	size_t n_old, n_new;
	struct sp_pair pair; /* of these */
	/* What is taken of each profile; borrowed. */
	const struct sp_question *question;
	/* Of the old runs, if another part of them is asked for; else NULL.
	 * Both sides may then be of one recording. */
	const struct sp_question *old_question;
	const struct sp_symbolizer_options *symbols;
	struct sp_summary_wish wish;
	bool is_update; /* the new runs may be those of the baseline */
	/* What runs have in common; made with the first of them. */
	struct sp_symbol_cache *cache;
	struct sp_images *images;
};

/* Is it the name of a baseline?  Else of a profile. */
bool sp_inputs_is_baseline(const char *path);

/* The files of one side, each a run, or, a baseline, several.  0; negative
 * errno and *err, and what was loaded is to be released, too. */
int sp_inputs_load(struct sp_inputs *inputs, bool is_new,
		   const char *const *files, size_t n, struct sp_error *err);

/* A profile as a run; as sp_inputs_load(). */
int sp_inputs_take(struct sp_inputs *inputs, bool is_new,
		   const struct sp_profile *profile, struct sp_error *err);

/* Once all runs are there and a baseline is written: their paths begin at the
 * function that their samples are flat for.  0; -ENOMEM and *err. */
int sp_inputs_see_through(struct sp_inputs *inputs, struct sp_error *err);

/* 0; -ENODATA and *err if a run has no such view. */
int sp_inputs_need(const struct sp_inputs *inputs, enum sp_view view,
		   struct sp_error *err);

void sp_inputs_done(struct sp_inputs *inputs);
