/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/stack.h"
#include "agent/unwind/lane.h"

/*
 * Which stacks the current segment of the file has, so that each is written
 * there once.  It is a cache: what it has forgotten is written again, under
 * another id.  A stack's record is in the file before any thread gets its id.
 */
struct sp_stack_place {
	uint32_t id;      /* 0: none */
	uint32_t segment; /* that has its record; samples of others may not
			     name it (ring.h) */
};

/*
 * By its return addresses: no id if the current segment does not have it, as
 * far as is known, or if it is not permanent.  Context: sampled.
 */
struct sp_stack_place sp_stacktab_find(const struct sp_stack_walk *walk);

/* By what it was resolved to, lane->frames[0..walk->n).  No id if there is no
 * room in the file.  Context: sampled. */
struct sp_stack_place sp_stacktab_intern(struct sp_lane *lane,
					 const struct sp_stack_walk *walk);

/* The stack at `frame`, at most that deep: found, or resolved and put there.
 * Context: sampled. */
static inline struct sp_stack_place sp_stacktab_place(
	struct sp_lane *lane, unsigned int depth,
	const struct sp_call_frame *frame)
{
	struct sp_stack_walk walk;
	struct sp_stack_place place;

	sp_stack_walk(lane, depth, frame, &walk);
	place = sp_stacktab_find(&walk);
	if (place.id)
		return place;
	sp_stack_resolve(lane, depth, frame, &walk);
	return sp_stacktab_intern(lane, &walk);
}

/*
 * Rewrite a stack of segment `from` into the next one, to complete that: *id
 * is its id there, 0 if the record is not to be found.  False, and *id is what
 * it was: the segment has ended, or there is no room.  Uses lane->frames.
 * Context: sampled.
 */
bool sp_stacktab_rewrite(struct sp_lane *lane, uint32_t from, uint64_t *id);

/* In a forked child: its file knows no stacks yet. */
void sp_stacktab_reset(void);
