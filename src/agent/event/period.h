/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/thread/sampler.h"

/*
 * What the process samples at present: a period, or nothing.  It may change at
 * any time; each thread follows at its next event, where it discards its gap
 * and draws another (docs/statistics.md, E3).  Laws live as long as the
 * process, so that threads compare addresses.
 *
 * With a target of samples per second the period is the base, which is what
 * was asked for, times what the rate limit says (rate_limit.h).
 */

/* The law that samples nothing: a period of 0. */
extern const struct sp_law sp_period_off __attribute__((visibility("hidden")));

extern _Atomic(const struct sp_law *) sp_period_now
	__attribute__((visibility("hidden")));

/* Before there are threads.  `law`, of that kind, is borrowed for good; its
 * period is the first base.  samples_per_s: see sp_rate_limit_init. */
void sp_period_init(const struct sp_law *law, enum sp_law_kind kind, bool is_on,
		    uint64_t samples_per_s);

/* The law in force.  Context: sampled. */
static inline const struct sp_law *sp_period_law(void)
{
	return atomic_load_explicit(&sp_period_now, memory_order_acquire);
}

/* A sample was taken, recorded or not.  Context: sampled, any thread. */
void sp_period_charge(void);

/* Would sp_period_adapt find another law now?  It may be wrong where another
 * thread is changing it.  Context: sampled, any thread. */
bool sp_period_is_due(void);

/*
 * Change it, one thread at a time (marks.c has the lock): first find a law,
 * then use it.  NULL if there is no memory for a period that is new.
 * Context: sampled.
 *
 * find: from now on with that base; 0: the one it had.  adapt: what the target
 * asks for now; NULL also if that is the law in force.
 */
const struct sp_law *sp_period_find(bool is_on, uint64_t base_bytes);
const struct sp_law *sp_period_adapt(void);
void sp_period_use(const struct sp_law *law, uint64_t ceiling_bytes);

/* What marks say is in force: the period, with a target the largest one since
 * it was last changed by order; 0 if nothing is sampled. */
uint64_t sp_period_ceiling(void);
