/* SPDX-License-Identifier: MIT */
/* Profiles of a process that is attached to: threads that are held up while one
 * ends, or that live through several. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "agent/divert/divert.h"
#include "agent/event/agent.h"
#include "agent/event/lifecycle.h"
#include "agent/file/slots.h"
#include "agent/file/slots_total.h"
#include "agent/thread/sampler.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define BYTES 1464u

/* The constructor starts nothing. */
bool __wrap_sp_next_resolve(void);
bool __wrap_sp_next_resolve(void)
{
	return false;
}

#ifdef __x86_64__
/* Of the hooks; nothing is diverted to it. */
const struct sp_divert_hooks sp_divert_hooks;
#endif

/* Where a thread that is being set up can be held up: before anybody knows of
 * it, or when it has a slot. */
enum place { NOWHERE, AT_SAMPLER, AT_CLAIM };

static _Thread_local enum place held_up_at;
static sem_t is_there, goes_on;

static void be_held_up(enum place place)
{
	if (held_up_at != place)
		return;
	held_up_at = NOWHERE;
	sem_post(&is_there);
	sem_wait(&goes_on);
}

void __real_sp_sampler_begin(struct sp_sampler *s, const struct sp_law *law,
			     uint64_t seed, uint32_t fork, uint32_t thread);
void __wrap_sp_sampler_begin(struct sp_sampler *s, const struct sp_law *law,
			     uint64_t seed, uint32_t fork, uint32_t thread);
void __wrap_sp_sampler_begin(struct sp_sampler *s, const struct sp_law *law,
			     uint64_t seed, uint32_t fork, uint32_t thread)
{
	be_held_up(AT_SAMPLER);
	__real_sp_sampler_begin(s, law, seed, fork, thread);
}

void __real_sp_slots_claim(uint16_t slot, uint32_t index);
void __wrap_sp_slots_claim(uint16_t slot, uint32_t index);
void __wrap_sp_slots_claim(uint16_t slot, uint32_t index)
{
	be_held_up(AT_CLAIM);
	__real_sp_slots_claim(slot, index);
}

static int try_profile(char *period)
{
	static char out[1100];
	static char log[] = "SAMPLEPROF_LOG=quiet";
	char *settings[] = {out, period, log, NULL};
	const struct sp_process_attached attached = {
		.is_it = true, .main_thread = (uintptr_t)pthread_self()};

	snprintf(out, sizeof(out), "SAMPLEPROF_OUT=%s",
		 agent_fixture_path("%n.sprof"));
	return sp_lifecycle_begin_attached(&attached, settings);
}

static void begin_profile(void)
{
	static char period[] = "SAMPLEPROF_PERIOD=1M";

	assert_int_equal(try_profile(period), 0);
}

/* The first call only says that it ends. */
static void end_profile(void)
{
	assert_int_equal(sp_lifecycle_end_attached(), -EAGAIN);
	assert_int_equal(sp_lifecycle_end_attached(), 0);
}

static void allocate(void)
{
	static char object[BYTES];

	sp_agent_count(object, BYTES, SP_ENTRY_MALLOC, SP_FRAME_HERE);
}

static void assert_total(uint64_t objects)
{
	struct sp_slots_totals total;

	sp_slots_total(&total, 0);
	assert_int_equal(total.objects, objects);
	assert_int_equal(total.bytes, objects * BYTES);
}

/* ---- threads that do what they are told ---- */

struct worker {
	pthread_t thread;
	sem_t told, done;
	bool is_last;
	enum place place;
	uint16_t slot;
	const struct sp_thread *state;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		sem_wait(&w->told);
		if (w->is_last)
			return NULL;
		held_up_at = w->place;
		allocate();
		w->slot = sp_thread.slot;
		w->state = &sp_thread;
		sem_post(&w->done);
	}
}

