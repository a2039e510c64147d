/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/filter.h"

/*
 * The filter (filter.h) of the live set's tables (livetable.h): each table has
 * a generation, which others may have too.
 */

/* Zero at first: how much of each generation was settled, and given back. */
struct sp_livefilter_pages {
	unsigned int settled[SP_FILTER_GENERATIONS];
	unsigned int released[SP_FILTER_GENERATIONS];
};

/* Have memory for that of the table; false: there is none.  Context: sampled.
 */
bool sp_livefilter_have(unsigned int table);

/* Have both tables the same?  Then all between them have it. */
bool sp_livefilter_is_same(unsigned int a, unsigned int b);

/* From now on frees look in that of the table; `first`: if nothing was in the
 * set up to now. */
void sp_livefilter_use(unsigned int table);
void sp_livefilter_use_first(unsigned int table);

/* Count the address in all generations of the tables `from` up to `to`, or take
 * it back; `beyond`: in those only that are not that of `from`, too.  Context:
 * sampled. */
void sp_livefilter_count(uint64_t address, unsigned int from, unsigned int to,
			 int by);
void sp_livefilter_count_beyond(uint64_t address, unsigned int from,
				unsigned int to, int by);

/* Settle some pages of those of the tables `from` up to `to`; true: all are.
 * Context: sampled. */
bool sp_livefilter_settle(unsigned int from, unsigned int to,
			  struct sp_livefilter_pages *pages);

/* Give back some pages of the generations before that of the table, which are
 * settled no more; true: all.  Context: sampled. */
bool sp_livefilter_release(unsigned int table,
			   struct sp_livefilter_pages *pages);

/* In a forked child: what its parent was about to settle up to that table is
 * not given back. */
void sp_livefilter_keep(unsigned int table);
