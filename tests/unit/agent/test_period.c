/* SPDX-License-Identifier: MIT */
/*
 * The period under a target of samples per second, on a clock of the test's
 * own: what is in force, what marks say of it, what orders do.
 */
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/process/period.h"
#include "agent/process/rate_limit.h"
#include "agent/thread/thread.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/test.h"

#define SECOND_NS 1000000000ull
#define TARGET    100u

static struct sp_process process = {.generation = 1};
static uint64_t clock_ns;
static unsigned int clock_reads;

uint64_t __wrap_sp_clock_now_ns(void);
uint64_t __wrap_sp_clock_now_ns(void)
{
	clock_reads++;
	return clock_ns;
}

static const char *open_all(bool is_on, uint64_t samples_per_s)
{
	const char *path;

	clock_ns = 1000 * SECOND_NS;
	path = agent_fixture_open(1 << 20);
	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, FIXTURE_PERIOD);
	sp_period_init(&process.law, SP_LAW_EXPONENTIAL, is_on, samples_per_s);
	sp_recorder_init(&process, sp_marks_complete);
	sp_marks_reset();
	return path;
}

/* Samples, one right after the other. */
static void take_samples(unsigned int n)
{
	while (n--) {
		sp_period_charge();
		sp_marks_adapt(&sp_thread);
	}
}

static uint64_t period(void)
{
	return sp_period_law()->period_bytes;
}

TEST_BETWEEN(no_target, NULL, agent_fixture_teardown)
{
	const char *path = open_all(true, 0);
	struct sp_profile *p;

	clock_reads = 0;
	take_samples(100000);
	assert_false(sp_period_is_due());
	assert_ptr_equal(sp_period_law(), &process.law);
	/* Nor does it cost anything. */
	assert_int_equal(clock_reads, 0);
	p = load_profile(path);
	assert_int_equal(p->n_stretches, 0);
}

/* 100 samples of credit, then a factor of e for each 100. */
TEST_BETWEEN(rises_and_falls, NULL, agent_fixture_teardown)
{
	const char *path = open_all(true, TARGET);
	const struct sp_law *law;
	struct sp_profile *p;
	uint64_t ceiling;

	take_samples(100);
	assert_ptr_equal(sp_period_law(), &process.law);
	take_samples(400);
	assert_in_range(period(), FIXTURE_PERIOD * 45, FIXTURE_PERIOD * 55);
	law = sp_period_law();
	ceiling = period();
	assert_true(sp_period_ceiling() == ceiling);
	/* Half a second later it has fallen, and what marks say has not. */
	clock_ns += SECOND_NS / 2;
	assert_true(sp_period_is_due());
	sp_marks_adapt(&sp_thread);
	assert_false(sp_period_is_due());
	assert_in_range(period(), ceiling / 2, ceiling * 3 / 4);
	assert_true(sp_period_ceiling() == ceiling);
	/* One law for each period. */
	take_samples(50);
	assert_ptr_equal(sp_period_law(), law);
	clock_ns += 10 * SECOND_NS;
	sp_marks_adapt(&sp_thread);
	assert_ptr_equal(sp_period_law(), &process.law);
	p = load_profile(path);
	/* A mark for each of 23 quarters of a doubling, on the way up. */
	assert_int_equal(p->n_stretches, 1 + 23);
	for (size_t i = 1; i < p->n_stretches; i++)
		assert_true(p->stretches[i].period_bytes >
			    p->stretches[i - 1].period_bytes);
	assert_true(p->period_bytes == ceiling);
	assert_true(agent_fixture_losses() == 0);
}

/* Orders are about the base; what has piled up stays. */
TEST_BETWEEN(remote, NULL, agent_fixture_teardown)
{
	const char *path = open_all(true, TARGET);
	struct sp_profile *p;
	uint64_t before;

	take_samples(300);
	before = period();
	assert_true(before > 4 * FIXTURE_PERIOD);
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_ON, 65536), 0);
	assert_in_range(period(), before * 16, (before + 1) * 16);
	assert_true(sp_period_ceiling() == period());
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_OFF, 0), 0);
	assert_ptr_equal(sp_period_law(), &sp_period_off);
	assert_true(sp_period_ceiling() == 0);
	/* Off is off. */
	take_samples(100);
	assert_false(sp_period_is_due());
	assert_ptr_equal(sp_period_law(), &sp_period_off);
	clock_ns += 100 * SECOND_NS;
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_ON, 0), 0);
	assert_true(period() == 65536);
	p = load_profile(path);
	assert_true(p->stretches[p->n_stretches - 1].period_bytes == 65536);
	assert_true(p->stretches[p->n_stretches - 2].period_bytes == 0);
}

/* A child has the period of its parent, and has made no mark of it. */
TEST_BETWEEN(child, NULL, agent_fixture_teardown)
{
	open_all(true, TARGET);
	take_samples(500);
	clock_ns += 2 * SECOND_NS;
	sp_marks_adapt(&sp_thread);
	assert_true(sp_period_ceiling() > period());
	sp_marks_reset();
	assert_true(sp_period_ceiling() == period());
	assert_true(period() > FIXTURE_PERIOD);
}

