/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/sys/arch.h"
#include "format/layout.h"

/*
 * Exact totals by size, for each thread slot its own: one counter for each
 * size up to 1 KiB, so that the fast path adds one number; bytes and objects of
 * the larger classes.  Only the owner writes; anyone may read.
 */
#define SP_SIZE_COUNTS_SMALL_MAX 1024u

struct sp_size_counts {
	uint64_t small[SP_SIZE_COUNTS_SMALL_MAX + 1]; /* objects of that size */
	struct sp_class_total large[SP_FORMAT_CLASSES];
};

/* Those whose counts mean nothing, for threads that have no other: several,
 * so that such threads do not all write to the same cache lines. */
#define SP_SIZE_COUNTS_VOIDS 16u

extern struct sp_size_counts sp_size_counts_voids[SP_SIZE_COUNTS_VOIDS]
	__attribute__((visibility("hidden")));

/* One of them, by the address of something of the calling thread's own. */
struct sp_size_counts *sp_size_counts_void(const void *of_thread);

/* A signal handler may count anywhere, and other threads read. */
static inline void sp_size_counts_add(uint64_t *counter, uint64_t n)
{
	sp_arch_add(counter, n);
}

/* Count an object of n bytes: at most, or more than, SP_SIZE_COUNTS_SMALL_MAX.
 * A request for 0 counts as 1.  Context: hot. */
static inline void sp_size_counts_count_small(struct sp_size_counts *counts,
					      uint64_t n)
{
	sp_size_counts_add(&counts->small[n], 1);
}

void sp_size_counts_count_large(struct sp_size_counts *counts, uint64_t n);

static inline void sp_size_counts_count(struct sp_size_counts *counts,
					uint64_t n)
{
	if (__builtin_expect(n <= SP_SIZE_COUNTS_SMALL_MAX, 1))
		sp_size_counts_count_small(counts, n);
	else
		sp_size_counts_count_large(counts, n);
}

/* The totals per class of the format, while the owner may be counting; `out`
 * may be NULL.  Returns their sum. */
struct sp_class_total sp_size_counts_sum(
	const struct sp_size_counts *counts,
	struct sp_class_total out[SP_FORMAT_CLASSES]);

/* The totals as copy number seq of a slot in a file, to the two
 * pages at `pair`: the other of the two copies stays whole meanwhile. */
void sp_size_counts_write(const struct sp_size_counts *counts, uint64_t file_id,
			  uint64_t slot, uint64_t seq, uint8_t *pair);
