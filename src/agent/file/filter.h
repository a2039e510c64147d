/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sys/arch.h"

/*
 * A counting filter in front of the live set (liveset.h): an array of bytes
 * indexed by a hash of the address.  A byte with its highest bit proves that
 * the address is not in the set, which is all that the free of an unsampled
 * object has to know.  A byte that is zero proves nothing, so memory may
 * vanish: in a forked child, or when it goes back to the kernel.
 *
 * It has generations, each with twice as many counters as the one before.
 * Which of them an address is counted in is the live set's affair.
 */
#define SP_FILTER_BITS        13u /* log2 of the counters of the first */
#define SP_FILTER_GENERATIONS 14u /* the last has 64 MiB */

/*
 * The filter in one word: the address of its counters, whose low six bits are
 * also the shift that makes an index of a hash.  Size and counters change
 * together.  Never NULL.
 */
extern const uint8_t *sp_filter __attribute__((visibility("hidden")));

#define SP_FILTER_FACTOR 0x5851f42du
#define SP_FILTER_TERM   0x2545f491u

/* The hash is a quadratic polynomial, since the multiples of one constant are
 * as regular as the addresses of one size are, and may meet in few counters.
 * Context: hot. */
static inline const uint8_t *sp_filter_counter(const void *p)
{
	const uint8_t *counters = __atomic_load_n(&sp_filter, __ATOMIC_ACQUIRE);
	uint64_t a = (uintptr_t)p;
	uint64_t h = (a * SP_FILTER_FACTOR + SP_FILTER_TERM) * a;

	return &counters[h >> ((uintptr_t)counters & 63)];
}

/* May p be in the set?  Context: hot. */
static inline bool sp_filter_may_have(const void *p)
{
	return sp_arch_is_low(sp_filter_counter(p));
}

/* The least generation with so many counters, not below `least`; the last, if
 * there is none. */
unsigned int sp_filter_generation(size_t counters, unsigned int least);

/* The counters of a generation. */
size_t sp_filter_counters_of(unsigned int generation);

/* Have memory for it: false if there is none.  Context: sampled. */
bool sp_filter_have(unsigned int generation);

/* Of some pages of it, from *pages on, which is moved on: what was not counted
 * so far is not in the set.  True: of all pages.  Not after any was given back.
 * Context: sampled. */
bool sp_filter_settle(unsigned int generation, unsigned int *pages);

/* Give back some pages, from *pages on, which is moved on; true: all are.  They
 * prove nothing any more.  Context: sampled. */
bool sp_filter_release(unsigned int generation, unsigned int *pages);

/* Count the address up or down by 1 in a generation that there is; not below
 * zero, which a child may meet, and not beyond 63, where a counter stays.
 * Context: sampled. */
void sp_filter_adjust(unsigned int generation, uint64_t address, int by);

/* From now on frees look in that generation; `first`: if nothing was in the set
 * up to now. */
void sp_filter_use(unsigned int generation);
void sp_filter_use_first(unsigned int generation);

/* Does it say that nothing is in the set?  Context: sampled. */
bool sp_filter_passes_none(void);

/* From now on no address is in the set, or every one may be, until one of the
 * three is called again.  Context: cold. */
void sp_filter_pass_none(void);
void sp_filter_pass_all(void);
