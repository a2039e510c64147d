/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/unwind/lane.h"
#include "base/spans.h"

/*
 * Which mappings of the program are there now: a table of fixed size, from
 * which they are written into each new segment of the file (rewrite_live.h), so
 * that the segments before can be discarded.
 *
 * The table has one lock, which is waited for a bounded time, and never by a
 * signal handler that interrupted its holder.  Without it nothing is done, and
 * the caller counts a loss.
 */
#define SP_LIVEMAPS_MAX 16384u

/* A file of so many bytes takes so many of them: what is written into a segment
 * must not fill the file.  Context: cold. */
void sp_livemaps_begin(uint64_t max_file_bytes);

/* In a forked child: none is known. */
void sp_livemaps_reset(void);

/* The number of the next call, from 1: an unmapping takes its number before the
 * call of the kernel, a mapping behind it.  So of two calls about an address
 * the one that came first has the smaller number.  Context: any. */
uint64_t sp_livemaps_number(void);

/* Is any there?  Without a lock.  Context: any. */
bool sp_livemaps_any(void);

/* A mapping that was made: instead of older ones at its addresses.  False: it
 * is not in the table.  Context: any. */
bool sp_livemaps_put(const struct sp_span *span);

/*
 * Nothing that was mapped before that number is at [start, end) any more.  fn,
 * which may be NULL, is told of each piece, under the lock.  The number of
 * pieces, or -EBUSY without the lock, or -ENOSPC if a part that is still mapped
 * found no room and is forgotten.  Context: any.
 */
int sp_livemaps_cut(uint64_t start, uint64_t end, uint64_t number,
		    sp_span_fn *fn, void *arg);

/* The first part of a mapping in [start, end) that has all of these flags, cut
 * to that range; false: there is none, or no lock.  Context: any. */
bool sp_livemaps_find(uint64_t start, uint64_t end, uint32_t flags,
		      struct sp_span *ret);

/* What is left of that mapping has its record, and that stack, in the segment
 * that it names now. */
void sp_livemaps_set_place(const struct sp_span *span);

/*
 * Some of what is mapped, into the segment after `from`; true: all of it is
 * there.  Context: sampled.
 */
bool sp_livemaps_rewrite(struct sp_lane *lane, uint32_t from);

/* The calling thread has left one of these in the middle (inside.h): the table
 * is empty then. */
void sp_livemaps_give_left(void);
