/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/match.h"

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
	size_t n_paths;
	/* Of each kind: there is a path of just these frames, where what is
	 * inlined would be.  Else one function has come in the place of
	 * another. */
	bool *is_whole;
	bool *is_chosen; /* of each kind, for sp_moved_is_real() */
	bool *paths;     /* likewise, of each path: in it, or alike */
};

/* To be made when all frames have the names that they are compared by.  0 and
 * *ret, to be released; -ENOMEM, and nothing to be released. */
int sp_moved_init(struct sp_moved *ret, const struct sp_pair *pair);

/* A change of what `changed` has, of each path: how it was tested. */
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
 */
int sp_moved_is_real(struct sp_moved *moved, const bool *changed,
		     const struct sp_moved_test *test);

/* Is nothing else alike? */
bool sp_moved_is_alone(struct sp_moved *moved, const bool *changed);

/* Which paths belong to the row of a key, to be freed (free()); NULL without
 * memory. */
bool *sp_moved_paths_of(const struct sp_moved *moved,
			const struct sp_keys *keys, uint32_t key);

void sp_moved_done(struct sp_moved *moved);
