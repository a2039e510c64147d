/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/question.h"

/* Each is two cuts of struct sp_plan, and the peak is one. */
#define SP_LOAD_POINTS_MAX ((SP_PLAN_CUTS_MAX - 3) / 2)

/* What is shown of a profile, beside sums over the samples of a question. */
struct sp_load_needs {
	bool lifetimes;  /* sp_lifetimes() */
	bool no_code;    /* no functions, and no filter of them */
	bool peak;       /* also what was alive at the peak */
	size_t n_points; /* sp_timeline() with so many; 0: none */
	/* By the parts of the run between these points (at most
	 * SP_LOAD_POINTS_MAX), when each sample was born and whether it was
	 * freed before, at or after a point; also the peak, and what was freed
	 * before its thread allocated anything else. */
	bool parts;
	/* Of a file that is being written, too, samples are not kept: the
	 * question has to end before now if it is of the peak. */
	bool while_written;
};

/*
 * Read files[0..n), n >= 1, to answer the question.  Every sample is kept of a
 * file that is being written (but see while_written), and for what was alive at
 * the peak of some call stacks, of a phase, or of a thread that is given by its
 * name.  As sp_profile_load_many().
 */
int sp_load(const char *const *files, size_t n,
	    const struct sp_question *question,
	    const struct sp_load_needs *needs, sp_progress_fn *progress,
	    void *progress_arg, struct sp_profile **ret_profile,
	    struct sp_error *err);

/* --metric resident: weigh a profile of these files that has every sample, if
 * the question is about that.  0; negative errno and *err. */
int sp_load_weigh(const char *const *files, size_t n,
		  const struct sp_question *question,
		  struct sp_profile *profile, struct sp_error *err);
