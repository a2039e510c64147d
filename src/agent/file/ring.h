/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_FILE_RING_H
#define SP_AGENT_FILE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/lane.h"
#include "format/layout.h"

/*
 * Which chunks of the file are permanent, and which belong to which segment of
 * a ring.
 *
 * What has to stay for good (modules, marks, totals) is in permanent chunks.
 * What comes with each sample and each free, and the stacks of the samples,
 * goes to the current segment, which is ended by a turn.  A segment is
 * *covered* once it has every sample that was alive at a moment within it, its
 * window: then whatever is older can do without the segments before it, and a
 * turn that needs their room discards them, the oldest first.
 */
#define SP_RING_CHUNKS_MAX 65536u /* 4 GiB */

/* All chunks are free but chunk 0; the file has that many.  Segment 1 begins,
 * and is covered.  Context: cold. */
void sp_ring_begin(uint64_t chunks);

/* A chunk for good, or 0: three quarters are permanent, or none is free.
 * *ret_used: it has been used before, and is not zero.  Context: sampled. */
uint64_t sp_ring_take_permanent(bool *ret_used);

/*
 * Likewise a chunk of `segment` for the lane that the caller holds, or 0: none
 * is free, or those that are may be needed to cover the segment (but not for
 * that: `covers`, nor for the first chunk of a lane in it).  The lane has it
 * from sp_ring_took() on, until it takes another.
 */
uint64_t sp_ring_take(struct sp_lane *lane, uint32_t segment, bool covers,
		      bool *ret_used);
void sp_ring_took(struct sp_lane *lane, uint64_t chunk);

/* Is there a chunk to be had, if only to cover the segment? */
bool sp_ring_has_room(void);

/* The segment that is written to now. */
uint32_t sp_ring_segment(void);

/* The latest one that is covered: the current one, or the one before. */
uint32_t sp_ring_covered(void);

/* 1 + the highest chunk that was ever taken. */
uint64_t sp_ring_extent(void);

/* The next chunk after that number of that segment, or 0. */
uint64_t sp_ring_next_of(uint32_t segment, uint64_t after);

/*
 * Is a turn due, and is it ours to make?  Due it is if the current segment is
 * covered and has its share of the file; `is_full`: or there is no room.  Then
 * *ret_window, of which `seq` and `check` are left alone, has to be in the file
 * before sp_ring_end_turn(true); it is all zero if nothing was discarded yet.
 * Without that (false) there is no turn.
 */
struct sp_ring_turn {
	uint64_t token;
	uint64_t from; /* ring.c: the range of segments before it, ... */
	uint64_t to;   /* ... and behind it */
};

bool sp_ring_begin_turn(bool is_full, struct sp_ring_turn *ret_turn,
			struct sp_window *ret_window);
/* The calling thread has left one for good (inside.h). */
void sp_ring_give_left(void);
/* Has nobody taken it over? */
bool sp_ring_has_turn(const struct sp_ring_turn *turn);
void sp_ring_end_turn(const struct sp_ring_turn *turn, bool is_recorded);

/* The current segment is covered, at the moment and with the totals given. */
void sp_ring_cover(uint32_t segment, const struct sp_window *window);

#endif
