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

/* What the output needs from a profile, besides sums over the samples of a
 * question. */
struct sp_load_needs {
	bool lifetimes;  /* sp_lifetimes() */
	bool no_code;    /* no names of functions, and no filter by them */
	bool no_stacks;  /* with no_code: nor their number */
	bool peak;       /* the sums at the peak, whatever the view */
	size_t n_points; /* sp_timeline() with so many; 0: none */
	/* For the parts of the run between these points (at most
	 * SP_LOAD_POINTS_MAX): when each sample was born, and whether it was
	 * freed before, at or after a point.  Also the peak, and the objects
	 * that were freed before the next allocation of their thread. */
	bool parts;
	/* Do not keep samples even if the file is being written.  The question
	 * must then need one reading only; one about the peak must end before
	 * now. */
	bool while_written;
};

/*
 * Read files[0..n), n >= 1, to answer the question.  Every sample is kept if a
 * file is being written (but see while_written), and for the peak view of some
 * call stacks, of a phase, or of a thread given by name.  Returns what
 * sp_profile_load_many() returns.
 */
int sp_load(const char *const *files, size_t n,
	    const struct sp_question *question,
	    const struct sp_load_needs *needs, sp_progress_fn *progress,
	    void *progress_arg, struct sp_profile **ret_profile,
	    struct sp_error *err);

/* If the question has --metric resident: weigh a profile of these files, which
 * has every sample, by its resident bytes. 0; negative errno and *err. */
int sp_load_weigh(const char *const *files, size_t n,
		  const struct sp_question *question,
		  struct sp_profile *profile, struct sp_error *err);
