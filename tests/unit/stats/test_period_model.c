/* SPDX-License-Identifier: MIT */
/*
 * The figures that a period is said to give (E34 to E39), against the terms of
 * single samples and simulation; the best law against all laws nearby.
 */
#include <math.h>

#include "stats/period_model.h"
#include "stats/estimator.h"
#include "support/test.h"

#define N 6

/* 16 bytes to 1 MiB, unequally many. */
static const struct sp_period_model_class classes[N] = {
	{1000, 16},  {300, 100},  {50.5, 3000},
	{20, 65536}, {7, 300000}, {3, 1 << 20},
};
static const struct sp_period_model mixed = {classes, N};
static const struct sp_period_model empty;

static void assert_close(double value, double expected, double relative)
{
	if (!(fabs(value - expected) <= relative * fabs(expected)))
		fail_msg("%.17g is not %.17g", value, expected);
}

TEST(sums)
{
	double objects = 0, bytes = 0;

	for (size_t i = 0; i < N; i++) {
		objects += classes[i].objects;
		bytes += classes[i].objects * classes[i].size_bytes;
	}
	assert_close(sp_period_model_objects(&mixed), objects, 1e-15);
	assert_close(sp_period_model_bytes(&mixed), bytes, 1e-15);
	assert_true(sp_period_model_objects(&empty) == 0);
	assert_true(sp_period_model_error(&empty, 512, 0.95) == 0);
}

/* Each accumulator of one sample has its share of the variance in k2, which is
 * unbiased: its expectation is pi k2. */
TEST(moments)
{
	static const double periods[] = {2, 64, 4096, 1 << 16, 1 << 24};

	for (size_t p = 0; p < sizeof(periods) / sizeof(*periods); p++) {
		double samples = 0, variance = 0, count_variance = 0;

		for (size_t i = 0; i < N; i++) {
			static const struct sp_law_used law;
			const uint64_t size = (uint64_t)classes[i].size_bytes;
			const uint64_t period = (uint64_t)periods[p];
			const double chance =
				sp_inclusion_probability(size, period);
			struct sp_acc acc;

			sp_acc_init(&acc, period);
			sp_acc_add(&acc, &law, size, 0, period);
			samples += classes[i].objects * chance;
			variance += classes[i].objects * chance * acc.k2;
			count_variance += classes[i].objects * chance * acc.c2;
		}
		assert_close(sp_period_model_samples(&mixed, periods[p]),
			     samples, 1e-12);
		assert_close(sp_period_model_variance(&mixed, periods[p]),
			     variance, 1e-12);
		assert_close(sp_period_model_count_variance(&mixed, periods[p]),
			     count_variance, 1e-12);
		assert_close(sp_period_model_error(&mixed, periods[p], 0.95),
			     1.9599639845400545 * sqrt(variance) /
				     sp_period_model_bytes(&mixed),
			     1e-9);
	}
}

TEST(period_one_is_exact)
{
	assert_true(sp_period_model_samples(&mixed, 1) ==
		    sp_period_model_objects(&mixed));
	assert_true(sp_period_model_variance(&mixed, 1) == 0);
	assert_true(sp_period_model_count_variance(&mixed, 1) == 0);
	assert_true(sp_period_model_error(&mixed, 1, 0.95) == 0);
}

/* What a period gives, gives the period. */
TEST(inverses)
{
	for (double period = 3; period < 1e9; period *= 7) {
		assert_close(sp_period_model_period_for_samples(
				     &mixed,
				     sp_period_model_samples(&mixed, period)),
			     period, 1e-9);
		assert_close(
			sp_period_model_period_for_error(
				&mixed,
				sp_period_model_error(&mixed, period, 0.99),
				0.99),
			period, 1e-6);
		assert_close(sp_period_model_period_for_variance(
				     &mixed,
				     sp_period_model_variance(&mixed, period)),
			     period, 1e-6);
	}
	/* More than there is, and less than any period has. */
	assert_close(sp_period_model_period_for_samples(&mixed, 1e9), 1, 1e-9);
	assert_close(sp_period_model_period_for_samples(&mixed, 1e-30), 0x1p40,
		     0);
}

/* Small objects: n of them have the error t / sqrt(n). */
TEST(small_objects)
{
	static const struct sp_period_model_class small = {1e9, 16};
	const struct sp_period_model model = {&small, 1};
	const double period = 16 * 1e9 / 400;

	assert_close(sp_period_model_error(&model, period, 0.95), 1.95996 / 20,
		     1e-5);
}

/* ---- the best law ---- */

/* Variance of the bytes if class i is taken with chance[i]. */
static double variance_of(const double *chance)
{
	double sum = 0;

	for (size_t i = 0; i < N; i++)
		sum += classes[i].objects * classes[i].size_bytes *
		       classes[i].size_bytes * (1 - chance[i]) / chance[i];
	return sum;
}

static void best_chances(double threshold, double *ret)
{
	for (size_t i = 0; i < N; i++)
		ret[i] = fmin(1, classes[i].size_bytes / threshold);
}

TEST(best_keeps_to_budget)
{
	for (double samples = 2; samples < 1300; samples *= 1.5) {
		const double threshold =
			sp_period_model_best_threshold(&mixed, samples);
		double chance[N], sum = 0;

		best_chances(threshold, chance);
		for (size_t i = 0; i < N; i++)
			sum += classes[i].objects * chance[i];
		assert_close(sum, samples, 1e-9);
		assert_close(sp_period_model_best_variance(&mixed, threshold),
			     variance_of(chance), 1e-9);
	}
}

/*
 * Any law that takes a little more of one class and less of another, at the
 * same number of samples, has a greater variance; and so has the law by bytes.
 */
TEST(best_is_best)
{
	double chance[N];

	for (double samples = 5; samples < 1000; samples *= 3) {
		const double threshold =
			sp_period_model_best_threshold(&mixed, samples);
		const double best =
			sp_period_model_best_variance(&mixed, threshold);
		const double period =
			sp_period_model_period_for_samples(&mixed, samples);

		assert_true(sp_period_model_variance(&mixed, period) > best);
		for (size_t i = 0; i < N; i++) {
			for (size_t j = 0; j < N; j++) {
				double step;

				best_chances(threshold, chance);
				step = 1e-3 *
				       fmin(chance[i],
					    chance[j] * classes[j].objects /
						    classes[i].objects);
				if (i == j || chance[i] + step > 1)
					continue;
				chance[i] += step;
				chance[j] -= step * classes[i].objects /
					     classes[j].objects;
				assert_true(variance_of(chance) > best);
			}
		}
	}
}

/* Where no object is large, the law by bytes is as good. */
TEST(small_objects_are_optimal)
{
	static const struct sp_period_model_class small[] = {{1e6, 16},
							     {1e5, 400}};
	const struct sp_period_model model = {small, 2};
	const double samples = 100;
	const double period =
		sp_period_model_period_for_samples(&model, samples);

	assert_close(sp_period_model_variance(&model, period),
		     sp_period_model_best_variance(
			     &model,
			     sp_period_model_best_threshold(&model, samples)),
		     1e-5);
}

TEST_MAIN(NULL, NULL)
