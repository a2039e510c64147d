/* SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/arch.h"
#include "agent/thread/sampler.h"

struct sp_size_counts;

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
 *   SP_THREAD_ROOM, less inside the agent: when a signal handler has used that
 *                        much, it is looked whether the thread still is there
 *   about SP_SUSPENDED paused, or profiling is off
 *
 * I1  bytes counted so far = bytes + (limit - remaining), but while paused.
 * I2  zero sends every allocation to the cold path, since each costs >= 1 byte.
 * I3  sampler.gap >= limit - remaining: the hit byte has not been passed,
 *     except by a signal handler's allocation behind a borrow.
 * I4  `counts` can be counted in at any time, also before the thread is set up
 *     (a signal handler may allocate behind a borrow): the size
 *     counts of the thread's slot, or some that mean nothing.
 * I5  While the thread has paused, its word is about SP_SUSPENDED,
 * also in the agent; bytes and objects are those that it published, and
 * `counts` are size counts that mean nothing.
 *
 * Only the thread itself, and signal handlers on it, touch this structure.
 */
struct sp_thread {
	uint64_t remaining;
	struct sp_size_counts *counts;
	uint64_t objects; /* allocations counted so far */
	uint64_t limit;   /* value of `remaining` at the last cold event */
	uint64_t bytes;   /* bytes counted up to the last cold event */
	struct sp_sampler sampler; /* as of the last cold event */
	/* Of the outermost call into the agent, which may have been left: see
	 * inside.h.  NULL: the thread is not in there. */
	const volatile uint32_t *inside;
	uint64_t published_bytes;
	uint64_t published_objects;
	uint32_t index;      /* 1.. in the process */
	uint32_t generation; /* of the process this state belongs to; 0 none */
	uint16_t slot;       /* of the totals (slots.h); 0: shared */
	uint8_t lane_hint;
	uint8_t step;        /* of its check-ins (checkin.h) */
	uint8_t suspended;   /* in an event: allocations pass */
	uint8_t writing;     /* inside the agent, to record a free: how deep */
	uint8_t ended : 1;   /* its exit was seen: publish call by call */
	uint8_t watched : 1; /* its exit will be seen */
	uint8_t paused : 1;  /* I5 */
	uint8_t looks : 5;   /* inside.c */
	uint8_t recorded;    /* SP_THREAD_*: its THREAD record */
};

/* Is the thread known in the file, and by its present name?  What is greater is
 * known in one segment of it: sp_chunks_thread_mark(). */
enum { SP_THREAD_UNKNOWN, SP_THREAD_KNOWN, SP_THREAD_RENAMED };

static_assert(sizeof(struct sp_thread) <= 128, "comes out of every stack");

#define SP_SUSPENDED   (1ull << 62)
#define SP_THREAD_ROOM 4096u

extern _Thread_local struct sp_thread sp_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Count an object.  Context: hot. */
static inline void sp_thread_count_object(void)
{
	sp_arch_add(&sp_thread.objects, 1);
}

/* Swap the word at once: a signal handler may allocate anywhere. */
static inline uint64_t sp_thread_swap(uint64_t word)
{
	return sp_arch_swap(&sp_thread.remaining, word);
}

/* At once, for the same reason. */
static inline void sp_thread_raise_limit(uint64_t by)
{
	sp_arch_add(&sp_thread.limit, by);
}

/* Another word; what was counted so far stays what it is (I1). */
static inline void sp_thread_set_countdown(uint64_t word)
{
	sp_thread_raise_limit(word - sp_thread_swap(word));
}

/* Bytes that were counted since the last call of this, to be added to `bytes`.
 */
static inline uint64_t sp_thread_take_used(void)
{
	const volatile struct sp_thread *t = &sp_thread;
	uint64_t used = t->limit - t->remaining;

	sp_thread_raise_limit(-used);
	return used;
}

/* Undo a charge of n bytes that was refused. */
static inline void sp_thread_undo_charge(uint64_t n)
{
	sp_arch_uncharge(&sp_thread.remaining, n);
	/* More than there was: that event has begun the word anew. */
	if (sp_thread.remaining - sp_thread.limit - 1 < SP_SUSPENDED) {
		sp_arch_add(&sp_thread.bytes, sp_thread_take_used());
		sp_thread_set_countdown(sp_thread.remaining - (n ? n : 1));
	}
}

/*
 * Charge an allocation of n bytes (a request for 0 counts as 1): true, and
 * nothing is charged, if it must take the cold path.  There it is counted when
 * it was made: the call in between may fail, throw or never return.
 *
 * If the countdown goes negative, undo the charge and take the slow path.  A
 * signal handler that allocates in between takes the slow path, too, and its
 * event counts this charge (I1); undoing the charge corrects that.  If the
 * handler leaves by siglongjmp there, the next allocation is slow as well.
 *
 * A request beyond 2^63 bytes, which is refused below, may pass:
 * sp_thread_take_back.  Context: hot.
 */
static inline bool sp_thread_charge(uint64_t n)
{
	if (__builtin_expect(!sp_arch_charge(&sp_thread.remaining, n), 1))
		return false;
	sp_thread_undo_charge(n);
	return true;
}

/* A request that passed, and that no allocator can fulfil. */
static inline void sp_thread_take_back(uint64_t n)
{
	sp_arch_add(&sp_thread.remaining, n);
	sp_arch_add(&sp_thread.objects, -1ull);
}
