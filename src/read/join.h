/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/saturate.h"
#include "model/profile.h"
#include "model/codemap.h"
#include "read/embedded_symbols.h"

/*
 * What several files say, as one profile: of a program and its children, or of
 * a fleet.
 *
 *   - Every sample stays as it is, with its period and its half, and is
 *     unbiased by itself; sums and variances of the files add up.
 *   - Modules are the same if path, build id, size and link address are;
 *     stacks if their frames and flags are.  Ids and threads are renumbered,
 *     files in the order given.
 *   - Totals, by class too if all files have them, and losses are added.
 *   - What was alive at the end of its process is alive "at the end"; at a
 *     moment of the run it is no more once its process has ended
 *     (sp_sample_gone_ns()).
 *   - RSS is the sum over the processes that were there, if all recorded it.
 *   - Facts are kept that all files agree on.
 */

enum sp_join_kind {
	SP_JOIN_THREADS,
	SP_JOIN_SAMPLES,
	SP_JOIN_STRETCHES,
	SP_JOIN_SNAPSHOTS,
	SP_JOIN_RSS,
	SP_JOIN_KINDS,
};

/* Zero-initialise. */
struct sp_join {
	struct sp_profile *p;
	struct sp_codemap code;
	struct sp_embedded stored;
	struct sp_join_file {
		/* Where its items are in the profile, and how many. */
		struct sp_join_span {
			size_t at, n;
		} spans[SP_JOIN_KINDS];
		uint64_t last_id;
		bool may_have_rss;
	} * files;
	size_t room[SP_JOIN_KINDS];
	size_t groups_room;
	size_t n_added;
	size_t damaged; /* the first file with a damage; n_parts: none */
};

/* `p` (borrowed) has room for n parts; its law, has_frees and start_unix_ns are
 * set, all else is zero.  0 or -ENOMEM. */
int sp_join_init(struct sp_join *join, struct sp_profile *p, size_t n);

/*
 * Add file number i, in any order, of which `last_id` is the largest id.  Its
 * part has start_ns and stop_ns, on the clock of all, as its samples and groups
 * have; other times are its own.  Its frames change, and its samples go.  0 or
 * -ENOMEM.
 */
int sp_join_add(struct sp_join *join, size_t i, struct sp_profile *file,
		uint64_t last_id);

/* All were added.  0 or -ENOMEM. */
int sp_join_finish(struct sp_join *join);

void sp_join_done(struct sp_join *join);

/* A time of a file on the clock of all; never SP_NEVER. */
static inline uint64_t sp_join_time(uint64_t time_ns, uint64_t start_ns)
{
	sp_sat_add(&time_ns, start_ns);
	return time_ns == SP_NEVER ? SP_NEVER - 1 : time_ns;
}

/* (join_rss.c) What the processes had together, once all are in order: none if
 * a process did not record it.  0 or -ENOMEM. */
int sp_join_sum_rss(struct sp_join *join);

/* The same of any profile whose rss is that of its parts, one after the other,
 * counts[i] of part i, at times of its own. */
int sp_join_add_up_rss(struct sp_profile *profile, const size_t *counts);
