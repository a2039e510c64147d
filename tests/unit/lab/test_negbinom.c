/* SPDX-License-Identifier: MIT */
/* E5: the negative binomial law. */
#include <math.h>

#include "lab/negbinom.h"
#include "support/close.h"
#include "support/golden.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* All 50 integers of the published table for p = 1 / 102400. */
TEST(table)
{
	const json_t *table = golden_get(golden_root, "nb_table");
	const double p = 1 / 102400.;
	size_t i;
	json_t *row;

	assert_int_equal(json_array_size(golden_rows(table, "rows")), 25);
	json_array_foreach(golden_rows(table, "rows"), i, row)
	{
		const double s = golden_number(row, "s");

		assert_close(sp_negbinom_below(s, p, 0.025),
			     golden_number(row, "lo"), 0);
		assert_close(sp_negbinom_below(s, p, 0.975),
			     golden_number(row, "hi"), 0);
	}
}

TEST(other_periods)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "nb_other"), i, row)
		assert_close(sp_negbinom_below(golden_number(row, "s"),
					       1 / golden_number(row, "inv_p"),
					       golden_number(row, "alpha")),
			     golden_number(row, "k"), 0);
}

/* The mean of the law, as the sum of P(failures > k), by Simpson's rule with a
 * step that is small against the period. */
static double mean_from_cdf(double s, double p)
{
	const double step = 0.02 / p, end = (s + 60) / p;
	double sum = 0;
	int weight = 1;

	for (double k = 0; k < end; k += step) {
		sum += weight * (1 - sp_negbinom_cdf(s, p, k));
		weight = weight == 4 ? 2 : 4;
	}
	/* the sum over k >= 0 exceeds the integral by half of its first term */
	return sum * step / 3 + 0.5;
}

TEST(worked_example)
{
	const json_t *example = golden_get(golden_root, "nb_worked_example");
	const json_t *interval = golden_rows(example, "interval");
	const double s = golden_number(example, "s");
	const double u = golden_number(example, "u");
	const double p = 1 / 102400.;
	const double lo = sp_negbinom_below(s, p, 0.025);
	const double hi = sp_negbinom_below(s, p, 0.975);

	assert_close(lo + u, json_number_value(json_array_get(interval, 0)), 0);
	assert_close(hi + u, json_number_value(json_array_get(interval, 1)), 0);
	/* printed with ten digits */
	assert_close(sp_negbinom_cdf(s, p, lo),
		     golden_number(example, "cdf_lo"), 5e-10);
	assert_close(sp_negbinom_cdf(s, p, hi),
		     golden_number(example, "cdf_hi"), 5e-10);
	assert_close(mean_from_cdf(s, p) + u,
		     golden_number(example, "estimate_sq_over_p_plus_u"), 1e-7);
}

/* Naive: add up the probabilities, one failure more at a time. */
TEST(against_sum)
{
	static const double ps[] = {0.7, 0.393, 0.2, 0.01, 0.0005};
	static const double alphas[] = {0.005, 0.025, 0.5, 0.975, 0.995};

	for (size_t i = 0; i < N(ps); i++)
		for (int s = 1; s <= 12; s += s < 4 ? 1 : 4) {
			const double p = ps[i];
			double pmf = pow(p, s), cdf = 0;
			double below[N(alphas)];

			for (size_t a = 0; a < N(alphas); a++)
				below[a] = -1;
			for (int k = 0; k < (s + 8 * sqrt(s) + 8) / p; k++) {
				cdf += pmf;
				pmf *= (1 - p) * (s + k) / (k + 1);
				for (size_t a = 0; a < N(alphas); a++)
					if (cdf < alphas[a])
						below[a] = k;
				if (k % 7 == 0)
					assert_close(sp_negbinom_cdf(s, p, k),
						     cdf, 1e-11);
			}
			for (size_t a = 0; a < N(alphas); a++)
				assert_close(sp_negbinom_below(s, p, alphas[a]),
					     below[a], 0);
		}
}

/* The definition itself, where k is beyond any table and any exact double. */
TEST(definition_at_scale)
{
	for (double s = 1; s < 2e7; s *= 31)
		for (double r = 2; r < 0x1p45; r *= 97) {
			const double p = -expm1(-1 / r);
			const double k = sp_negbinom_below(s, p, 0.975);
			const double next = fmax(k + 1, nextafter(k, INFINITY));

			assert_true(sp_negbinom_cdf(s, p, k) < 0.975);
			assert_true(sp_negbinom_cdf(s, p, next) >= 0.975);
			assert_between(0, k, s * r * (1 + 4 / sqrt(s)));
		}
}

TEST_MAIN(golden_load, golden_drop)
