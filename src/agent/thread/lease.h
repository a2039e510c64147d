/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_THREAD_LEASE_H
#define SP_AGENT_THREAD_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/clock.h"
#include "agent/thread/thread.h"
#include "base/hash.h"

/*
 * A try-lock that nobody can take with him: a holder may leave by siglongjmp
 * out of a signal handler, or be killed.  Its word is the time at which it was
 * taken, 0: nobody has it.  Whoever has it for longer than `limit_ns` has lost
 * it to the next who asks; he may not know that yet, so what is done under a
 * lease has to be safe when another does it, too.
 *
 * The last bits of the time, 4 us, are a hash of the thread: if it finds that
 * it has left (inside.h), nobody has to wait.
 */
#define SP_LEASE_THREAD 0xfffull

static inline uint64_t sp_lease_hash_thread(void)
{
	/* Never 0: that is nobody. */
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

/* If this thread has it, by a call that was left; or, once in 2048 times,
 * another, who has lost it then. */
static inline void sp_lease_give_left(_Atomic uint64_t *lease)
{
	uint64_t token = atomic_load(lease);

	if ((token & SP_LEASE_THREAD) == sp_lease_hash_thread())
		atomic_compare_exchange_strong(lease, &token, 0);
}

#endif
