/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_THREAD_H
#define SP_AGENT_THREAD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler.h"

struct sp_classes;

/*
 * Everything the agent keeps per thread, in initial-exec thread-local storage
 * (it comes out of the thread's stack: 128 bytes at most).
 *
 * `remaining` decides every allocation: bytes until the combined limit, the
 * nearer of the next sample and the next check-in.  An allocation subtracts its
 * size; a borrow leads to the cold path.  Every other condition is a value of
 * that word:
 *
 *   0                    not set up, or counted call by call (I2)
 *   about SP_WORD_PARKED inside the agent, paused, or profiling is off
 *
 * I1  bytes counted so far = bytes + (limit - remaining), unless parked.
 * I2  zero sends every allocation to the cold path, since each costs >= 1 byte.
 * I3  sampler.gap >= limit - remaining: the hit byte has not been passed,
 *     except by an allocation that is on its way to the cold path.
 * I4  `classes` can be counted in at any time, also before the thread is set up
 *     (a signal handler may allocate behind a borrow): it is the slab of the
 *     thread's slot, or one whose counts mean nothing.
 * I5  While the thread has paused, its word is about SP_WORD_PARKED, too,
 * though it is not in the agent; bytes and objects are those that it published,
 *     and `classes` is a slab whose counts mean nothing.
 *
 * Only the thread itself, and signal handlers on it, touch this structure.
 */
struct sp_thread {
	uint64_t remaining;
	struct sp_classes *classes;
	uint64_t objects; /* allocations counted so far */
	uint64_t limit;   /* value of `remaining` at the last cold event */
	uint64_t bytes;   /* bytes counted up to the last cold event */
	struct sp_sampler sampler; /* as of the last cold event */
	uint64_t published_bytes;
	uint64_t published_objects;
	uint32_t index;      /* 1.. in the process */
	uint32_t generation; /* of the process this state belongs to; 0 none */
	uint16_t slot;       /* of the totals (slots.h); 0: nobody's */
	uint8_t lane; /* held while a sample is being taken: sp_lane_number() */
	uint8_t lane_hint;
	uint8_t parked;      /* inside the agent, allocations pass */
	uint8_t writing;     /* inside the agent, to record a free: how deep */
	uint8_t ended : 1;   /* its exit was seen: publish call by call */
	uint8_t watched : 1; /* its exit will be seen */
	uint8_t paused : 1;  /* I5 */
	uint8_t step : 4;    /* of its check-ins (checkin.h) */
	uint8_t recorded;    /* SP_THREAD_*: its THREAD record */
};

/* Is the thread known in the file, and by its present name?  What is greater is
 * known in one segment of it: sp_chunks_thread_mark(). */
enum { SP_THREAD_UNKNOWN, SP_THREAD_KNOWN, SP_THREAD_RENAMED };

static_assert(sizeof(struct sp_thread) <= 128, "comes out of every stack");

#define SP_WORD_PARKED (1ull << 62)

extern _Thread_local struct sp_thread sp_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Charge an allocation of n bytes (a request for 0 counts as 1): true if it
 * must take the cold path.  One compare and one subtract with borrow, so that
 * zero costs nothing extra and a size near SIZE_MAX goes cold.  Context: hot.
 */
static inline bool sp_thread_charge(uint64_t n)
{
	bool borrow;

	__asm__("cmpq $1, %2\n\t"
		"sbbq %2, %0"
		: "+m"(sp_thread.remaining), "=@ccc"(borrow)
		: "r"(n));
	return borrow;
}

/* Swap the word in one instruction: a signal handler may allocate anywhere. */
static inline uint64_t sp_thread_swap(uint64_t word)
{
	__asm__ volatile("xchgq %0, %1"
			 : "+r"(word), "+m"(sp_thread.remaining));
	return word;
}

/*
 * Take a charge back before the allocation is made: on the cold path it is
 * counted afterwards, when it is known to have succeeded, and the call in
 * between may throw or never return.
 *
 * After a borrow the word is huge, so a signal handler's allocations pass and
 * may leave less than nothing of it; they become part of what was used (I1).
 */
static inline void sp_thread_uncharge(uint64_t n)
{
	uint64_t word = sp_thread_swap(SP_WORD_PARKED) + (n ? n : 1);

	if ((int64_t)word < 0) {
		sp_thread.limit -= word;
		word = 0;
	}
	sp_thread.limit += SP_WORD_PARKED - sp_thread_swap(word);
}

#endif
