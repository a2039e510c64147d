/* SPDX-License-Identifier: MIT */
#include "agent/file/filter.h"

#include <stdatomic.h>

#include "agent/sys/maponce.h"

#include "agent/sys/poison.h"

/*
 * A counter is 0: nothing is known; NONE; a count up to COUNTER_MAX; or UNKNOWN
 * and what was counted where nothing is known.  The last two have no highest
 * bit.
 */
#define NONE        0x80u
#define UNKNOWN     0x40u
#define COUNTER_MAX 63u
#define PAGE_BYTES  4096u
#define SETTLED     2u /* pages at once: some us */

/* Set once, from NULL, by whoever first has the memory. */
static void *_Atomic generations[SP_FILTER_GENERATIONS];

/* Two counters for a shift of 63: nothing is in the set. */
static const uint8_t nothing[128]
	__attribute__((aligned(64))) = {[63] = NONE, [64] = NONE};
const uint8_t *sp_filter = nothing + 63;

/* Likewise: everything is. */
static const uint8_t everything[128] __attribute__((aligned(64)));

typedef _Atomic uint8_t counter;
typedef _Atomic uint64_t __attribute__((may_alias)) eight_counters;

static unsigned int shift_of(unsigned int generation)
{
	return 64 - (SP_FILTER_BITS + generation);
}

unsigned int sp_filter_generation(size_t counters, unsigned int least)
{
	const size_t least_counters = (size_t)1 << (SP_FILTER_BITS + least);
	unsigned int g = least;

	if (counters > least_counters)
		g = 64 - (unsigned int)__builtin_clzll(counters - 1) -
		    SP_FILTER_BITS;
	return g < SP_FILTER_GENERATIONS ? g : SP_FILTER_GENERATIONS - 1;
}

size_t sp_filter_counters_of(unsigned int generation)
{
	return (size_t)1 << (64 - shift_of(generation));
}

/* The counters begin at the shift. */
bool sp_filter_have(unsigned int generation)
{
	return sp_map_once(&generations[generation],
			   sp_filter_counters_of(generation) + 64);
}

static void *first_counter(unsigned int generation)
{
	char *map = atomic_load_explicit(&generations[generation],
					 memory_order_acquire);

	return map + shift_of(generation);
}

static size_t bytes_of(unsigned int generation)
{
	return sp_filter_counters_of(generation) + 64;
}

static bool is_unknown(uint8_t c)
{
	return c == 0 || (c & UNKNOWN);
}

/* What a counter is when what is known is what was counted. */
static uint8_t settled_counter(uint8_t c)
{
	const uint8_t n = c & COUNTER_MAX;

	if (!is_unknown(c))
		return c;
	return n ? n : NONE;
}

static uint64_t all_settled(uint64_t eight)
{
	uint64_t ret = 0;

	if (!eight)
		return NONE * 0x0101010101010101ull;
	for (unsigned int i = 0; i < 64; i += 8)
		ret |= (uint64_t)settled_counter((uint8_t)(eight >> i)) << i;
	return ret;
}

/* Others count meanwhile. */
static void settle_eight(eight_counters *at)
{
	uint64_t w = atomic_load_explicit(at, memory_order_relaxed), new;

	do {
		new = all_settled(w);
		if (new == w)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		at, &w, new, memory_order_relaxed, memory_order_relaxed));
}

/* The last page may have fewer. */
static void settle_page(unsigned int generation, size_t page)
{
	const size_t per_page = PAGE_BYTES / sizeof(uint64_t);
	const size_t n = bytes_of(generation) / sizeof(uint64_t);
	const size_t end = (page + 1) * per_page;
	eight_counters *map = atomic_load_explicit(&generations[generation],
						   memory_order_acquire);

	for (size_t i = page * per_page; i < end && i < n; i++)
		settle_eight(&map[i]);
}

bool sp_filter_settle(unsigned int generation, unsigned int *pages)
{
	const size_t bytes = bytes_of(generation);

	for (unsigned int i = 0;
	     i < SETTLED && (size_t)*pages * PAGE_BYTES < bytes; i++, ++*pages)
		settle_page(generation, *pages);
	return (size_t)*pages * PAGE_BYTES >= bytes;
}

bool sp_filter_release(unsigned int generation, unsigned int *pages)
{
	const size_t bytes = bytes_of(generation);
	const size_t from = (size_t)*pages * PAGE_BYTES;
	const size_t piece = sp_sys_piece_bytes();
	char *map = atomic_load_explicit(&generations[generation],
					 memory_order_acquire);

	if (!map || from >= bytes)
		return true;
	SP_SYS3(madvise, map + from,
		piece < bytes - from ? piece : bytes - from, MADV_DONTNEED);
	*pages += (unsigned int)(piece / PAGE_BYTES);
	return from + piece >= bytes;
}

static counter *counter_of(unsigned int generation, uint64_t address)
{
	uint64_t h = (address * SP_FILTER_FACTOR + SP_FILTER_TERM) * address;

	return (counter *)first_counter(generation) +
	       (h >> shift_of(generation));
}

static uint8_t adjusted_counter(uint8_t c, int by)
{
	const unsigned int n = c & COUNTER_MAX;
	const unsigned int sum = n + (unsigned int)by;

	if (n == COUNTER_MAX || sum > COUNTER_MAX)
		return c;
	if (is_unknown(c))
		return (uint8_t)(UNKNOWN | sum);
	return (uint8_t)(sum ? sum : NONE);
}

void sp_filter_adjust(unsigned int generation, uint64_t address, int by)
{
	counter *at = counter_of(generation, address);
	uint8_t c = atomic_load_explicit(at, memory_order_relaxed), new;

	do {
		new = adjusted_counter(c, by);
		if (new == c)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		at, &c, new, memory_order_relaxed, memory_order_relaxed));
}

void sp_filter_use(unsigned int generation)
{
	const uint8_t *counters = first_counter(generation);

	__atomic_store_n(&sp_filter, counters, __ATOMIC_RELEASE);
}

void sp_filter_use_first(unsigned int generation)
{
	const uint8_t *none = nothing + 63;

	__atomic_compare_exchange_n(&sp_filter, &none,
				    first_counter(generation), false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool sp_filter_passes_none(void)
{
	return __atomic_load_n(&sp_filter, __ATOMIC_RELAXED) == nothing + 63;
}

void sp_filter_pass_none(void)
{
	__atomic_store_n(&sp_filter, nothing + 63, __ATOMIC_RELEASE);
}

void sp_filter_pass_all(void)
{
	__atomic_store_n(&sp_filter, everything + 63, __ATOMIC_RELEASE);
}
