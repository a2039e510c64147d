/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/match.h"
#include "compare/path_runs.h"

/*
 * An inlined function has no frame, unless debug information has one.  With
 * other compiler flags its frame appears or disappears, and its bytes are its
 * caller's.  So two paths are alike if they are equal without the frames that
 * one side lacks and that can have been inlined there, each into a caller of
 * its module.  A change is real only if the sum of all alike paths changed,
 * too; otherwise bytes only moved between them.
 */
struct sp_moved {
	const struct sp_pair *pair;
	uint32_t *kind; /* of each path; paths that are alike have the same */
	size_t n_paths, n_kinds;
	/* Of each kind: there is a path of just these frames, to which inlined
	 * functions would add their bytes.  If not, one function took the place
	 * of another. */
	bool *is_whole;
	/* Paths by kind; first[n_kinds] ends the last. */
	size_t *first;
	uint32_t *by_kind;
	size_t *n_changed; /* of each kind, for sp_moved_is_real() */
	/* A cache of sums, for one sp_match_of at a time. */
	struct sp_match_of of;
	bool has_sides;
	struct sp_moved_side {
		struct sp_path_runs runs;
		struct sp_moved_kind *kinds; /* those that were asked for */
		struct sp_acc *accs;         /* of each run */
	} old, new;
	uint64_t n_added; /* what was added up so far: the cost, for tests */
};

/* Call it when all frames have the names by which they are compared. 0 and
 * *ret, to be released; -ENOMEM, and nothing to be released. */
int sp_moved_init(struct sp_moved *ret, const struct sp_pair *pair);

/* How the change of some paths was tested. */
struct sp_moved_test {
	const struct sp_match_of *of;
	struct sp_allowance allowance;
	bool is_down;
	const struct sp_run_noise *noise;
	double p;
};

/*
 * Is the sum of all alike paths also beyond the allowance, and by at least half
 * of the change?  A relative allowance refers to the changed paths alone. 1, 0
 * or -ENOMEM.
 *
 * A call costs one addition for each row that the changed paths have in the
 * runs, and one for each of their kinds in each run.  The sum of a kind is made
 * once.
 */
int sp_moved_is_real(struct sp_moved *moved, const struct sp_path_list *changed,
		     const struct sp_moved_test *test);

/* Is no other path alike? */
bool sp_moved_is_alone(struct sp_moved *moved,
		       const struct sp_path_list *changed);

void sp_moved_done(struct sp_moved *moved);
