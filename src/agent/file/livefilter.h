/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/filter.h"

/*
 * The filter (filter.h) of the live set's tables (livetable.h): each table has
 * a generation, which others may have too.
 */

/* Zero at first: how much of each generation was touched. */
struct sp_livefilter_pages {
	unsigned int touched[SP_FILTER_GENERATIONS];
};

/* Have memory for that of the table; false: there is none.  Context: sampled.
 */
bool sp_livefilter_have(unsigned int table);

/* Have both tables the same?  Then all between them have it. */
bool sp_livefilter_is_same(unsigned int a, unsigned int b);

/* From now on frees look in that of the table. */
void sp_livefilter_use(unsigned int table);

/* Count the address in all generations of the tables `from` up to `to`, or take
 * it back; `beyond`: in those only that are not that of `from`, too.  Context:
 * sampled. */
void sp_livefilter_count(uint64_t address, unsigned int from, unsigned int to,
			 int by);
void sp_livefilter_count_beyond(uint64_t address, unsigned int from,
				unsigned int to, int by);

/* Touch some pages of those of the tables behind `from`, up to `to`; true: none
 * of them is fresh.  What is moved is counted in pages that lie anywhere.
 * Context: sampled. */
bool sp_livefilter_touch(unsigned int from, unsigned int to,
			 struct sp_livefilter_pages *pages);
