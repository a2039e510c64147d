/* SPDX-License-Identifier: MIT */
/* Which calls into the agent were left, and what a thread gets back then. */
#include <sys/mman.h>

#include "agent/event/recover.h"
#include "agent/file/slots.h"
#include "agent/file/slots_total.h"
#include "agent/process/period.h"
#include "agent/thread/inside.h"
#include "agent/thread/lease.h"
#include "agent/thread/size_counts.h"
#include "agent/unwind/lane.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define DEEP    4096
#define LONG_NS 1000000000000u

static struct sp_law law;

static bool __attribute__((noinline)) ask(void)
{
	volatile uint32_t here;

	return sp_inside_was_left(&here);
}

/* Far from the frames of whoever asks afterwards. */
static void __attribute__((noinline)) leave_a_call(bool is_deep)
{
	volatile uint32_t mark[1 + DEEP];

	mark[DEEP] = 0; /* so that all of it is there */
	sp_thread.inside = NULL;
	sp_inside_begin(&mark[is_deep ? 0 : DEEP - 64]);
}

TEST_BETWEEN(goes_on, NULL, agent_fixture_teardown)
{
	volatile uint32_t mark, inner;

	sp_inside_begin(&mark);
	for (int i = 0; i < 10; i++)
		assert_false(ask());
	/* What comes while it goes on is a part of it. */
	sp_inside_begin(&inner);
	sp_inside_end(&inner);
	assert_ptr_equal(sp_thread.inside, &mark);
	sp_inside_end(&mark);
	assert_null(sp_thread.inside);
}

TEST_BETWEEN(in_our_own_frames, NULL, agent_fixture_teardown)
{
	leave_a_call(false);
	assert_true(ask());
	sp_thread.inside = NULL;
}

TEST_BETWEEN(changed_or_gone, NULL, agent_fixture_teardown)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile uint32_t *page = memory;

	assert_true(memory != MAP_FAILED);
	/* A coroutine that waits, as far as can be told. */
	sp_inside_begin(page);
	for (int i = 0; i < 100; i++)
		assert_false(ask());
	page[0]++;
	assert_true(ask());
	page[0]--;
	munmap(memory, 4096);
	assert_true(ask());
	sp_thread.inside = NULL;
}

/* Further out, 31 times in a row, and not with others in between. */
TEST_BETWEEN(far_out, NULL, agent_fixture_teardown)
{
	volatile uint32_t mark;
	const volatile uint32_t *left;

	leave_a_call(true);
	left = sp_thread.inside;
	for (int i = 0; i < 30; i++)
		assert_false(ask());
	mark = SP_INSIDE_MARK;
	sp_thread.inside = &mark;
	assert_false(ask());
	sp_thread.inside = left;
	for (int i = 0; i < 30; i++)
		assert_false(ask());
	assert_true(ask());
	sp_thread.inside = NULL;
	sp_thread.looks = 0;
}

/* Everything that is held is free again, and the counts are the thread's. */
TEST_BETWEEN(recover, NULL, agent_fixture_teardown)
{
	struct sp_thread *t = &sp_thread;
	struct sp_slots_totals totals;
	struct sp_size_counts *counts;
	struct sp_lane *lane;
	uint16_t other;

	agent_fixture_open(1 << 20);
	sp_law_init(&law, SP_LAW_EXPONENTIAL, FIXTURE_PERIOD);
	t->sampler.law = &law;
	t->generation = 1;
	t->slot = agent_fixture_claim(1);
	counts = t->counts = sp_slots_size_counts(t->slot);
	for (int i = 0; i < 10; i++)
		sp_size_counts_count(t->counts, 100);
	/* Left while what is allocated was not the program's, and in the claim
	 * of a slot. */
	sp_inside_pause_counting();
	other = agent_fixture_claim(2);
	/* Seven of them have been added; the word says something else. */
	sp_slots_add(t->slot, 700, 7);
	t->limit = 12345;
	t->remaining = 77;
	t->suspended = 1;
	t->writing = 1;
	lane = sp_lane_take(&t->lane_hint);
	lane->walks[0].n = lane->walks[1].n = 7;
	leave_a_call(true);
	sp_recover_left(true);
	assert_ptr_equal(t->counts, counts);
	assert_int_equal(agent_fixture_claim(3), other);
	assert_null(t->inside);
	assert_int_equal(t->suspended, 0);
	assert_int_equal(t->writing, 0);
	assert_null(sp_lane_holder(lane));
	assert_int_equal(lane->walks[0].n + lane->walks[1].n, 0);
	assert_int_equal(t->bytes, 1000);
	assert_int_equal(t->objects, 10);
	assert_int_equal(t->published_bytes, 700);
	assert_int_equal(t->published_objects, 7);
	assert_true(t->limit == t->remaining);
	sp_slots_add(t->slot, t->bytes - t->published_bytes, 3);
	sp_slots_total(&totals, 0);
	assert_int_equal(totals.bytes, 1000);
	assert_int_equal(totals.objects, 10);
	assert_int_equal(totals.slack_bytes, 0);
	assert_int_equal(agent_fixture_losses(), 1);
	sp_slots_release(other);
	t->slot = sp_slots_release(t->slot);
}

/* A lock of another thread is left alone. */
TEST_BETWEEN(locks, NULL, agent_fixture_teardown)
{
	static sp_inside_lock lock;
	static _Atomic uint64_t lease;

	assert_true(sp_inside_hold(&lock));
	assert_false(sp_inside_hold(&lock));
	sp_inside_give_left(&lock);
	assert_true(sp_inside_hold(&lock));
	sp_inside_give(&lock);
	lock = &law;
	sp_inside_give_left(&lock);
	assert_false(sp_inside_hold(&lock));
	assert_true(sp_lease_take(&lease, LONG_NS));
	assert_false(sp_lease_take(&lease, LONG_NS));
	sp_lease_give_left(&lease);
	assert_true(sp_lease_take(&lease, LONG_NS));
	lease ^= SP_LEASE_THREAD - 1;
	sp_lease_give_left(&lease);
	assert_false(sp_lease_take(&lease, LONG_NS));
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
