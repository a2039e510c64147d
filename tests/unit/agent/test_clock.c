/* SPDX-License-Identifier: MIT */
/*
 * Wall clock and monotonic clock as of one moment, on a machine where a thread
 * may have to wait between any two readings.
 */
#include "base/rng.h"
#include "support/test.h"

/* The last, since the agent may not use all that tests do. */
#include "agent/sys/clock.c"

#define WALL_AHEAD 1600000000000000000u /* of the monotonic clock */

static struct {
	uint64_t now_ns;
	uint64_t step_ns; /* that each reading takes */
	uint64_t wait_ns; /* after one, */
	unsigned int in;  /* of so many */
	unsigned int readings;
	struct sp_rng rng;
} machine;

static int read_machine(clockid_t clock, struct timespec *t)
{
	const uint64_t ahead = clock == CLOCK_REALTIME ? WALL_AHEAD : 0;
	const uint64_t ns = machine.now_ns + ahead;

	t->tv_sec = (time_t)(ns / 1000000000u);
	t->tv_nsec = (long)(ns % 1000000000u);
	machine.now_ns += machine.step_ns;
	if (machine.in && sp_rng_next(&machine.rng) % machine.in == 0)
		machine.now_ns += machine.wait_ns;
	machine.readings++;
	return 0;
}

/* How far the two are from being of one moment. */
static uint64_t apart(void)
{
	const struct sp_clock_both both = sp_clock_both();
	const uint64_t wall = both.wall_ns - WALL_AHEAD;

	return wall > both.now_ns ? wall - both.now_ns : both.now_ns - wall;
}

static void start(uint64_t step_ns, uint64_t wait_ns, unsigned int in)
{
	memset(&machine, 0, sizeof(machine));
	vdso_clock = read_machine;
	machine.now_ns = 7000000000u;
	machine.step_ns = step_ns;
	machine.wait_ns = wait_ns;
	machine.in = in;
	sp_rng_init(&machine.rng, 23, in);
}

/* Nothing is in the way: one pair is enough. */
TEST(quick)
{
	start(30, 0, 0);
	assert_int_equal(apart(), 0);
	assert_int_equal(machine.readings, 3);
}

/* Never close: the reading ends. */
TEST(slow)
{
	start(40000, 0, 0);
	assert_int_equal(apart(), 0);
	assert_int_equal(machine.readings, 3 * READINGS);
}

/* A wait of 20 ms follows every third reading: of 20 pairs none is without one
 * with probability (1 - 4 / 9)^20 = 8e-6; the seed is fixed. */
TEST(busy)
{
	start(50, 20000000, 3);
	for (int i = 0; i < 1000; i++)
		assert_true(apart() <= CLOSE_NS);
}

/* A clock that stands still, or is refused. */
TEST(none)
{
	start(0, 0, 0);
	assert_int_equal(apart(), 0);
}

TEST_MAIN(NULL, NULL)
