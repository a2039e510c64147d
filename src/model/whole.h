/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"

/*
 * What a profile lacks of its process, decided here and nowhere else: every
 * figure and everything that is written goes by it.  Where something is
 * missing nothing is exact, no interval has the width 0, and what was alive is
 * known up to a moment at most.
 */
struct sp_whole {
	bool is_cut;      /* the file ends before what its writer wrote */
	bool is_damaged;  /* parts of it cannot be read, or it is cut */
	bool is_full;     /* from a moment on nothing of it had room */
	bool is_low;      /* or may have had none: nobody could say so */
	bool is_starved;  /* more samples were dropped than chance hides */
	bool lacks_frees; /* the same of frees */
	bool is_turned; /* samples were discarded, but those of live objects */
	/* What was alive is known until then; SP_NEVER: to the end, 0: at no
	 * moment. */
	uint64_t known_ns;
	size_t n_parts;   /* processes */
	size_t n_lacking; /* of these: it is not known what of them is alive */
	size_t n_cut;     /* of these: the file is cut */
	/* Others are known: what is alive is at least theirs. */
	bool has_rest;
};

struct sp_whole sp_whole_of(const struct sp_profile *profile);

/* Does it lack nothing of what was recorded?  What it has discarded to keep its
 * size is no lack of what it shows. */
bool sp_whole_is_all(const struct sp_whole *whole);

/* May live bytes have been higher than ever in what is there? */
bool sp_whole_peak_is_least(const struct sp_whole *whole);

/* Is what was alive then (SP_NEVER: at the end) unknown, of a process at
 * least? */
bool sp_whole_is_unknown_at(const struct sp_whole *whole, uint64_t at_ns);

/* Is what is there of what was alive then only the least of it?  Also where
 * samples are missing that would have been kept, for their objects lived, when
 * those of their time were discarded. */
bool sp_whole_is_least_at(const struct sp_whole *whole, uint64_t at_ns);

/* Allocations that are in the totals but never had a chance to be recorded. */
uint64_t sp_profile_lost_samples(const struct sp_profile *profile);

/* With a period of 1, what may be in no sample at most, as its thread went on
 * while the process ended, runs, or was killed; INFINITY: nobody knows.  With
 * others the totals allow for it. */
double sp_whole_uncounted_bytes(const struct sp_profile *profile);

/* Is so small a part of the samples missing that the others hide it? */
bool sp_whole_may_lack(const struct sp_profile *profile, uint64_t lost);

/* Why live objects may be in no sample; of several processes the first that has
 * a reason. */
enum sp_unseen sp_profile_unseen(const struct sp_profile *profile);

/* Bytes that were allocated while sampling was off. */
uint64_t sp_profile_off_bytes(const struct sp_profile *profile);
