/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_COUNT_H
#define SP_AGENT_COUNT_H

#include "agent/agent.h"
#include "agent/thread.h"

/*
 * Count an allocation that has been made: for the entry points that need not be
 * fast.  p NULL: it failed and is not counted.
 */
static inline void sp_count(void *p, uint64_t n, enum sp_entry entry,
			    const void *caller)
{
	struct sp_event event;

	if (!p)
		return;
	if (!sp_thread_charge(n)) {
		sp_thread.objects++;
		return;
	}
	sp_agent_charge(n, &event);
	sp_agent_finish(&event, p, entry, caller);
}

#endif
