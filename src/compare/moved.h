/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/match.h"
#include "compare/path_runs.h"

/*
 * A function that is inlined has no frame, unless debug information tells: with
 * other flags of a build it appears, or goes, and its bytes are its caller's.
 * So paths are alike if they are the same without the frames that one side
 * lacks and that can have been inlined there, each into a caller of its module.
 * What changed has to have changed together with all paths that are alike, or
 * it only moved between them.
 */
struct sp_moved {
	const struct sp_pair *pair;
	uint32_t *kind; /* of each path; paths that are alike have the same */
	size_t n_paths, n_kinds;
	/* Of each kind: there is a path of just these frames, where what is
	 * inlined would be.  Else one function has come in the place of
	 * another. */
	bool *is_whole;
	/* Paths by kind; first[n_kinds] ends the last. */
	size_t *first;
	uint32_t *by_kind;
	size_t *n_changed; /* of each kind, for sp_moved_is_real() */
	/* What sums are made of, for one sp_match_of after the other. */
	struct sp_match_of of;
	bool has_sides;
	struct sp_moved_side {
		struct sp_path_runs runs;
		struct sp_moved_kind *kinds; /* those that were asked for */
		struct sp_acc *accs;         /* of each run */
	} old, new;
	uint64_t n_added; /* what was added up so far: the cost, for tests */
};

/* To be made when all frames have the names that they are compared by.  0 and
 * *ret, to be released; -ENOMEM, and nothing to be released. */
int sp_moved_init(struct sp_moved *ret, const struct sp_pair *pair);

/* A change of what some paths have: how it was tested. */
struct sp_moved_test {
	const struct sp_match_of *of;
	struct sp_allowance allowance;
	bool is_down;
	const struct sp_run_noise *noise;
	double p;
};

/*
 * Is it beyond the allowance together with all that is alike, too, and by half
 * of the change at least?  The allowance's share is of the changed paths alone.
 * 1, 0 or -ENOMEM.
 *
 * A call costs what the changed paths have in all runs, and of each kind that
 * they are of one sum for each run; what a kind has is added up once.
 */
int sp_moved_is_real(struct sp_moved *moved, const struct sp_path_list *changed,
		     const struct sp_moved_test *test);

/* Is nothing else alike? */
bool sp_moved_is_alone(struct sp_moved *moved,
		       const struct sp_path_list *changed);

void sp_moved_done(struct sp_moved *moved);
