/* SPDX-License-Identifier: MIT */
#include "agent/event/thread_life.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/event/recorder.h"
#include "agent/event/resident.h"
#include "agent/file/slots.h"
#include "agent/file/slots_copy.h"
#include "agent/file/writer.h"
#include "agent/process/checkin.h"
#include "agent/process/suspend.h"
#include "agent/thread/inside.h"
#include "agent/thread/size_counts.h"

#include "agent/sys/poison.h"

/* Threads begin like this: see I4 of thread.h. */
_Thread_local struct sp_thread sp_thread = {.counts = sp_size_counts_voids};

static uint32_t fork_count(void)
{
	return atomic_load_explicit(&sp_process.generation,
				    memory_order_relaxed);
}

/* Is the profile of that generation still the one that is recorded? */
static bool is_recorded(uint32_t generation)
{
	return sp_process_is_running() && fork_count() == generation;
}

bool sp_thread_life_begin(struct sp_thread *t)
{
	const uint32_t generation = fork_count();
	const size_t kept = offsetof(struct sp_thread, objects);
	const volatile uint32_t *inside = t->inside;
	uint8_t writing = t->writing;
	bool ended = t->ended, paused = t->paused;
	struct sp_size_counts *counts;

	t->counts = sp_size_counts_void(t);
	memset((char *)t + kept, 0, sizeof(*t) - kept);
	t->suspended = 1;
	t->inside = inside;
	t->writing = writing;
	t->ended = ended;
	t->paused = paused;
	/* Nothing was counted yet. */
	sp_thread_take_used();
	if (!is_recorded(generation))
		return false;
	t->index = 1 + atomic_fetch_add_explicit(&sp_process.threads, 1,
						 memory_order_relaxed);
	sp_sampler_begin(&t->sampler, sp_period_law(), sp_process.seed,
			 generation, t->index);
	t->slot = sp_slots_hold();
	/* Who ends an attached profile looks for threads that own a slot: from
	 * here on it finds this one, or the profile has ended. */
	if (!is_recorded(generation)) {
		sp_slots_let_go(t->slot);
		return false;
	}
	sp_slots_claim(t->slot, t->index);
	counts = sp_slots_size_counts(t->slot);
	if (counts && !paused)
		t->counts = counts;
	if (t->slot)
		sp_slots_set_sampling(t->slot, sp_thread_life_is_sampling(t));
	sp_checkin_begin(t);
	/* Last: a handler may leave by siglongjmp before. */
	t->generation = generation;
	sp_inside_watch_end(t);
	return true;
}

void sp_thread_life_settle(struct sp_thread *t, uint64_t used)
{
	t->bytes += used;
	sp_sampler_skip(&t->sampler, used);
}

void sp_thread_life_publish(struct sp_thread *t)
{
	/* Read once: a signal handler may count an object at any time. */
	uint64_t bytes = t->bytes;
	uint64_t objects = t->paused ? t->published_objects
				     : *(volatile uint64_t *)&t->objects;

	/* In a child that was forked in here the totals are the parent's. */
	if (!sp_thread_life_is_of_process(t))
		return;
	sp_slots_add(t->slot, bytes - t->published_bytes,
		     objects - t->published_objects);
	t->published_bytes = bytes;
	t->published_objects = objects;
	if (sp_thread_life_publishes_each_call(t))
		sp_slots_copy_size_counts(t->slot);
	if (!sp_thread_life_is_sampling(t) && !sp_writer_is_open())
		sp_recorder_open_file(t);
	sp_writer_publish(sp_thread_life_seen());
	sp_resident_record(&sp_process);
	sp_inside_watch_end(t);
}

void sp_thread_life_follow_period(struct sp_thread *t)
{
	const struct sp_law *law = sp_period_law();

	if (t->sampler.law == law || !sp_thread_life_is_of_process(t))
		return;
	sp_thread_life_publish(t);
	sp_sampler_change(&t->sampler, law);
	if (t->slot)
		sp_slots_set_sampling(t->slot, sp_thread_life_is_sampling(t));
}

/* The next allocation is an event: it is published, or the first of a child
 * that was forked in here. */
static bool must_come_back(const struct sp_thread *t)
{
	return sp_thread_life_publishes_each_call(t) ||
	       !sp_thread_life_is_of_process(t);
}

void sp_thread_life_resume(struct sp_thread *t, const volatile uint32_t *mark)
{
	sp_suspend_end(t, mark, must_come_back);
}

void sp_thread_life_recover(const struct sp_thread *t)
{
	sp_recover_left(sp_thread_life_is_of_process(t));
}

void sp_thread_life_rest(struct sp_thread *t, uint64_t countdown)
{
	t->counts = sp_size_counts_void(t);
	sp_thread_set_countdown(countdown);
	sp_thread_take_used();
	t->suspended = 0;
	t->inside = NULL;
}
