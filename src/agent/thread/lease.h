/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "agent/sys/clock.h"
#include "agent/thread/thread.h"
#include "base/hash.h"

/*
 * A try-lock that cannot be held for ever: a holder may leave by siglongjmp out
 * of a signal handler, or be killed.  Its word is the time at which it was
 * taken; 0: it is free.  A holder that exceeds `limit_ns` loses it to the next
 * thread that asks, and may not know that yet: work under a lease must be safe
 * when two threads do it at once.
 *
 * The last bits of the time, 4 us, are a hash of the thread: if that thread
 * finds that it has left (inside.h), no other thread has to wait.
 */
#define SP_LEASE_THREAD 0xfffull

static inline uint64_t sp_lease_hash_thread(void)
{
	/* Never 0: that is a free one. */
	return ((uintptr_t)&sp_thread * SP_HASH_MULTIPLIER >> 52) | 1;
}

/* The token of the holder, or 0: another has it.  Context: sampled. */
static inline uint64_t sp_lease_take(_Atomic uint64_t *lease, uint64_t limit_ns)
{
	uint64_t other = atomic_load_explicit(lease, memory_order_relaxed);
	uint64_t now;

	now = (sp_clock_now_ns() & ~SP_LEASE_THREAD) | sp_lease_hash_thread();
	/* Unsigned: a clock that lies about the past ends a lease. */
	if (other && (now | SP_LEASE_THREAD) - other < limit_ns)
		return 0;
	return atomic_compare_exchange_strong(lease, &other, now) ? now : 0;
}

/* Nothing happens if another has taken it over. */
static inline void sp_lease_give(_Atomic uint64_t *lease, uint64_t token)
{
	atomic_compare_exchange_strong(lease, &token, 0);
}

/* If this thread holds it, by a call that was left; or, once in 2048 times, if
 * another thread does, which then loses it. */
static inline void sp_lease_give_left(_Atomic uint64_t *lease)
{
	uint64_t token = atomic_load(lease);

	if ((token & SP_LEASE_THREAD) == sp_lease_hash_thread())
		atomic_compare_exchange_strong(lease, &token, 0);
}
