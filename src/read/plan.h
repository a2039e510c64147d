/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "stats/sums.h"

/*
 * What is wanted of the samples of some files.  All of these are found in one
 * reading; what is zero is not wanted.
 */
struct sp_plan {
	/* Mappings instead of sampled objects: with every_sample only. */
	enum sp_samples_of samples_of;
	/* Each sample by itself; else those that are alive at the end, and
	 * groups of the others: for what was allocated in the whole run and
	 * what is alive at the end, and besides: */
	bool every_sample;
	/* The peak, its limits at that confidence in (0, 1). */
	double confidence;
	/* Lifetimes (sp_lifetimes()): those of a group are within 1/128 of each
	 * other. */
	bool has_lifetimes;
	/* Which samples were temporary, by limits as in struct sp_selection
	 * (stats/sums.h). */
	bool has_temporary;
	uint64_t within_bytes;
	uint64_t within_ns;
	/* What is alive at these moments, ascending and distinct: of all times
	 * of a group the same of them are earlier. */
	const uint64_t *cuts; /* borrowed */
	size_t n_cuts;        /* <= SP_PLAN_CUTS_MAX */
	/* sp_timeline() with that many points: 0, or >= 2; with a peak only. */
	size_t n_points;
	/* What peak and timeline are of: by birth and size, and of a single
	 * file by thread, on the clock of all files; NULL: everything. */
	const struct sp_selection *births; /* borrowed */
	/* What a reading of the same files has found (struct sp_profile);
	 * false and 0 if there was none. */
	bool is_unordered;
	uint64_t duration_ns;
	/* Only the peak is wanted: unless every sample is kept, there are no
	 * groups, and nothing that has to do with them, and stacks have no
	 * frames (has_no_code). */
	bool only_peak;
	/* Nobody asks for functions: stacks have no frames, and there are no
	 * symbols (has_no_code). */
	bool no_code;
	/* With no_code: nor for the number of stacks; samples have the first,
	 * so that groups are few. */
	bool no_stacks;
	/* Samples are counted, and nothing else of them is wanted: neither
	 * groups nor a peak. */
	bool no_samples;
	/* Also of a file that is being written, which is another at each
	 * reading: the caller asks for nothing that takes two, or that another
	 * end would change. */
	bool while_written;
	/* Is told of every sample, unless they are kept; the profile has no
	 * frames, no symbols and no groups then.  Of these samples the
	 * positions of stacks and threads, and ids, are those of their file
	 * (struct sp_part). */
	sp_sample_fn *tell;
	void *tell_arg;
};

#define SP_PLAN_CUTS_MAX 511
