/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/event/agent.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/thread.h"

/* Count one of more than SP_SIZE_COUNTS_SMALL_MAX bytes that was charged.
 * Context: hot. */
static inline void sp_count_large(uint64_t n)
{
	if (__builtin_expect((int64_t)n < 0, 0))
		sp_thread_take_back(n);
	else
		sp_size_counts_count_large(sp_thread.counts, n);
}

/*
 * Count an allocation that has been made; p NULL: it failed and is not counted.
 */
static inline void sp_count(void *p, uint64_t n, enum sp_entry entry,
			    const struct sp_call_frame *frame)
{
	if (!p)
		return;
	if (sp_thread_charge(n)) {
		sp_agent_count(p, n, entry, frame);
	} else {
		sp_thread_count_object();
		sp_size_counts_count(sp_thread.counts, n);
	}
}
