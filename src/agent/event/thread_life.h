/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/event/recover.h"
#include "agent/process/process.h"
#include "agent/process/period.h"
#include "agent/thread/thread.h"

/*
 * The life of the calling thread in a process: it is set up, publishes what it
 * has counted, follows the period, and rests where nothing is counted.  But for
 * the questions, the thread is suspended (suspend.h) when it calls these.
 */

/* Threads of the process so far. */
static inline uint32_t sp_thread_life_seen(void)
{
	return atomic_load_explicit(&sp_process.threads, memory_order_relaxed);
}

/* Was the thread set up for this process?  Else it is new, or the process was
 * forked. */
static inline bool sp_thread_life_is_of_process(const struct sp_thread *t)
{
	return t->generation == atomic_load_explicit(&sp_process.generation,
						     memory_order_relaxed);
}

static inline bool sp_thread_life_is_sampling(const struct sp_thread *t)
{
	return t->sampler.law != &sp_period_off;
}

/* Because the thread, or the process, may end without another event. */
static inline bool sp_thread_life_publishes_each_call(const struct sp_thread *t)
{
	return t->ended || atomic_load_explicit(&sp_process.is_ending,
						memory_order_relaxed);
}

/* Is the thread in an event that goes on, which a signal handler interrupted
 * that calls now?  If it has left one, that is made good. */
static inline bool sp_thread_life_is_in_event(const struct sp_thread *t,
					      volatile uint32_t *mark,
					      const struct sp_call_frame *from)
{
	return (t->inside || t->suspended) &&
	       sp_recover_is_in_event(mark, from,
				      sp_thread_life_is_of_process(t));
}

/* See sp_recover_left. */
void sp_thread_life_recover(const struct sp_thread *t);

/* Set the thread up for this process; false: the profile ends meanwhile, and
 * the thread has to rest. */
bool sp_thread_life_begin(struct sp_thread *t);

/* Bytes that were counted up to now. */
void sp_thread_life_settle(struct sp_thread *t, uint64_t used);

/* Add its counts to the totals of the process. */
void sp_thread_life_publish(struct sp_thread *t);

/* Another period is in force, or none: what was allocated so far counts as
 * before, and the gap is drawn anew. */
void sp_thread_life_follow_period(struct sp_thread *t);

/* Out of the agent, with the countdown to the next event. */
void sp_thread_life_resume(struct sp_thread *t, const volatile uint32_t *mark);

/* Not counting, or not yet: with this countdown all allocations pass. */
void sp_thread_life_rest(struct sp_thread *t, uint64_t countdown);
