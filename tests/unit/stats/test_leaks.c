/* SPDX-License-Identifier: MIT */
/* Verdicts of whole profiles: where a run begins and ends that is judged, and
 * uneven runs. */
#include <errno.h>
#include <math.h>

#include "stats/leaks.h"
#include "support/live_profile.h"
#include "support/test.h"

#define RUN_NS 1000000u
#define SIZE   100u

static struct sp_leaks *judge_span(struct live_profile *live, uint64_t from_ns,
				   uint64_t to_ns)
{
	const uint32_t row_of_stack[] = {0};
	struct sp_leaks *leaks;

	assert_int_equal(sp_leaks_new(&live->profile, row_of_stack, 1, from_ns,
				      to_ns, &leaks, NULL),
			 0);
	return leaks;
}

/* The verdict, and that of all, which is the same. */
static enum sp_leak_verdict verdict_of(struct live_profile *live)
{
	struct sp_leaks *leaks = judge_span(live, SP_NEVER, SP_NEVER);
	const enum sp_leak_verdict verdict = leaks->rows[0].verdict;

	assert_int_equal(leaks->rows[1].verdict, verdict);
	assert_int_equal(leaks->judging.n_leaks, verdict == SP_LEAK_LEAK);
	sp_leaks_free(leaks);
	return verdict;
}

/* From `from` to `to`, each `step`; gone after that long, or at `end`. */
static void add(struct live_profile *live, uint64_t from, uint64_t to,
		uint64_t step, uint64_t length, uint64_t end)
{
	for (uint64_t t = from; t < to; t += step)
		live_profile_add(live, t, length == SP_NEVER ? end : t + length,
				 SIZE);
}

TEST(leak_and_steady)
{
	struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	add(&live, 0, RUN_NS, 1000, SP_NEVER, SP_NEVER);
	assert_int_equal(verdict_of(&live), SP_LEAK_LEAK);
	live_profile_clear(&live);
	add(&live, 0, RUN_NS - 1000, 1000, 200000, 0);
	assert_int_equal(verdict_of(&live), SP_LEAK_STEADY);
	live_profile_free(&live);
}

/* All of it is freed at the end, or by --to END it was. */
TEST(teardown)
{
	struct sp_leaks *leaks;
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	live.profile.end = SP_PROFILE_END_CLEAN;
	add(&live, 0, RUN_NS - 2000, 1000, SP_NEVER, RUN_NS - 1000);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_int_equal(leaks->teardown_ns, RUN_NS - 1000);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
	leaks = judge_span(&live, SP_NEVER, RUN_NS);
	assert_int_equal(leaks->teardown_ns, SP_NEVER);
	assert_int_not_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
	/* a process that goes on has none */
	live.profile.end = SP_PROFILE_END_RUNNING;
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_int_equal(leaks->teardown_ns, SP_NEVER);
	sp_leaks_free(leaks);
}

/* Idle at first and at last: what is there then does not grow old. */
TEST(idle)
{
	struct sp_leaks *leaks;
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	add(&live, 300000, 700000, 200, SP_NEVER, SP_NEVER);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_true(leaks->left_idle);
	assert_in_range(leaks->clock.edge_ns[0], 298000, 300000);
	assert_in_range(leaks->clock.edge_ns[SP_GROWTH_WINDOWS], 699800,
			702000);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
	/* as it was asked for */
	leaks = judge_span(&live, 0, RUN_NS);
	assert_false(leaks->left_idle);
	assert_int_equal(leaks->clock.edge_ns[0], 0);
	assert_int_not_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
}

/* Busy in the first third of the run, and at the end: by time it grows in
 * steps, by bytes in a line. */
