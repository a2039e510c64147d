/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "compare/match.h"

/* For each path, the runs of a side that have samples on it, and their sums. */
struct sp_path_run {
	const struct sp_acc *acc; /* borrowed */
	uint32_t run;
};

struct sp_path_runs {
	size_t n_paths;
	size_t *first; /* of each path, and one more: where its runs begin */
	struct sp_path_run *at; /* those of a path by ascending run */
};

/* The rows of one run; none if it has no such phase. */
const struct sp_path_rows *sp_path_runs_rows(const struct sp_summary *run,
					     const struct sp_match_of *of);

/* For all runs of the side, whose rows must not change while this exists.  All
 * their paths are less than n_paths. 0, or -ENOMEM and nothing to be released.
 */
int sp_path_runs_init(struct sp_path_runs *ret, const struct sp_side *side,
		      const struct sp_match_of *of, size_t n_paths);

void sp_path_runs_done(struct sp_path_runs *runs);
