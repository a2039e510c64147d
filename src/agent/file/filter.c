/* SPDX-License-Identifier: MIT */
#include "agent/file/filter.h"

#include <stdatomic.h>

#include "agent/sys/maponce.h"

#include "agent/sys/poison.h"

#define COUNTER_MAX 255u
#define PAGE_BYTES  4096u
#define TOUCHED     8u /* pages at once: some 12 us for the kernel */

/* Set once, from NULL, by whoever first has the memory. */
static void *_Atomic generations[SP_FILTER_GENERATIONS];

/* Two counters for a shift of 63: nothing is in the set. */
static const uint8_t nothing[128] __attribute__((aligned(64)));
const uint8_t *sp_filter = nothing + 63;

/* Likewise: everything is. */
static const uint8_t everything[128]
	__attribute__((aligned(64))) = {[63] = 1, [64] = 1};

typedef _Atomic uint8_t counter;

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

/* Adding nothing is a store that no other thread notices. */
bool sp_filter_touch(unsigned int generation, unsigned int *pages)
{
	const size_t bytes = sp_filter_counters_of(generation) + 64;
	const unsigned int end =
		(unsigned int)((bytes + PAGE_BYTES - 1) / PAGE_BYTES);
	counter *map = atomic_load_explicit(&generations[generation],
					    memory_order_acquire);

	for (unsigned int i = 0; i < TOUCHED && *pages < end; i++)
		atomic_fetch_add_explicit(&map[PAGE_BYTES * (*pages)++], 0,
					  memory_order_relaxed);
	return *pages == end;
}

static counter *counter_of(unsigned int generation, uint64_t address)
{
	uint64_t h = (address * SP_FILTER_FACTOR + SP_FILTER_TERM) * address;

	return (counter *)first_counter(generation) +
	       (h >> shift_of(generation));
}

void sp_filter_adjust(unsigned int generation, uint64_t address, int by)
{
	counter *c = counter_of(generation, address);
	uint8_t n = atomic_load_explicit(c, memory_order_relaxed);

	while (n != COUNTER_MAX && n + by >= 0 &&
	       !atomic_compare_exchange_weak_explicit(c, &n, (uint8_t)(n + by),
						      memory_order_relaxed,
						      memory_order_relaxed))
		;
}

void sp_filter_use(unsigned int generation)
{
	const uint8_t *counters = first_counter(generation);

	__atomic_store_n(&sp_filter, counters, __ATOMIC_RELEASE);
}

void sp_filter_pass_none(void)
{
	__atomic_store_n(&sp_filter, nothing + 63, __ATOMIC_RELEASE);
}

void sp_filter_pass_all(void)
{
	__atomic_store_n(&sp_filter, everything + 63, __ATOMIC_RELEASE);
}