TEST(uneven)
{
	struct sp_leaks *leaks;
	struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	for (int i = 0; i < 3; i++)
		add(&live, 50000 + 400000 * (uint64_t)i,
		    150000 + 400000 * (uint64_t)i, 100, SP_NEVER, SP_NEVER);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_true(leaks->is_uneven);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
	/* loaded at first, in much of all bytes, and then nothing more */
	live_profile_clear(&live);
	add(&live, 0, 50000, 10, SP_NEVER, SP_NEVER);
	add(&live, 50000, RUN_NS, 1000, 500, 0);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_false(leaks->is_uneven);
	assert_int_not_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
	live_profile_free(&live);
}

/* Held up for most of the time, it allocates in six moments: windows by bytes
 * are within them. */
TEST(starved)
{
	struct sp_leaks *leaks;
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	for (uint64_t i = 0; i < 6; i++)
		add(&live, 100000 + 150300 * i, 100000 + 150300 * i + 400, 1,
		    SP_NEVER, SP_NEVER);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_true(leaks->is_uneven);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_LEAK);
	sp_leaks_free(leaks);
}

/* What fills up is all that is allocated: by its own bytes it grows evenly. */
TEST(filling_alone)
{
	struct sp_leaks *leaks;
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	for (uint64_t i = 0; i < 1000; i++)
		add(&live, i * i, i * i + 1, 1, SP_NEVER, SP_NEVER);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_true(leaks->is_uneven);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_FILLING);
	/* and no longer run is asked for */
	assert_true(leaks->rows[0].longer == 0);
	sp_leaks_free(leaks);
}

/* What is freed soon is the load.  Fewer and fewer requests that leak are no
 * cache; what fills up does not make an even load uneven. */
TEST(load)
{
	struct sp_leaks *leaks;
	struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	for (uint64_t i = 0; i < 1000; i++) {
		add(&live, i * i, i * i + 1, 1, SP_NEVER, SP_NEVER);
		add(&live, i * i, i * i + 4, 1, 500, 0);
	}
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_true(leaks->is_uneven);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_UNDECIDED);
	sp_leaks_free(leaks);
	live_profile_clear(&live);
	add(&live, 0, RUN_NS, 250, 500, 0);
	for (uint64_t i = 0; i < 1000; i++)
		add(&live, i * i * i / 1000, i * i * i / 1000 + 1, 1, SP_NEVER,
		    SP_NEVER);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_false(leaks->is_uneven);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_FILLING);
	sp_leaks_free(leaks);
	live_profile_free(&live);
}

/* n objects, each so long; they get fewer by that part of the run. */
static void add_falling(struct live_profile *live, unsigned int n, double fall,
			uint64_t length)
{
	for (unsigned int i = 0; i < n; i++) {
		const double share = (i + 0.5) / n;
		const double t =
			(1 - sqrt(1 - fall * share * (2 - fall))) / fall;

		add(live, (uint64_t)(t * RUN_NS), (uint64_t)(t * RUN_NS) + 1, 1,
		    length, SP_NEVER);
	}
}

/* The run is even; that the load falls a little matters all the same. */
/* Samples were lost: no growth is exact, and what may be lost may have gone. */
TEST(lost_samples)
{
	struct sp_leaks *leaks;
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	add(&live, 0, RUN_NS, 1000, SP_NEVER, SP_NEVER);
	live.profile.exact_alloc_bytes = 1000 * SIZE;
	for (int lost = 0; lost < 3; lost++) {
		/* of so many are missing a tenth, or all but some */
		if (lost) {
			live.profile.losses[SP_LOSS_NO_LANE] = 100;
			live.profile.exact_alloc_bytes =
				(lost == 1 ? 1100 : 90000) * SIZE;
		}
		leaks = judge_span(&live, SP_NEVER, SP_NEVER);
		assert_int_equal(leaks->rows[0].verdict,
				 lost == 2 ? SP_LEAK_UNDECIDED : SP_LEAK_LEAK);
		assert_int_equal(
			leaks->rows[0]
				.bytes.lo<leaks->rows[0].bytes.hi, lost> 0);
		assert_int_equal(
			leaks->rows[0]
				.half_bytes
				.lo<leaks->rows[0].half_bytes.hi, lost> 0);
		sp_leaks_free(leaks);
	}
}

