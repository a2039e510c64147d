/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/lane.h"
#include "format/encode.h"

/*
 * Records into the chunks of the file: the ring's (ring.h), of which each lane
 * has one, and permanent ones.
 */
#define SP_CHUNKS_POPULATE 16384u /* bytes backed by storage at a time */

/* A file of n chunks begins; `rotates` as in ring.h.  Context: cold. */
void sp_chunks_begin(uint64_t file_id, uint64_t n, bool rotates);

/* Has a file without rotation reached its limit, or filled its disk?  Then it
 * takes no more samples. */
bool sp_chunks_is_full(void);

/* No chunk can be taken from now on.  Returns 1 + the highest that was ever
 * taken.  Records that do not fit into the chunks that threads have are lost,
 * and counted.  Context: cold. */
uint64_t sp_chunks_end(void);

/* In a forked child: no lane has a chunk. */
void sp_chunks_reset(void);

/* See sp_writer_append. */
bool sp_chunks_append(struct sp_lane *lane, const struct sp_record *record);

/* The same, but only as long as `segment`, if that is not 0, is the current
 * one.
 */
bool sp_chunks_append_to(struct sp_lane *lane, const struct sp_record *record,
			 uint32_t segment);

/* A record that helps to complete `segment`: it may use the room that is
 * reserved for that, and is counted as such (sp_ring_rewrote()). */
bool sp_chunks_rewrite(struct sp_lane *lane, const struct sp_record *record,
		       uint32_t segment);

/* A STACK of lane->frames[0..n): its id, in the segment of the lane's tail; 0:
 * there is no room.  With `completes` into that segment alone, as
 * sp_chunks_rewrite(). */
uint32_t sp_chunks_append_stack(struct sp_lane *lane, uint32_t flags,
				unsigned int n, uint32_t completes);

/* Such a STACK of that segment into lane->frames; false: it is not there.
 * Context: sampled. */
bool sp_chunks_read_stack(struct sp_lane *lane, uint32_t id, uint32_t segment,
			  uint32_t *ret_flags, unsigned int *ret_n);

/* What `recorded` of a thread with that index is while its THREAD record is in
 * the file for good, or in the current segment. */
uint8_t sp_chunks_thread_mark(uint32_t index);

/* A permanent chunk for class totals; NULL: there is no room.  *begun is 0 at
 * first, and has the chunk afterwards: if this is left by siglongjmp, the next
 * call does not take another one.  Context: sampled. */
uint8_t *sp_chunks_take_size_counts(_Atomic uint64_t *begun);

/* Chunk n of a segment, to read what other threads have written into its first
 * *ret_bytes; NULL: it has no records yet.  The second function ends the
 * reading, for a while.  Context: sampled. */
const uint8_t *sp_chunks_read(uint64_t n, uint32_t segment, size_t *ret_bytes);
void sp_chunks_leave(uint64_t n);
