/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/keys.h"
#include "compare/summary.h"
#include "stats/compare.h"

/* One function, call path, or other key, on both sides. */
struct sp_match_row {
	uint32_t key;
	struct sp_runs old;
	struct sp_runs new;
	uint64_t old_samples; /* of all runs */
	uint64_t new_samples;
};

/* Which samples are compared. */
struct sp_match_of {
	unsigned int table; /* SP_VIEW_..., or of enum sp_summary_table */
	const char *phase; /* of SP_VIEW_ALLOC: only samples in it; NULL: all */
	bool is_count;     /* objects, not bytes */
	bool is_whole;     /* paths of a view with all their frames */
};

/* Which paths take part: those with a frame of the set, or those of `paths`.  A
 * NULL pointer to it means all paths. */
struct sp_frame_set {
	const bool *paths; /* of each path; NULL: by frame */
	bool *has;         /* of each frame */
	bool innermost;    /* the innermost frame has to be one */
};

/*
 * Rows with a sample on either side, by ascending key; both sides have runs.
 * 0, *ret_rows, to be freed (free()), and *ret_n; or -ENOMEM.
 */
int sp_match_new(const struct sp_pair *pair, const struct sp_match_of *of,
		 const struct sp_keys *keys, const struct sp_frame_set *only,
		 struct sp_match_row **ret_rows, size_t *ret_n);

/* The same with a row for each path. */
int sp_match_paths(const struct sp_pair *pair, const struct sp_match_of *of,
		   const struct sp_frame_set *only,
		   struct sp_match_row **ret_rows, size_t *ret_n);

/* The program's own noise, from the rows with enough samples (E30) and, of what
 * was allocated, from the exact totals (E56). 0 and *ret, or -ENOMEM. */
int sp_match_noise(const struct sp_pair *pair, const struct sp_match_of *of,
		   const struct sp_match_row *rows, size_t n,
		   struct sp_run_noise *ret);

/* The sum of all paths of the set, for one side. 0 or -ENOMEM. */
int sp_match_sum(const struct sp_side *side, const struct sp_paths *paths,
		 const struct sp_match_of *of, const struct sp_frame_set *only,
		 struct sp_runs *ret);

/* The test of each row. */
struct sp_match_test {
	struct sp_allowance allowance;
	bool both_ways; /* else only whether it grew */
	double rate;    /* share of the rows found that may be wrong */
};

/*
 * Which rows changed (E29, E31): those with p[i] <= *ret_threshold.
 * *ret_n_tested is the number of rows that have enough samples to be rejected.
 * 0 or -ENOMEM.
 */
int sp_match_test(const struct sp_match_row *rows, size_t n,
		  const struct sp_match_test *test,
		  const struct sp_run_noise *noise, double *p,
		  double *ret_threshold, size_t *ret_n_tested);

/* Does the path take part? */
bool sp_frame_set_has(const struct sp_frame_set *set,
		      const struct sp_paths *paths, uint32_t path);

struct sp_renamed {
	uint32_t old; /* frames */
	uint32_t new;
};

/*
 * Functions that were only renamed: one that only the old side has and one that
 * only the new side has, in the same module, and most bytes of either are on
 * paths that are the same except for that name.  The old side's paths get the
 * new names. 0, *ret, to be freed (free()), and *ret_n; or -ENOMEM.
 */
int sp_match_renamed(const struct sp_pair *pair, struct sp_renamed **ret,
		     size_t *ret_n);

/*
 * Compilers number lambdas by their order in a function.  If the numbers of the
 * two sides differ by more than chance, it is unknown which lambda is which.
 * They all get the name of their family, with a '*' for the number, on both
 * sides. 0, *ret, the frames with these names, to be freed (free()), and
 * *ret_n; or -ENOMEM.
 */
int sp_match_lambdas(const struct sp_pair *pair, uint32_t **ret, size_t *ret_n);

/*
 * Static functions of one name get as much of their homes (symbols/home.h) as
 * tells those of each run apart, on both sides.  If one side has the name
 * without a home, as an old baseline has, both do; then the name stands for
 * several functions, and its label says so.  Before other renaming.  0 or
 * -ENOMEM.
 */
int sp_match_homes(const struct sp_pair *pair);

/* Give the paths of a side other frames: name[frame] for each.  0 or -ENOMEM.
 */
int sp_match_rename(const struct sp_pair *pair, const struct sp_side *side,
		    const uint32_t *name);

/* has[frame] of each frame of a path on which the side allocated. */
void sp_match_mark(const struct sp_pair *pair, const struct sp_side *side,
		   bool *has);
