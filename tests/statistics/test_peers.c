/* SPDX-License-Identifier: MIT */
/*
 * Statements of other profilers about sampling by bytes, with our sampler.
 * False alarm: 6e-6; 1 s.
 *
 * Claims of other profilers about sampling by bytes, with the agent's own
 * sampler, and the error that comes from unbiasing a sum.
 *
 * H0: heapprofd's two statements about coverage hold, since the inclusion
 * probabilities are 0.950213 and 0.826226 (E2); the mean relative error of a
 * count of hits of one object is heapprofd's curve (E18); jemalloc's example,
 * a million objects of 8 bytes and one of 8 MB, is estimated without bias if
 * each sample is divided by its own probability (E3).
 *
 * Statistics, fixed seeds: z of the hits among n = 1e6 objects; z of the mean
 * error of n = 4e5 objects at each of eight sizes; z of the mean estimate of n
 * = 20000 runs.  All are normal.
 *
 * alpha: |z| <= 5 is missed with probability 5.7e-7 by each of the 11.
 *
 * Power: a probability off by 0.0013, and a curve off by 1 %, are rejected with
 * probability above 0.9; what unbiasing the sum gives in jemalloc's example is
 * 47 standard errors off.
 */
#include <math.h>
#include <stdbool.h>

#include "agent/thread/sampler.h"
#include "stats/estimator.h"
#include "support/test.h"

#define Z_MAX 5.0
#define KIB   1024ull

/* "Sampling every 512 KiB there is a 95 % chance to see an object of 1.5 MiB,
 * every 2 MiB one of 80 % for 3.5 MiB", in other words. */
static void check_seen(uint64_t period, uint64_t size, double claim,
		       double exact)
{
	const double n = 1e6;
	struct sp_sampler sampler;
	struct sp_law law;
	double hits = 0, z;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, period);
	sp_sampler_begin(&sampler, &law, 201, 1, (uint32_t)period);
	assert_true(size < law.always_bytes);
	for (int i = 0; i < (int)n; i++) {
		uint64_t offset;

		hits += sp_sampler_pass(&sampler, 0, size, &offset);
	}
	z = (hits - n * exact) / sqrt(n * exact * (1 - exact));
	print_message("%.6f seen, %.6f exactly, claimed %.2f: z = %.2f\n",
		      hits / n, exact, claim, z);
	assert_true(fabs(sp_inclusion_probability(size, period) - exact) <
		    1e-6);
	assert_true(exact >= claim);
	assert_true(fabs(z) <= Z_MAX);
}

TEST(heapprofd_coverage)
{
	check_seen(512 * KIB, 1536 * KIB, 0.95, 0.950213);
	check_seen(2048 * KIB, 3584 * KIB, 0.80, 0.826226);
}

/* Mean of |hits - x| / x for a Poisson number of hits of mean x. */
static double mean_error(double x)
{
	const double k = floor(x);

	return 2 * exp(-x + k * log(x) - lgamma(k + 1));
}

/* Every hit of an object counts: each byte behind a hit has its own chance. */
static unsigned int hits_of(const struct sp_law *law, struct sp_rng *rng,
			    uint64_t size)
{
	uint64_t at = sp_law_gap(law, sp_rng_next(rng) >> 11);
	unsigned int hits = 0;

	while (at < size) {
		hits++;
		at += 1 + sp_law_gap(law, sp_rng_next(rng) >> 11);
	}
	return hits;
}

TEST(heapprofd_error)
{
	static const double of[] = {0.1, 0.5, 1, 1.5, 2, 3, 4.6, 10};
	const uint64_t period = 1ull << 30;
	const double n = 400000;
	struct sp_rng rng;
	struct sp_law law;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, period);
	sp_rng_init(&rng, 202, 1);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const double x = of[i], want = mean_error(x);
		const uint64_t size = (uint64_t)(x * (double)period);
		double sum = 0, square = 0, z;

		for (int k = 0; k < (int)n; k++) {
			const double hits = hits_of(&law, &rng, size);
			const double error = fabs(hits - x) / x;

			sum += error;
			square += error * error;
		}
		z = (sum / n - want) /
		    sqrt((square / n - sum / n * sum / n) / n);
		print_message("x = %-4g error %.4f, curve %.4f: z = %.2f\n", x,
			      sum / n, want, z);
		assert_true(fabs(z) <= Z_MAX);
	}
}

/* The estimate of all samples together, by one probability. */
static double of_the_sum(const struct sp_acc *acc)
{
	const double mean = (double)acc->size_bytes / (double)acc->samples;
	const double r = (double)acc->period_bytes;

	return acc->samples ? (double)acc->size_bytes / -expm1(-mean / r) : 0;
}

/* A million objects of 8 bytes, those that are missed at once, and a large
 * one. */
static void run_example(struct sp_sampler *sampler, struct sp_acc *acc)
{
	const struct sp_law_used used = {.always_large = true};
	const uint64_t period = sampler->law->period_bytes;
	uint64_t left = 1000000, offset;

	sp_acc_init(acc, period);
	while (left) {
		const uint64_t missed = sampler->gap / 8;

		if (missed >= left) {
			sp_sampler_skip(sampler, left * 8);
			break;
		}
		if (sp_sampler_pass(sampler, missed * 8, 8, &offset))
			sp_acc_add(acc, &used, 8, offset, period);
		left -= missed + 1;
	}
	if (sp_sampler_pass(sampler, 0, 8000000, &offset))
		sp_acc_add(acc, &used, 8000000, offset, period);
}

TEST(jemalloc_example)
{
	const double n = 20000, truth = 16e6;
	struct sp_sampler sampler;
	struct sp_law law;
	double each = 0, each2 = 0, sum = 0, z;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, 2048 * KIB);
	sp_sampler_begin(&sampler, &law, 203, 1, 1);
	for (int i = 0; i < (int)n; i++) {
		struct sp_acc acc;

		run_example(&sampler, &acc);
		each += acc.est_bytes;
		each2 += acc.est_bytes * acc.est_bytes;
		sum += of_the_sum(&acc);
	}
	z = sqrt((each2 / n - each / n * each / n) / n);
	print_message("16 MB: each sample by itself %.3f MB (z = %.2f), the "
		      "sum %.3f MB (z = %.0f)\n",
		      each / n / 1e6, (each / n - truth) / z, sum / n / 1e6,
		      (sum / n - truth) / z);
	assert_true(fabs(each / n - truth) <= Z_MAX * z);
	assert_true(fabs(sum / n - truth) > 20 * z);
}

TEST_MAIN(NULL, NULL)
