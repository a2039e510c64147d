/* SPDX-License-Identifier: MIT */
#include "agent/thread/size_counts.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "format/record.h"

#include "agent/sys/poison.h"

#define SMALL_CLASSES (SP_SIZE_COUNTS_SMALL_MAX / 16)

/* How a struct sp_class_page begins. */
struct head {
	uint64_t seq, slot, alloc_bytes, alloc_objects, check;
};

static_assert(sizeof(struct head) == offsetof(struct sp_class_page, classes),
	      "the head is what stands before the classes");

struct sp_size_counts sp_size_counts_voids[SP_SIZE_COUNTS_VOIDS];

struct sp_size_counts *sp_size_counts_void(const void *of_thread)
{
	/* Stacks, and thread-local blocks in them, are far apart and aligned
	 * alike: multiply, so that all bits take part. */
	uint64_t h = ((uintptr_t)of_thread >> 12) * 0x9e3779b97f4a7c15ull;

	return &sp_size_counts_voids[h >> 32 & (SP_SIZE_COUNTS_VOIDS - 1)];
}

void sp_size_counts_count_large(struct sp_size_counts *counts, uint64_t n)
{
	struct sp_class_total *total;

	/* That half of sp_format_class is not needed. */
	if (n <= SP_SIZE_COUNTS_SMALL_MAX)
		__builtin_unreachable();
	total = &counts->large[sp_format_class(n)];
	sp_size_counts_add(&total->bytes, n);
	sp_size_counts_add(&total->objects, 1);
}

/* Another thread may be counting: one load of each number. */
static uint64_t peek_counter(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* The counters of 16 sizes, of which the least is `size`. */
static inline struct sp_class_total sum_small(const uint64_t *counters,
					      uint64_t size)
{
	uint64_t objects = 0, beyond = 0;

	/* Counter i is in `objects` i times when that is added. */
	for (unsigned int i = 15; i; i--) {
		objects += peek_counter(&counters[i]);
		beyond += objects;
	}
	objects += peek_counter(&counters[0]);
	return (struct sp_class_total){objects * size + beyond, objects};
}

struct sp_class_total sp_size_counts_sum(
	const struct sp_size_counts *counts,
	struct sp_class_total out[SP_FORMAT_CLASSES])
{
	const uint64_t empty = peek_counter(&counts->small[0]);
	struct sp_class_total one, all = {0};

	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		if (c < SMALL_CLASSES) {
			one = sum_small(&counts->small[16 * c + 1], 16 * c + 1);
		} else {
			one.bytes = peek_counter(&counts->large[c].bytes);
			one.objects = peek_counter(&counts->large[c].objects);
		}
		if (c == 0) {
			one.bytes += empty;
			one.objects += empty;
		}
		if (out)
			out[c] = one;
		all.bytes += one.bytes;
		all.objects += one.objects;
	}
	return all;
}

void sp_size_counts_write(const struct sp_size_counts *counts, uint64_t file_id,
			  uint64_t slot, uint64_t seq, uint8_t *pair)
{
	struct sp_class_page *to =
		(struct sp_class_page *)(pair +
					 (seq & 1) * SP_FORMAT_PAGE_BYTES);
	struct head head = {.seq = seq, .slot = slot};
	struct sp_class_total all;

	/* A process killed in here leaves sums that do not match: counters
	 * only grow, so the old sums are those of the old counters only. */
	all = sp_size_counts_sum(counts, to->classes);
	head.alloc_bytes = all.bytes;
	head.alloc_objects = all.objects;
	head.check =
		sp_format_check(file_id, SP_CHECK_CLASSES, &head, sizeof(head));
	atomic_thread_fence(memory_order_release);
	memcpy(to, &head, offsetof(struct head, check));
	atomic_thread_fence(memory_order_release);
	memcpy(&to->check, &head.check, sizeof(to->check));
}
