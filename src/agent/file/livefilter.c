/* SPDX-License-Identifier: MIT */
#include "agent/file/livefilter.h"

#include <stdatomic.h>

#include "agent/file/livetable.h"

#include "agent/sys/poison.h"

/* Up to 1,664 samples fewer than 5 % of the counters are not zero.  Then each
 * sample has 8 of them at least, and 3 where so much is alive that a look for
 * what is not there costs less than memory. */
#define SMALL_TABLES 2u
#define LARGE        5u /* a generation, of 256 KiB */

static unsigned int choose_generation(unsigned int table)
{
	const size_t fill = sp_livetable_fill(table);
	const unsigned int least = table < SMALL_TABLES ? 2 * table : 2;
	const unsigned int g = sp_filter_generation(8 * fill, least);

	return g <= LARGE ? g : sp_filter_generation(3 * fill, LARGE);
}

/* Of each table once: every insert and take asks.  0: not yet. */
static _Atomic unsigned char known[SP_LIVETABLE_COUNT];

/* Generations before that one keep their pages. */
static _Atomic unsigned int first_released;

static unsigned int generation_of(unsigned int table)
{
	unsigned int g =
		atomic_load_explicit(&known[table], memory_order_relaxed);

	if (g)
		return g - 1;
	g = choose_generation(table);
	atomic_store_explicit(&known[table], (unsigned char)(g + 1),
			      memory_order_relaxed);
	return g;
}

bool sp_livefilter_have(unsigned int table)
{
	return sp_filter_have(generation_of(table));
}

bool sp_livefilter_is_same(unsigned int a, unsigned int b)
{
	return generation_of(a) == generation_of(b);
}

void sp_livefilter_use(unsigned int table)
{
	sp_filter_use(generation_of(table));
}

void sp_livefilter_use_first(unsigned int table)
{
	if (sp_filter_passes_none())
		sp_filter_use_first(generation_of(table));
}

/* `g` is that of `from`. */
static void count_others(unsigned int g, uint64_t address, unsigned int from,
			 unsigned int to, int by)
{
	for (unsigned int t = from + 1; t <= to; t++) {
		const unsigned int before = g;

		g = generation_of(t);
		if (g != before)
			sp_filter_adjust(g, address, by);
	}
}

void sp_livefilter_count_beyond(uint64_t address, unsigned int from,
				unsigned int to, int by)
{
	count_others(generation_of(from), address, from, to, by);
}

void sp_livefilter_count(uint64_t address, unsigned int from, unsigned int to,
			 int by)
{
	const unsigned int g = generation_of(from);

	sp_filter_adjust(g, address, by);
	count_others(g, address, from, to, by);
}

bool sp_livefilter_settle(unsigned int from, unsigned int to,
			  struct sp_livefilter_pages *pages)
{
	for (unsigned int t = from; t <= to; t++) {
		const unsigned int g = generation_of(t);

		if (!sp_filter_settle(g, &pages->settled[g]))
			return false;
	}
	return true;
}

bool sp_livefilter_release(unsigned int table,
			   struct sp_livefilter_pages *pages)
{
	const unsigned int end = generation_of(table);

	for (unsigned int g = atomic_load(&first_released); g < end; g++)
		if (!sp_filter_release(g, &pages->released[g]))
			return false;
	return true;
}

void sp_livefilter_keep(unsigned int table)
{
	atomic_store(&first_released, generation_of(table) + 1);
}
