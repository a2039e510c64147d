/* SPDX-License-Identifier: MIT */
/* Growth by windows against a count of each moment; what the tests say of
 * lines, and of what is certain. */
#include <math.h>

#include "base/rng.h"
#include "stats/growth.h"
#include "support/close.h"
#include "support/test.h"

#define WINDOWS SP_GROWTH_WINDOWS
#define WINDOW  100u /* ns */
#define RUN_NS  (WINDOWS * WINDOW)

static struct sp_acc object(uint64_t size, uint64_t period)
{
	const struct sp_law_used law = {0};
	struct sp_acc acc;

	sp_acc_init(&acc, period);
	sp_acc_add(&acc, &law, size, 0, period);
	return acc;
}

TEST(clock)
{
	const struct sp_growth_clock c = sp_growth_clock_even(7, 7 + 1000003);

	assert_int_equal(c.edge_ns[0], 7);
	assert_int_equal(c.edge_ns[WINDOWS], 1000010);
	for (unsigned int i = 0; i < WINDOWS; i++)
		assert_in_range(c.edge_ns[i + 1] - c.edge_ns[i], 55555, 55556);
}

/* Is it old at the end of window k? */
static bool is_old(uint64_t born, uint64_t gone, unsigned int k)
{
	return born < k * WINDOW && gone >= (k + 1) * WINDOW;
}

TEST(against_counts)
{
	const struct sp_growth_clock clock = sp_growth_clock_even(0, RUN_NS);
	double old[WINDOWS] = {0}, alive[WINDOWS] = {0}, young = 0;
	struct sp_growth g;
	struct sp_rng rng;
	uint64_t n_old = 0;

	sp_rng_init(&rng, 1, 0);
	sp_growth_init(&g, 1);
	for (int i = 0; i < 3000; i++) {
		const uint64_t size = 1 + sp_rng_next(&rng) % 50;
		const uint64_t born = sp_rng_next(&rng) % (RUN_NS + 100);
		const uint64_t length =
			sp_rng_next(&rng) % (i % 3 ? 2 * WINDOW : RUN_NS);
		const uint64_t gone = i % 5 ? born + length : UINT64_MAX;
		const struct sp_acc one = object(size, 1);
		bool is_any = false;

		sp_growth_add(&g, &clock, born, gone, &one);
		for (unsigned int k = 0; k < WINDOWS; k++) {
			const bool is = is_old(born, gone, k);

			old[k] += is ? (double)size : 0;
			is_any |= is && k >= SP_GROWTH_START;
			if (born < (k + 1) * WINDOW && gone >= (k + 1) * WINDOW)
				alive[k] += (double)size;
		}
		n_old += is_any && born >= WINDOW;
		if (born < RUN_NS && gone >= RUN_NS &&
		    !is_old(born, gone, WINDOWS - 1))
			young += (double)size;
	}
	for (unsigned int k = 0; k < WINDOWS; k++) {
		const double before = k ? old[k - 1] : 0;

		assert_close(g.growth[k], old[k] - before, 1e-12);
		assert_close(g.alive[k], alive[k], 1e-12);
	}
	assert_int_equal(g.old, n_old);
	assert_close(g.alive_bytes, alive[WINDOWS - 1], 1e-12);
	assert_close(g.young_bytes, young, 1e-12);
	/* all is known */
	assert_close(sp_growth_bytes(&g, false, 0.95).value,
		     old[WINDOWS - 1] - old[SP_GROWTH_START - 1], 1e-12);
	assert_close(sp_growth_bytes(&g, true, 0.95).value,
		     old[WINDOWS - 1] - old[WINDOWS - 1 - 8], 1e-12);
}

/* Each window has `bytes[k]` more; one object each. */
static struct sp_growth growth_of(const double *bytes, uint64_t period)
{
	const struct sp_growth_clock clock = sp_growth_clock_even(0, RUN_NS);
	struct sp_growth g;

	sp_growth_init(&g, period);
	for (unsigned int k = 1; k < WINDOWS; k++) {
		const struct sp_acc one = object((uint64_t)bytes[k], period);

		if (bytes[k] > 0)
			sp_growth_add(&g, &clock, (k - 1) * WINDOW, UINT64_MAX,
				      &one);
	}
	return g;
}

TEST(certain)
{
	double line[WINDOWS], step[WINDOWS] = {0};
	struct sp_growth g;
	struct sp_growth_test t;

	for (unsigned int k = 0; k < WINDOWS; k++)
		line[k] = 100;
	g = growth_of(line, 1);
	t = sp_growth_test(&g);
	assert_true(t.p_none < 1e-9 && t.p_slows < 1e-9);
	assert_true(t.p_goes_on > 0.5);
	assert_int_equal(t.windows[0] + t.windows[1], 16);
	assert_true(sp_growth_is_late(&g, 1e-9));
	assert_close(sp_growth_objects(&g), 16, 1e-12);
	/* one step is no growth, however large */
	step[12] = 1e6;
	g = growth_of(step, 1);
	t = sp_growth_test(&g);
	assert_true(t.p_none > 0.05);
	assert_int_equal(t.windows[1], 1);
	assert_close(sp_growth_objects(&g), 1, 1e-12);
	/* it slows down to nothing */
	for (unsigned int k = 10; k < WINDOWS; k++)
		line[k] = 0;
	g = growth_of(line, 1);
	t = sp_growth_test(&g);
	assert_true(t.p_slows > 0.99 && t.p_goes_on < 1e-4);
	assert_false(sp_growth_is_late(&g, 0.4));
}

/* 16 samples, each of a whole period and more: E53 by hand. */
TEST(strength)
{
	const double sum = 16 * 100 / -expm1(-100 / 1000.0);
	const double q = exp(-100 / 1000.0), w = sum / 16;
	double line[WINDOWS];
	struct sp_growth g;

	for (unsigned int k = 0; k < WINDOWS; k++)
		line[k] = 100;
	g = growth_of(line, 1000);
	assert_close(sp_growth_test(&g).strength,
		     sum / 6 / sqrt(8 * w * w * q * (1 + 4. / 9)), 1e-9);
	sp_growth_init(&g, 1000);
	assert_true(sp_growth_test(&g).strength == 0);
	assert_true(sp_growth_test(&g).p_none == 1);
}

TEST_MAIN(NULL, NULL)
