/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_CHUNKS_H
#define SP_AGENT_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "format/encode.h"

/*
 * Records into the chunks of the file: the ring's (ring.h), of which each lane
 * has one, and permanent ones.
 */
#define SP_CHUNKS_POPULATE 16384u /* bytes backed by storage at a time */

/* A file of n chunks begins.  Context: cold. */
void sp_chunks_begin(uint64_t file_id, uint64_t n);

/* In a forked child: nobody has a chunk. */
void sp_chunks_reset(void);

/* See sp_writer_append; the same if `segment` is still the current one, to
 * cover it. */
bool sp_chunks_append(struct sp_lane *lane, const struct sp_record *record);
bool sp_chunks_append_to(struct sp_lane *lane, const struct sp_record *record,
			 uint32_t segment);

/* What `recorded` of a thread with that index is while its THREAD record is in
 * the file for good, or in the current segment. */
uint8_t sp_chunks_thread_mark(uint32_t index);

/* A permanent chunk for class totals; NULL: there is no room.  Context:
 * sampled. */
uint8_t *sp_chunks_take_classes(void);

/* Chunk n of a segment, to read what other threads have written, in its first
 * *ret_bytes; NULL: it has no records yet.  And leave it, for some time.
 * Context: sampled. */
const uint8_t *sp_chunks_read(uint64_t n, uint32_t segment, size_t *ret_bytes);
void sp_chunks_leave(uint64_t n);

#endif
