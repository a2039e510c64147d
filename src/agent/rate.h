/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_RATE_H
#define SP_AGENT_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler.h"

/*
 * What the process samples at present: a period, or nothing.  It may change at
 * any time; each thread follows at its next event, where it discards its gap
 * and draws another (docs/statistics.md, E3).  Laws live as long as the
 * process, so that threads compare addresses.
 */

/* The law that samples nothing: a period of 0. */
extern const struct sp_law sp_rate_off __attribute__((visibility("hidden")));

extern _Atomic(const struct sp_law *) sp_rate_now
	__attribute__((visibility("hidden")));

/* Before there are threads.  `law`, of that kind, is borrowed for good. */
void sp_rate_init(const struct sp_law *law, enum sp_law_kind kind, bool is_on);

/* The law in force.  Context: sampled. */
static inline const struct sp_law *sp_rate_law(void)
{
	return atomic_load_explicit(&sp_rate_now, memory_order_acquire);
}

/*
 * Change it, one thread at a time (marks.c has the lock): first find a law,
 * then use it.  A period of 0 is the one that was used last.  NULL if there is
 * no memory for a period that is new.  Context: sampled.
 */
const struct sp_law *sp_rate_find(bool is_on, uint64_t period_bytes);
void sp_rate_use(const struct sp_law *law);

#endif
