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
 * was asked for, times what the rate limit says (rate_limit.h).  Where samples
 * that are alive take much of a limited file, it is doubled until they do not:
 * what is alive is written again with each rotation of the ring (ring.h), and
 * more than half of the file would not fit at all.  Near the limit of memory
 * the base is smaller.
 */

/* The law that samples nothing: a period of 0. */
extern const struct sp_law sp_period_off __attribute__((visibility("hidden")));

extern _Atomic(const struct sp_law *) sp_period_now
	__attribute__((visibility("hidden")));

/* Before there are threads.  `law`, of that kind, is borrowed for good; its
 * period is the first base.  samples_per_s: see sp_rate_limit_init. */
void sp_period_init(const struct sp_law *law, enum sp_law_kind kind, bool is_on,
		    uint64_t samples_per_s);

/*
 * Is the process near its limit of memory?  Then the base is an eighth of what
 * was asked for, but no less than 4 KiB, or than what was asked for: what grows
 * in the last moments is seen eight times as well.  Threads follow as with any
 * other change.  Context: any thread.
 */
void sp_period_press(bool is_near);

/* Has it come near the limit since the last call?  Context: marks.c. */
bool sp_period_take_alarm(void);

/* The law in force.  Context: sampled. */
static inline const struct sp_law *sp_period_law(void)
{
	return atomic_load_explicit(&sp_period_now, memory_order_acquire);
}

/* A sample was taken, recorded or not.  Context: sampled, any thread. */
void sp_period_charge(void);

/* Samples that are alive take that much of the file, in percent.  True: the
 * period has to be longer for that.  One thread at a time (marks.c has the
 * lock).  Context: sampled. */
bool sp_period_fit(unsigned int live_percent);

/* In a forked child, whose file is empty. */
void sp_period_reset(void);

/* Would sp_period_adapt find another law now?  It may be wrong where another
 * thread is changing it.  Context: sampled, any thread. */
bool sp_period_is_due(void);

/*
 * Change it, one thread at a time (marks.c has the lock): first find a law,
 * then use it.  NULL if there is no memory for a period that is new.
 * Context: sampled.
 *
 * find: from now on with that base; 0: the one it had.  adapt: what the target
 * and the file ask for now; NULL also if that is the law in force.
 */
const struct sp_law *sp_period_find(bool is_on, uint64_t base_bytes);
const struct sp_law *sp_period_adapt(void);
void sp_period_use(const struct sp_law *law, uint64_t ceiling_bytes);

/* What marks say is in force: the largest period since it was last changed by
 * order; 0 if nothing is sampled. */
uint64_t sp_period_ceiling(void);
