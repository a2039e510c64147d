/* SPDX-License-Identifier: MIT */
/* E20: percentiles over bytes. */
#include <math.h>

#include "base/rng.h"
#include "stats/percentile.h"
#include "support/close.h"
#include "support/test.h"

#define R0     65536u
#define GROUPS 40

static const struct sp_law_used law = {0};

static struct sp_value_group group_of(double value, unsigned int samples,
				      uint64_t size_bytes, uint64_t r)
{
	struct sp_value_group g = {.value = value};

	sp_acc_init(&g.acc, r);
	while (samples--)
		sp_acc_add(&g.acc, &law, size_bytes, 0, r);
	return g;
}

/* Period 1: the percentile itself, at each share. */
TEST(everything_recorded)
{
	struct sp_value_group g[10];

	for (unsigned int i = 0; i < 10; i++)
		g[i] = group_of(i, i + 1, 100, 1);
	for (double share = 0.011; share < 1; share += 0.1) {
		const struct sp_interval p = sp_percentile(g, 10, share, 0.95);
		unsigned int sum = 0, i = 0;

		for (;; i++) {
			sum += i + 1;
			if (sum >= share * 55)
				break;
		}
		assert_true(p.lo == i && p.value == i && p.hi == i);
	}
}

/* Each limit is where a limit of the share crosses. */
TEST(definition)
{
	struct sp_value_group g[GROUPS];
	struct sp_rng rng;

	sp_rng_init(&rng, 8, 0);
	for (int round = 0; round < 100; round++) {
		const size_t n = 1 + sp_rng_next(&rng) % GROUPS;
		const double share = (double)(1 + sp_rng_next(&rng) % 99) / 100;
		struct sp_interval p;

		for (size_t i = 0; i < n; i++)
			g[i] = group_of((double)(3 * i),
					1 + sp_rng_next(&rng) % 4,
					1 + sp_rng_next(&rng) % (3 * R0), R0);
		p = sp_percentile(g, n, share, 0.9);
		assert_true(p.lo <= p.value && p.value <= p.hi);
		for (size_t i = 0; i < n; i++) {
			struct sp_acc below, above;
			struct sp_interval f;

			sp_acc_init(&below, R0);
			sp_acc_init(&above, R0);
			for (size_t j = 0; j < n; j++)
				sp_acc_merge(j <= i ? &below : &above,
					     &g[j].acc);
			f = sp_estimate_share(&below, &above, 0.9);
			assert_int_equal(p.lo <= g[i].value, f.hi >= share);
			assert_int_equal(p.hi <= g[i].value, f.lo >= share);
		}
	}
}

/* Few samples do not bound a percentile. */
TEST(unbounded)
{
	const struct sp_value_group g = group_of(7, 2, 16, R0);
	const struct sp_interval p = sp_percentile(&g, 1, 0.5, 0.95);

	assert_true(isinf(p.lo) && p.lo < 0);
	assert_true(p.value == 7);
	assert_true(isinf(p.hi) && p.hi > 0);
}

static double choose(unsigned int n, unsigned int k)
{
	return exp(lgamma(n + 1.) - lgamma(k + 1.) - lgamma(n - k + 1.));
}

/*
 * Exact coverage: given their number, samples of small objects are below a
 * percentile independently of each other, each with the probability that it
 * stands for.
 */
TEST(exact_coverage)
{
	static const double shares[] = {0.1, 0.5, 0.9};

	for (size_t i = 0; i < 3; i++)
		for (unsigned int n = 1; n < 100; n += 1 + n / 3) {
			const double p = shares[i];
			double missed = 0;

			/* values 1 and 3; the percentile lies between */
			for (unsigned int k = 0; k <= n; k++) {
				struct sp_value_group g[2] = {
					group_of(1, k, 1, R0),
					group_of(3, n - k, 1, R0),
				};
				const struct sp_interval got = sp_percentile(
					k ? g : &g[1], 1 + (k && k < n), p,
					0.95);

				if (got.hi < 2 || got.lo > 2)
					missed += choose(n, k) * pow(p, k) *
						  pow(1 - p, n - k);
			}
			assert_between(0, missed, 0.05);
		}
}

TEST_MAIN(NULL, NULL)
