/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "compare/match.h"
#include "compare/names.h"

/*
 * Warnings about a comparison of two sides, one sentence each.  They may
 * contain untrusted names.
 */
struct sp_caveats {
	char note[8][256];
	size_t n_notes;
	bool other_program;  /* the sides are of programs of different names */
	bool old_incomplete; /* estimates are of less than all */
	bool new_incomplete;
	bool old_is_least; /* the exact totals, too */
	bool new_is_least;
	bool doubtful;  /* samples were lost: estimates may be too low */
	bool unsampled; /* no samples cover a part of a run */
	bool lacking;   /* a run lacks some of what was recorded: no change is
			 * known within limits */
	bool lacks_totals; /* totals of a run are lower limits */
	/* Else they may lack as much of bytes, and no more objects, in a run:
	 * threads had not published it when their process ended. */
	double old_missing_max;
	double new_missing_max;
	bool old_has_frees;
	bool new_has_frees;
	struct sp_names names;
};

/* Add a sentence.  If there is no room, it is dropped. */
__attribute__((format(printf, 2, 3))) void sp_caveats_note(
	struct sp_caveats *caveats, const char *format, ...);

/* 0 and *ret, to be released; -ENOMEM. */
int sp_caveats_init(struct sp_caveats *ret, const struct sp_pair *pair);

/* The limits of a change between the sides, of exact totals or estimates. */
struct sp_interval sp_caveats_limits(const struct sp_caveats *caveats,
				     bool is_exact, struct sp_interval change);

void sp_caveats_done(struct sp_caveats *caveats);

/* sp_match_lambdas(), and a sentence for each family; 0 or -ENOMEM. */
int sp_caveats_lambdas(struct sp_caveats *caveats, const struct sp_pair *pair);
