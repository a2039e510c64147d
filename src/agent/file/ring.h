/* SPDX-License-Identifier: MIT */
#pragma once

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
 * goes to the current segment, which is ended by a rotation.  A segment is
 * *complete* once it has every sample that was alive at a moment within it, its
 * window.  Then the segments before it are no longer needed: a rotation that
 * needs their room discards them, the oldest first.
 */
#define SP_RING_CHUNKS_MAX 65536u /* 4 GiB */

/* All chunks are free but chunk 0; the file has that many.  Segment 1 begins,
 * and is complete.  Without `rotates` it never ends: there may be more chunks
 * than SP_RING_CHUNKS_MAX, and a file that is full takes no more samples.
 * Context: cold. */
void sp_ring_begin(uint64_t chunks, bool rotates);

/* A chunk for good, or 0: three quarters are permanent, or none is free.
 * *ret_used: it has been used before, and is not zero.  Context: sampled. */
uint64_t sp_ring_take_permanent(bool *ret_used);

/*
 * Likewise a chunk of `segment` for the lane that the caller holds, or 0: none
 * is free, or those that are may be needed to complete the segment (but not for
 * that: `completes`, nor for the first chunk of a lane in it).  The lane has it
 * from sp_ring_took() on, until it takes another.
 */
uint64_t sp_ring_take(struct sp_lane *lane, uint32_t segment, bool completes,
		      bool *ret_used);
void sp_ring_took(struct sp_lane *lane, uint64_t chunk);

/* Is there a chunk to be had, if only to complete the segment? */
bool sp_ring_has_room(void);

/* The segment that is written to now. */
uint32_t sp_ring_segment(void);

/* The same, if it is complete, and so no pass over the one before is under way;
 * else 0. */
uint32_t sp_ring_at_rest(void);

/* The latest one that is complete: the current one, or the one before. */
uint32_t sp_ring_complete(void);

/* 1 + the highest chunk that was ever taken. */
uint64_t sp_ring_extent(void);

/* From now on only chunks that were taken before can be taken.  Returns 1 + the
 * highest of these; that does not change any more.  Context: any. */
uint64_t sp_ring_close(void);

/* The next chunk after that number of that segment, or 0. */
uint64_t sp_ring_next_of(uint32_t segment, uint64_t after);

/*
 * Is a rotation due, and does this thread make it?  A rotation is due if the
 * current segment is complete and has its share of the file; with `is_full`
 * also if there is no room.  If true, the caller writes *ret_window (but for
 * `seq` and `check`, which stay as they are) to the file, then calls
 * sp_ring_end_rotation(true); *ret_window is all zero if nothing was discarded
 * yet.  sp_ring_end_rotation(false) gives the rotation up.
 */
struct sp_ring_rotation {
	uint64_t token;
	uint64_t from; /* ring.c: the range of segments before it, ... */
	uint64_t to;   /* ... and behind it */
};

bool sp_ring_begin_rotation(bool is_full, struct sp_ring_rotation *ret_rotation,
			    struct sp_window *ret_window);
/* The calling thread has left one for good (inside.h). */
void sp_ring_give_left(void);
/* Does this thread still have it? */
bool sp_ring_has_rotation(const struct sp_ring_rotation *rotation);
void sp_ring_end_rotation(const struct sp_ring_rotation *rotation,
			  bool is_recorded);

/* All that is alive of that segment was rewritten from its chunks below that
 * number; UINT32_MAX: from all.  Too low means less room for others, no harm.
 * Context: sampled. */
void sp_ring_passed(uint32_t segment, uint32_t chunk);

/* So many bytes of the current segment, if that is `segment`, are what a pass
 * wrote.  Context: sampled. */
void sp_ring_rewrote(uint32_t segment, uint32_t bytes);

/* The current segment is complete, at the moment and with the totals given. */
void sp_ring_set_complete(uint32_t segment, const struct sp_window *window);

/* How much of the room for samples, in percent, was rewritten into the segment
 * that was passed last: new samples of that time are not in it. */
unsigned int sp_ring_rewritten_percent(void);
