/* SPDX-License-Identifier: MIT */
/*
 * The rate limit compared with long double, and what its header promises of all
 * windows of time. Whether estimates are right under it is asked in
 * tests/statistics.
 */
#include <math.h>

#include "agent/process/rate_limit.h"
#include "base/rng.h"
#include "support/test.h"

#define SECOND_NS  1000000000ull
#define PERIOD_END (1ull << 40)

TEST(period)
{
	static const uint64_t bases[] = {1,      2,          3,
					 4096,   102400,     512 * 1024,
					 999999, 1ull << 39, PERIOD_END};

	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		uint64_t before = 0;

		assert_true(sp_rate_limit_period(bases[i], 0) == bases[i]);
		for (unsigned int k = 0; k <= SP_RATE_LIMIT_STEPS_MAX; k++) {
			const uint64_t got = sp_rate_limit_period(bases[i], k);
			long double want =
				(long double)bases[i] * exp2l(k / 4.0L);

			if (want > PERIOD_END)
				want = PERIOD_END;
			assert_true(got >= before);
			assert_true(fabsl((long double)got - want) <=
				    1 + want * 1e-9L);
			before = got;
		}
		assert_true(before == PERIOD_END);
	}
}

TEST(init)
{
	struct sp_rate_limit t;

	sp_rate_limit_init(&t, 0);
	assert_true(t.interval_ns == 0);
	assert_int_equal(sp_rate_limit_step(&t, 0, SECOND_NS, 0), 0);
	for (uint64_t rate = 1; rate <= 1000000; rate = rate * 5 / 4 + 1) {
		/* An e-fold of the period: a second, 32 samples at least. */
		const long double efold_ns = fmaxl(1e9L, 32e9L / rate);

		sp_rate_limit_init(&t, rate);
		assert_true(t.interval_ns == SECOND_NS / rate);
		assert_true(t.credit_ns == SECOND_NS);
		assert_true(fabsl(t.step_ns - efold_ns * logl(2) / 4) <
			    efold_ns * 1e-4L);
	}
}

TEST(charge)
{
	struct sp_rate_limit t;
	uint64_t due = 0;

	sp_rate_limit_init(&t, 100);
	/* Young clocks, and a credit of a second, not more. */
	assert_true(sp_rate_limit_charge(&t, 0, 0) == 10000000);
	assert_true(sp_rate_limit_charge(&t, 0, SECOND_NS / 2) == 10000000);
	assert_true(sp_rate_limit_charge(&t, 0, 100 * SECOND_NS) ==
		    99 * SECOND_NS + 10000000);
	for (int i = 0; i < 250; i++)
		due = sp_rate_limit_charge(&t, due, 100 * SECOND_NS);
	assert_true(due == 99 * SECOND_NS + 250 * 10000000ull);
}

/* The lead in steps, as a number with a fraction. */
static long double lead_of(const struct sp_rate_limit *t, uint64_t due_ns,
			   uint64_t now_ns)
{
	const long double lead = (long double)due_ns - (long double)now_ns;

	return lead < 0 ? 0 : lead / t->step_ns;
}

TEST(step)
{
	struct sp_rate_limit t;
	struct sp_rng rng;
	unsigned int step = 0;
	uint64_t now = 1000 * SECOND_NS, due = 0;

	sp_rate_limit_init(&t, 500);
	sp_rng_init(&rng, 5, 1);
	for (int i = 0; i < 200000; i++) {
		const uint64_t r = sp_rng_next(&rng);
		unsigned int before = step;
		long double lead;

		/* Bursts, pauses, and both of any length. */
		now += r % 5 == 0 ? (r >> 8) % (1ull << (r >> 58)) : r % 50000;
		for (uint64_t n = (r >> 32) % 3; n; n--)
			due = sp_rate_limit_charge(&t, due, now);
		lead = lead_of(&t, due, now);
		step = sp_rate_limit_step(&t, step, due, now);
		assert_true(step <= SP_RATE_LIMIT_STEPS_MAX);
		/* It is the lead, or one more on the way down. */
		assert_true(step >= floorl(fminl(lead, 160)));
		assert_true(lead > 0 ? step <= floorl(lead) + 1 : step == 0);
		/* It rises to the lead, and falls by more than a step only. */
		assert_true(step <= before || step == floorl(lead) ||
			    step == SP_RATE_LIMIT_STEPS_MAX);
		assert_true(step >= before || lead < before - 1 || lead == 0);
	}
	/* However far ahead, and long ago. */
	assert_int_equal(sp_rate_limit_step(&t, 3, UINT64_MAX, 0),
			 SP_RATE_LIMIT_STEPS_MAX);
	assert_int_equal(sp_rate_limit_step(&t, 160, 0, UINT64_MAX), 0);
}

TEST_MAIN(NULL, NULL)
