/* SPDX-License-Identifier: MIT */
/*
 * When threads check in: busy, idle and in turn; and how much they may have
 * allocated that is never published.
 */
#include "agent/file/slots.h"
#include "agent/file/slots_total.h"
#include "agent/process/checkin.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define FAST 1000000u  /* ns between check-ins */
#define SLOW 11000000u /* likewise */

static struct sp_thread thread;
static uint64_t now_ns;

/* One check-in, `after_ns` since the last; the step that follows. */
static uint64_t check_in(uint64_t after_ns)
{
	now_ns += after_ns;
	thread.bytes += sp_checkin_step(&thread);
	sp_checkin_choose(&thread, now_ns);
	/* Others see it. */
	assert_int_equal(sp_slots_total_unseen(0, 1), sp_checkin_step(&thread));
	return sp_checkin_step(&thread);
}

static void begin_thread(void)
{
	memset(&thread, 0, sizeof(thread));
	thread.slot = agent_fixture_claim(1);
	sp_checkin_begin(&thread);
	assert_int_equal(sp_checkin_step(&thread), 4096);
	now_ns = 5000000000u;
	/* The first has nothing before it. */
	assert_int_equal(check_in(0), 4096);
}

/* At no time more than was published, or 4 KiB, or 1 MiB. */
TEST_BETWEEN(busy, NULL, agent_fixture_teardown)
{
	uint64_t step;

	begin_thread();
	for (int i = 0; i < 40; i++) {
		step = check_in(FAST);
		assert_true(step <= thread.bytes);
		assert_true(2 * step > thread.bytes ||
			    2 * step > SP_CHECKIN_BYTES_MAX);
	}
	assert_int_equal(step, SP_CHECKIN_BYTES_MAX);
}

TEST_BETWEEN(idle, NULL, agent_fixture_teardown)
{
	begin_thread();
	for (int i = 0; i < 40; i++)
		assert_int_equal(check_in(SLOW), 4096);
}

TEST_BETWEEN(busy_then_idle, NULL, agent_fixture_teardown)
{
	begin_thread();
	while (check_in(FAST) < SP_CHECKIN_BYTES_MAX)
		;
	assert_int_equal(check_in(FAST), SP_CHECKIN_BYTES_MAX);
	assert_int_equal(check_in(SLOW), 4096);
	assert_int_equal(check_in(SLOW), 4096);
	/* It doubles each time, since much was published. */
	for (uint64_t step = 8192; step <= SP_CHECKIN_BYTES_MAX; step *= 2)
		assert_int_equal(check_in(FAST), step);
}

/* A clock that is not read right: short steps. */
TEST_BETWEEN(clock_goes_back, NULL, agent_fixture_teardown)
{
	begin_thread();
	while (check_in(FAST) < SP_CHECKIN_BYTES_MAX)
		;
	assert_int_equal(check_in(-(uint64_t)1), 4096);
}

/* What threads may have allocated that are not heard of any more. */
TEST_BETWEEN(unseen, NULL, agent_fixture_teardown)
{
	uint16_t mine = agent_fixture_claim(1), idle = agent_fixture_claim(2);
	uint16_t busy = agent_fixture_claim(3);

	sp_slots_set_step(mine, 4096);
	sp_slots_set_step(idle, 4096);
	sp_slots_set_step(busy, 1 << 20);
	assert_int_equal(sp_slots_total_unseen(mine, 1 << 20),
			 4096 + (1 << 20));
	assert_int_equal(sp_slots_total_unseen(busy, 1 << 20), 4096 + 4096);
	sp_slots_release(busy);
	assert_int_equal(sp_slots_total_unseen(mine, 1 << 20), 4096);
	sp_slots_release(idle);
	assert_int_equal(sp_slots_total_unseen(mine, 1 << 20), 0);
	/* Each has a clock of its own. */
	sp_slots_check_in(mine, 1000);
	sp_slots_check_in(idle, 5000);
	assert_int_equal(sp_slots_check_in(mine, 1500), 500);
	assert_int_equal(sp_slots_check_in(idle, 9000), 4000);
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