static void begin_worker(struct worker *w)
{
	memset(w, 0, sizeof(*w));
	sem_init(&w->told, 0, 0);
	sem_init(&w->done, 0, 0);
	assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static void tell(struct worker *w)
{
	sem_post(&w->told);
	sem_wait(&w->done);
}

static void end_worker(struct worker *w)
{
	w->is_last = true;
	sem_post(&w->told);
	pthread_join(w->thread, NULL);
}

/* ---- tests ---- */

/* Its allocation is in no profile: it was counted after one had its totals, and
 * was made before the next. */
static void first_event_while_it_ends(void **state)
{
	struct worker w;

	(void)state;
	begin_worker(&w);
	begin_profile();
	w.place = AT_SAMPLER;
	sem_post(&w.told);
	sem_wait(&is_there);
	end_profile();
	begin_profile();
	sem_post(&goes_on);
	sem_wait(&w.done);
	assert_total(0);
	w.place = NOWHERE;
	tell(&w);
	assert_total(1);
	assert_int_not_equal(w.slot, 0);
	end_profile();
	end_worker(&w);
}

static void first_event_after_it_ended(void **state)
{
	struct worker w;

	(void)state;
	begin_worker(&w);
	begin_profile();
	w.place = AT_SAMPLER;
	sem_post(&w.told);
	sem_wait(&is_there);
	end_profile();
	sem_post(&goes_on);
	sem_wait(&w.done);
	begin_profile();
	assert_total(0);
	end_profile();
	end_worker(&w);
}

/* It has its slot, and is waited for. */
static void first_event_that_is_seen(void **state)
{
	struct worker w;

	(void)state;
	begin_worker(&w);
	begin_profile();
	w.place = AT_CLAIM;
	sem_post(&w.told);
	sem_wait(&is_there);
	assert_int_equal(sp_lifecycle_end_attached(), -EAGAIN);
	assert_int_equal(sp_lifecycle_end_attached(), -EAGAIN);
	sem_post(&goes_on);
	sem_wait(&w.done);
	assert_total(1);
	assert_int_equal(sp_lifecycle_end_attached(), 0);
	end_worker(&w);
}

/* More threads than slots: the others are waited for, too, and begin anew. */
static void threads_without_a_slot(void **state)
{
	static struct worker workers[SP_FORMAT_SLOTS + 3];
	const unsigned int n = sizeof(workers) / sizeof(*workers);
	struct worker *last = &workers[n - 1];

	(void)state;
	begin_profile();
	for (unsigned int i = 0; i < n; i++)
		begin_worker(&workers[i]);
	for (unsigned int i = 0; i < n - 1; i++)
		tell(&workers[i]);
	last->place = AT_CLAIM;
	sem_post(&last->told);
	sem_wait(&is_there);
	assert_int_equal(sp_lifecycle_end_attached(), -EAGAIN);
	assert_int_equal(sp_lifecycle_end_attached(), -EAGAIN);
	sem_post(&goes_on);
	sem_wait(&last->done);
	assert_int_equal(last->slot, 0);
	/* The last comes back at once, since the profile ends. */
	for (unsigned int i = 0; i < n - 1; i++)
		assert_int_not_equal(workers[i].state->remaining, 0);
	assert_int_equal(sp_lifecycle_end_attached(), 0);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(workers[i].state->remaining, 0);
	for (unsigned int i = 0; i < n; i++)
		end_worker(&workers[i]);
}

/* It does not take the slot of another thread with it. */
static void thread_of_the_profile_before_ends(void **state)
{
	struct worker old, owner, next;

	(void)state;
	begin_profile();
	begin_worker(&old);
	tell(&old);
	end_profile();
	begin_profile();
	begin_worker(&owner);
	tell(&owner);
	assert_int_equal(owner.slot, old.slot);
	end_worker(&old);
	begin_worker(&next);
	tell(&next);
	assert_int_not_equal(next.slot, owner.slot);
	assert_total(2);
	end_profile();
	end_worker(&owner);
	end_worker(&next);
}

/* The program goes on, and can be recorded later. */
static void settings_that_are_refused(void **state)
{
	static char wrong[] = "SAMPLEPROF_PERIOD=abc";

	(void)state;
	assert_int_equal(try_profile(wrong), -EINVAL);
	allocate();
	begin_profile();
	allocate();
	assert_total(1);
	end_profile();
	assert_int_equal(try_profile(wrong), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: nothing was recorded yet. */
		cmocka_unit_test(settings_that_are_refused),
		cmocka_unit_test(first_event_while_it_ends),
		cmocka_unit_test(first_event_after_it_ended),
		cmocka_unit_test(first_event_that_is_seen),
		cmocka_unit_test(threads_without_a_slot),
		cmocka_unit_test(thread_of_the_profile_before_ends),
	};

	sem_init(&is_there, 0, 0);
	sem_init(&goes_on, 0, 0);
	return cmocka_run_group_tests(tests, agent_fixture_begin,
				      agent_fixture_end);
}