static uint64_t fit(unsigned int live_percent, bool is_longer)
{
	assert_int_equal(sp_period_fit(live_percent), is_longer);
	sp_marks_adapt(&sp_thread);
	assert_false(sp_period_is_due());
	return period() / FIXTURE_PERIOD;
}

/* The more of the file is alive, the longer the period, and back. */
TEST_BETWEEN(room_in_the_file, NULL, agent_fixture_teardown)
{
	const char *path = open_all(true, 0);
	struct sp_profile *p;

	assert_int_equal(fit(15, false), 1);
	assert_int_equal(fit(16, true), 4);
	assert_int_equal(fit(30, true), 16);
	assert_int_equal(fit(30, true), 64);
	/* What it did so far is enough. */
	assert_int_equal(fit(29, false), 64);
	assert_int_equal(fit(6, false), 64);
	assert_int_equal(fit(5, false), 32);
	assert_true(sp_period_ceiling() == 64 * FIXTURE_PERIOD);
	/* Orders are about the base. */
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_ON, 1000), 0);
	assert_true(period() == 32000);
	/* A child begins with an empty file. */
	sp_marks_reset();
	assert_true(sp_period_is_due());
	sp_marks_adapt(&sp_thread);
	assert_true(period() == 1000);
	p = load_profile(path);
	/* A mark where it is longer than ever, and one of the order. */
	assert_int_equal(p->n_stretches, 1 + 3 + 1);
	for (unsigned int i = 0; i < 40; i++)
		sp_period_fit(40);
	sp_marks_adapt(&sp_thread);
	assert_true(period() == SP_FORMAT_PERIOD_MAX);
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_OFF, 0), 0);
	assert_false(sp_period_is_due());
}

/* Near the limit of memory the base is an eighth, and a snapshot says when;
 * behind it all is as before.  Nothing is marked that was not longer before. */
TEST_BETWEEN(near_limit, NULL, agent_fixture_teardown)
{
	const uint64_t base = 1 << 20;
	const char *path = open_all(true, 0);
	struct sp_profile *p;

	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, base);
	sp_period_init(&process.law, SP_LAW_EXPONENTIAL, true, 0);
	sp_period_press(false);
	assert_false(sp_period_is_due());
	for (int round = 0; round < 2; round++) {
		sp_period_press(true);
		sp_period_press(true);
		assert_true(sp_period_is_due());
		sp_marks_adapt(&sp_thread);
		assert_true(period() == base / 8);
		assert_true(sp_period_ceiling() == base);
		assert_false(sp_period_is_due());
		sp_period_press(false);
		assert_true(sp_period_is_due());
		sp_marks_adapt(&sp_thread);
		assert_true(period() == base);
		assert_false(sp_period_is_due());
	}
	p = load_profile(path);
	assert_int_equal(p->n_snapshots, 2);
	assert_string_equal(p->snapshots[0].name, SP_MARK_NEAR_LIMIT);
	assert_int_equal(p->n_stretches, 1);
}

/* What is asked for there is an eighth of that, 4 KiB at least; a smaller one,
 * and off, stay as they are. */
TEST_BETWEEN(near_limit_orders, NULL, agent_fixture_teardown)
{
	static const uint64_t asked[][2] = {
		{1 << 20, 1 << 17}, {32768, 4096}, {16384, 4096},
		{4096, 4096},       {100, 100},    {1, 1},
	};

	open_all(true, 0);
	sp_period_press(true);
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		assert_int_equal(
			sp_marks_sampling(&sp_thread, SP_MARKS_ON, asked[i][0]),
			0);
		assert_true(period() == asked[i][1]);
		sp_marks_adapt(&sp_thread);
		assert_false(sp_period_is_due());
	}
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_OFF, 0), 0);
	sp_period_press(false);
	sp_marks_adapt(&sp_thread);
	assert_true(period() == 0);
	assert_int_equal(sp_marks_sampling(&sp_thread, SP_MARKS_ON, 1 << 20),
			 0);
	assert_true(period() == 1 << 20);
}

/* No more laws than there are steps, whatever happens for however long. */
TEST_BETWEEN(bounded, NULL, agent_fixture_teardown)
{
	const char *path = open_all(true, TARGET);
	struct sp_profile *p;

	for (int round = 0; round < 3; round++) {
		take_samples(20000);
		assert_true(period() == SP_FORMAT_PERIOD_MAX);
		clock_ns += 1000 * SECOND_NS;
		sp_marks_adapt(&sp_thread);
		assert_true(period() == FIXTURE_PERIOD);
	}
	p = load_profile(path);
	assert_in_range(p->n_stretches, 100, 1 + SP_RATE_LIMIT_STEPS_MAX);
	assert_true(agent_fixture_losses() == 0);
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