TEST(load_that_falls_little)
{
	struct sp_leaks *leaks;
	struct live_profile live;

	live_profile_init(&live, 65536, RUN_NS);
	add_falling(&live, 600, 0.49, SP_NEVER);
	add_falling(&live, 6000, 0.3, 500);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_false(leaks->is_uneven);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_UNDECIDED);
	sp_leaks_free(leaks);
	live_profile_clear(&live);
	add_falling(&live, 600, 0.49, SP_NEVER);
	add(&live, 0, RUN_NS, 200, 500, 0);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_int_equal(leaks->rows[0].verdict, SP_LEAK_FILLING);
	sp_leaks_free(leaks);
	live_profile_free(&live);
}

/* (E54) Each clock has its share of the level. */
TEST(shares)
{
	static const struct {
		struct sp_leak_clocks clocks;
		double times; /* the p of one clock */
	} cases[] = {
		{{.is_uneven = false}, 1},
		{{.is_uneven = true}, 2},
		{{.is_load = true, .has_all = true}, 1.25},
		{{.is_uneven = true, .is_load = true, .has_all = true}, 2.5}};
	struct sp_leak_judging judging;
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_leaks *leaks;
	struct sp_leak row;
	double p = 0;

	live_profile_init(&live, 65536, RUN_NS);
	add_falling(&live, 150, 0.01, SP_NEVER);
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	row = leaks->rows[0];
	for (int c = 1; c < SP_LEAK_CLOCKS; c++)
		row.growth[c] = row.growth[SP_LEAK_BY_TIME];
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			sp_leak_judge(&row, 1, 1, &cases[i].clocks, &judging),
			0);
		p = i ? p : row.p;
		assert_in_range(1e9 * row.p, 1, 2e8);
		assert_float_equal(row.p / p, cases[i].times, 1e-9);
	}
	sp_leaks_free(leaks);
}

/* One object that doubles tells nothing. */
TEST(doubling)
{
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, RUN_NS);
	add(&live, 0, RUN_NS, 1000, 500, 0);
	for (uint64_t t = 1000; t < RUN_NS; t *= 2)
		live_profile_add(&live, t, 2 * t < RUN_NS ? 2 * t : SP_NEVER,
				 100 * t);
	assert_int_equal(verdict_of(&live), SP_LEAK_UNDECIDED);
}

TEST(refused)
{
	const uint32_t row_of_stack[] = {0};
	struct sp_leaks *leaks;
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_error err;

	live_profile_init(&live, 1, RUN_NS);
	assert_int_equal(sp_leaks_new(&live.profile, row_of_stack, 1, 500, 510,
				      &leaks, &err),
			 -ENODATA);
	live.profile.has_frees = false;
	assert_int_equal(sp_leaks_new(&live.profile, row_of_stack, 1, SP_NEVER,
				      SP_NEVER, &leaks, &err),
			 -ENODATA);
	assert_non_null(strstr(err.message, "frees"));
	live.profile.has_frees = true;
	live.profile.is_timeless = true;
	assert_int_equal(sp_leaks_new(&live.profile, row_of_stack, 1, SP_NEVER,
				      SP_NEVER, &leaks, &err),
			 -ENODATA);
	assert_non_null(strstr(err.message, "times"));
	/* nothing was sampled: nothing is said */
	live.profile.is_timeless = false;
	leaks = judge_span(&live, SP_NEVER, SP_NEVER);
	assert_int_equal(leaks->judging.n_tests, 0);
	sp_leaks_free(leaks);
	/* a run of no length, as of a file that is cut early */
	live.profile.duration_ns = 0;
	live_profile_add(&live, 0, SP_NEVER, SIZE);
	live_profile_add(&live, 1, 1, SIZE);
	assert_int_equal(sp_leaks_new(&live.profile, row_of_stack, 1, SP_NEVER,
				      SP_NEVER, &leaks, &err),
			 -ENODATA);
}

TEST_MAIN(NULL, NULL)
