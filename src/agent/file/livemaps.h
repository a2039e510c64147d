/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/lane.h"
#include "base/spans.h"

/*
 * Which mappings of the program are there now: a table of fixed size, from
 * which they are written into each new segment of the file (rewrite_live.h), so
 * that the segments before can be discarded.
 *
 * One thread at a time changes the table.  No thread waits for it: one that
 * finds it taken leaves its change in a queue (mapqueue.h), and the holder
 * applies it before it is done.  So does a signal handler that interrupted the
 * holder.
 */
#define SP_LIVEMAPS_MAX 16384u
#define SP_LIVEMAPS_PARTS                                                      \
	64u /* of mappings, that one call makes accessible                     \
	     */

/* A file of so many bytes takes so many of them: what is written into a segment
 * must not fill the file.  Context: cold. */
void sp_livemaps_begin(uint64_t max_file_bytes);

/* In a forked child: none is known. */
void sp_livemaps_reset(void);

/* The number of the next call, from 1: an unmapping takes its number before the
 * call of the kernel, a mapping behind it.  So of two calls about an address
 * the one that came first has the smaller number.  Context: any. */
uint64_t sp_livemaps_number(void);

/* May any be there, or wait to be?  Context: any. */
bool sp_livemaps_any(void);

/* A mapping that was made, and whose record is in the segment that it names:
 * instead of older ones at its addresses.  0: it is in the table, or waits to
 * be; -ENOSPC: there is no room; -EBUSY: too many wait.  Context: any. */
int sp_livemaps_put(const struct sp_span *span);

/*
 * Nothing that was mapped before that number is at [start, end) any more.  How
 * many pieces were, or -EAGAIN: this waits, and that is not known; -ENOSPC: a
 * part that is still mapped found no room and is forgotten; -EBUSY: too many
 * wait.  Context: any.
 */
int sp_livemaps_cut(uint64_t start, uint64_t end, uint64_t number);

/* The same, and if anything was there it is that mapping now, which has no
 * record yet, but its stack in the segment that it names: see
 * sp_livemaps_write().  Another call may have mapped over the old place since:
 * the last 64 of these are known.  0, or -EBUSY: too many wait.  Context: any.
 */
int sp_livemaps_move(uint64_t start, uint64_t end, uint64_t number,
		     const struct sp_span *span);

/* Likewise what was mapped without access in the range of that mapping, in up
 * to SP_LIVEMAPS_PARTS parts, is part of that mapping now. */
int sp_livemaps_open(const struct sp_span *span);

/* The first part of a mapping in [start, end) that has all of these flags, cut
 * to that range: 1; 0: there is none; -EAGAIN: the table is taken.  Context:
 * any. */
int sp_livemaps_find(uint64_t start, uint64_t end, uint32_t flags,
		     struct sp_span *ret);

/* What is left of that mapping has its record, and that stack, in the segment
 * that it names now.  Context: any. */
void sp_livemaps_set_place(const struct sp_span *span);

/* Have some mappings no record yet?  And write these; they may have become so
 * by another thread's change.  Context of the second: sampled. */
bool sp_livemaps_owes(void);
void sp_livemaps_write(struct sp_lane *lane);

/*
 * Some of what is mapped, into the segment after `from`; true: all of it is
 * there.  Context: sampled.
 */
bool sp_livemaps_rewrite(struct sp_lane *lane, uint32_t from);

/* The calling thread has left one of these in the middle (inside.h): the table
 * is empty then. */
void sp_livemaps_give_left(void);
