/* SPDX-License-Identifier: MIT */
/* E2 to E12 without vectors: accumulators, algebra, exact coverage, limits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/rng.h"
#include "profile/estimator.h"
#include "profile/negbinom.h"
#include "support/close.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define R0       524288u

static void add_many(struct sp_acc *acc, unsigned int n, uint64_t size_bytes,
		     uint64_t period_bytes)
{
	while (n--)
		sp_acc_add(acc, size_bytes, size_bytes / 2, period_bytes);
}

/* p (S / p) = S: no randomness is needed to see that a weight is right. */
static void test_weight_algebra(void **state)
{
	static const uint64_t periods[] = {1,    2,  3,          16,
					   4096, R0, 1ull << 40, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < N(periods); i++)
		for (unsigned int bit = 0; bit < 64; bit++) {
			const uint64_t z = 1ull << bit, r = periods[i];
			const double pi = sp_inclusion_probability(z, r);
			struct sp_acc acc;

			sp_acc_init(&acc, r);
			sp_acc_add(&acc, z, 0, r);
			assert_close(pi * acc.est_bytes, (double)z, 4e-16);
			assert_close(pi * acc.est_count, 1, 4e-16);
			/* E[w^2 q] over the draws is Var[w] = z^2 q / pi */
			if (r > 1)
				assert_close(
					acc.k2 * pi,
					acc.est_bytes * (double)z *
						exp(-(double)z / (double)r),
					1e-14);
			assert_true(pi <= 1 && acc.est_bytes >= (double)z);
			if (r > 1)
				assert_true(acc.est_bytes >= (double)r);
		}
}

static void test_everything_recorded(void **state)
{
	struct sp_acc acc, rest;

	(void)state;
	sp_acc_init(&acc, 1);
	sp_acc_init(&rest, 1);
	for (int round = 0; round < 3; round++) {
		const struct sp_interval all[] = {
			sp_estimate_bytes(&acc, 0.95),
			sp_estimate_bytes_p3(&acc, 0.95),
			sp_estimate_bytes_of_total(&acc, &rest, acc.size_bytes,
						   0.95),
		};
		const struct sp_interval n = sp_estimate_objects(&acc, 0.95);

		for (size_t i = 0; i < N(all); i++) {
			assert_true(all[i].lo == (double)acc.size_bytes);
			assert_true(all[i].value == (double)acc.size_bytes);
			assert_true(all[i].hi == (double)acc.size_bytes);
		}
		assert_true(n.lo == round && n.value == round && n.hi == round);
		sp_acc_add(&acc, 1 + 4095 * (uint64_t)round, 0, 1);
	}
	add_many(&rest, 2, acc.size_bytes, 1);
	for (double confidence = 0.5; confidence < 1; confidence += 0.1) {
		const struct sp_interval share =
			sp_estimate_share(&acc, &rest, confidence);

		assert_close(share.lo, 1 / 3., 1e-15);
		assert_close(share.hi, 1 / 3., 1e-15);
	}
}

/* Nothing sampled: no hit in B bytes has probability e^(-B/R). */
static void test_empty(void **state)
{
	(void)state;
	for (uint64_t r = 2; r < 1ull << 45; r *= 5) {
		struct sp_acc acc;
		struct sp_interval b, p3, n;

		sp_acc_init(&acc, r);
		b = sp_estimate_bytes(&acc, 0.95);
		p3 = sp_estimate_bytes_p3(&acc, 0.95);
		n = sp_estimate_objects(&acc, 0.95);
		assert_true(b.lo == 0 && b.value == 0);
		assert_true(p3.lo == 0 && p3.value == 0);
		assert_true(n.lo == 0 && n.value == 0);
		assert_close(p3.hi, (double)r * log(40), 1e-12);
		assert_between(p3.hi - 1, b.hi, p3.hi * (1 + 1e-12));
		/* the next whole number of objects of 16 bytes */
		assert_true(exp(-16 * (floor(n.hi) + 1) / (double)r) <= 0.025);
	}
}

/* Small objects, where the two methods must be the same interval: they count
 * the same hits, one of them in whole bytes. */
static void test_methods_agree_on_small_objects(void **state)
{
	(void)state;
	for (unsigned int s = 1; s <= 3000; s *= 3) {
		struct sp_acc acc;
		struct sp_interval nb, p3;

		sp_acc_init(&acc, R0);
		for (unsigned int i = 0; i < s; i++)
			sp_acc_add(&acc, 1, 0, R0);
		nb = sp_estimate_bytes(&acc, 0.95);
		p3 = sp_estimate_bytes_p3(&acc, 0.95);
		assert_close(nb.value, p3.value, 0);
		assert_between(nb.lo - s - 2, p3.lo, nb.lo + s + 2);
		assert_between(nb.hi - s - 2, p3.hi, nb.hi + s + 2);
	}
}

/* The limits are the negative binomial quantiles (E6), by their definition: one
 * failure less has a probability below the level. */
static void test_limits_are_quantiles(void **state)
{
	const uint64_t r = 40;
	const double p = sp_inclusion_probability(1, r);
	struct sp_acc acc;

	(void)state;
	sp_acc_init(&acc, r);
	for (unsigned int s = 1; s <= 50; s++) {
		struct sp_interval i;
		double lo, hi;

		sp_acc_add(&acc, 1, 0, r);
		i = sp_estimate_bytes(&acc, 0.95);
		lo = i.lo - s;
		hi = i.hi - s;
		assert_true(sp_negbinom_cdf(s, p, lo - 1) < 0.025);
		assert_true(sp_negbinom_cdf(s, p, lo) >= 0.025);
		assert_true(sp_negbinom_cdf(s + 1, p, hi - 1) < 0.975);
		assert_true(sp_negbinom_cdf(s + 1, p, hi) >= 0.975);
	}
}

/*
 * Exact coverage, without random numbers: a subset of n objects of 1 byte has a
 * binomial number of samples.  Neither limit may miss more often than promised,
 * and both come close to the promise for some n.
 */
static void miss_rates(unsigned int n, uint64_t r, double confidence,
		       double *ret_low, double *ret_high)
{
	const double p = sp_inclusion_probability(1, r);
	struct sp_acc acc;

	*ret_low = *ret_high = 0;
	sp_acc_init(&acc, r);
	for (unsigned int s = 0; s <= n; s++) {
		const double prob = exp(lgamma(n + 1.) - lgamma(s + 1.) -
					lgamma(n - s + 1.) + s * log(p) +
					(n - s) * log1p(-p));
		struct sp_interval i;

		if (prob > 1e-12) {
			i = sp_estimate_bytes(&acc, confidence);
			*ret_low += n < i.lo ? prob : 0;
			*ret_high += n > i.hi ? prob : 0;
		}
		sp_acc_add(&acc, 1, 0, r);
	}
}

static void test_exact_coverage(void **state)
{
	static const uint64_t periods[] = {2, 3, 7, 40};
	static const double levels[] = {0.8, 0.95, 0.99};

	(void)state;
	for (size_t i = 0; i < N(periods); i++)
		for (size_t j = 0; j < N(levels); j++) {
			const double half = (1 - levels[j]) / 2;
			double worst_low = 0, worst_high = 0;

			for (unsigned int n = 1; n < 300; n += 1 + n / 16) {
				double low, high;

				miss_rates(n, periods[i], levels[j], &low,
					   &high);
				worst_low = fmax(worst_low, low);
				worst_high = fmax(worst_high, high);
			}
			assert_between(0.6 * half, worst_low, half + 1e-10);
			assert_between(0.6 * half, worst_high, half + 1e-10);
		}
}

/* The accumulator of `samples` equal objects. */
static struct sp_acc acc_of_equal(unsigned int samples, uint64_t size_bytes,
				  uint64_t period_bytes)
{
	struct sp_acc acc;
	const double s = samples;

	sp_acc_init(&acc, period_bytes);
	sp_acc_add(&acc, size_bytes, 0, period_bytes);
	acc.samples = samples;
	acc.size_bytes *= samples;
	acc.tail_bytes *= samples;
	acc.est_bytes *= s;
	acc.k2 *= s;
	acc.k3 *= s;
	acc.kz *= s;
	acc.est_count *= s;
	acc.c2 *= s;
	acc.c3 *= s;
	return acc;
}

struct coverage {
	double bytes; /* of sp_estimate_bytes_p3 */
	double objects;
};

/* Exact coverage for a subset of n equal objects, at 95 %. */
static struct coverage p3_coverage(unsigned int n, uint64_t z, uint64_t r)
{
	const double pi = sp_inclusion_probability(z, r);
	const double log_odds = log(expm1((double)z / (double)r));
	const double bytes = n * (double)z, reach = 6.5 * sqrt(n * pi) + 6;
	struct coverage c = {0, 0};

	for (unsigned int s = 0; s <= n; s++) {
		const double prob = exp(lgamma(n + 1.) - lgamma(s + 1.) -
					lgamma(n - s + 1.) + s * log_odds -
					bytes / (double)r);
		struct sp_interval b, o;
		struct sp_acc acc;

		if (fabs(s - n * pi) > reach || prob < 1e-12)
			continue;
		acc = acc_of_equal(s, z, r);
		b = sp_estimate_bytes_p3(&acc, 0.95);
		o = sp_estimate_objects(&acc, 0.95);
		/* an interval that ends on the truth may miss it by rounding */
		if (b.lo <= bytes * (1 + 1e-12) && b.hi >= bytes * (1 - 1e-12))
			c.bytes += prob;
		if (o.lo <= n * (1 + 1e-12) && o.hi >= n * (1 - 1e-12))
			c.objects += prob;
	}
	return c;
}

/* The three-cumulant limits are no theorem; this is their ground: every number
 * of equal objects, of a thousandth of a period to nine. */
static void test_p3_exact_coverage(void **state)
{
	double bytes = 1, objects = 1;

	(void)state;
	for (uint64_t z = R0 / 1000; z < 9 * R0; z += z / 4)
		for (unsigned int n = 1; n < 4000; n += 1 + n / 3) {
			const struct coverage c = p3_coverage(n, z, R0);

			bytes = fmin(bytes, c.bytes);
		}
	/* the smallest object that counts allow for, at any period */
	for (uint64_t r = 2; r < 1000000; r += 1 + r / 4)
		for (unsigned int n = 1; n < 4000; n += 1 + n / 3) {
			const struct coverage c = p3_coverage(n, 16, r);

			objects = fmin(objects, c.objects);
		}
	assert_between(0.95, bytes, 0.9525);
	assert_between(0.95, objects, 0.9525);
}

static uint64_t random_below(struct sp_rng *rng, uint64_t bound)
{
	return sp_rng_next(rng) % bound;
}

/* Of any order of magnitude: 1 .. 2^bits. */
static uint64_t random_size(struct sp_rng *rng, unsigned int bits)
{
	return 1 + random_below(rng, 1ull << random_below(rng, bits + 1));
}

static void assert_same_acc(const struct sp_acc *a, const struct sp_acc *b)
{
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->size_bytes, b->size_bytes);
	assert_int_equal(a->tail_bytes, b->tail_bytes);
	assert_int_equal(a->period_bytes, b->period_bytes);
	assert_int_equal(a->period_min_bytes, b->period_min_bytes);
	assert_close(a->est_bytes, b->est_bytes, 1e-13);
	assert_close(a->k2, b->k2, 1e-13);
	assert_close(a->k3, b->k3, 1e-13);
	assert_close(a->kz, b->kz, 1e-13);
	assert_close(a->est_count, b->est_count, 1e-13);
	assert_close(a->c2, b->c2, 1e-13);
	assert_close(a->c3, b->c3, 1e-13);
}

/* Sharing samples out and merging is the same as adding them one by one, in
 * either order, also when sizes overflow. */
static void test_merge_is_add(void **state)
{
	struct sp_rng rng;

	(void)state;
	sp_rng_init(&rng, 1, 0);
	for (int round = 0; round < 200; round++) {
		struct sp_acc all, left, right, merged;

		sp_acc_init(&all, R0);
		sp_acc_init(&left, R0);
		sp_acc_init(&right, R0);
		for (int i = 0; i < 60; i++) {
			const uint64_t z = random_size(&rng, 63);
			const uint64_t r = random_size(&rng, 40);
			const uint64_t offset = random_below(&rng, z);

			sp_acc_add(&all, z, offset, r);
			sp_acc_add(random_below(&rng, 3) ? &left : &right, z,
				   offset, r);
		}
		merged = left;
		sp_acc_merge(&merged, &right);
		assert_same_acc(&merged, &all);
		sp_acc_merge(&right, &left);
		assert_same_acc(&right, &all);
	}
}

static void test_sums_saturate(void **state)
{
	struct sp_acc acc, other;

	(void)state;
	sp_acc_init(&acc, R0);
	add_many(&acc, 3, 1ull << 63, R0);
	assert_int_equal(acc.size_bytes, UINT64_MAX);
	other = acc;
	sp_acc_merge(&acc, &other);
	assert_int_equal(acc.samples, 6);
	assert_int_equal(acc.size_bytes, UINT64_MAX);
	assert_int_equal(acc.tail_bytes, UINT64_MAX);
	assert_close(acc.est_bytes, 6 * 0x1p63, 1e-15);
}

/* Estimates of disjoint subsets add up, whatever their periods. */
static void test_additivity(void **state)
{
	struct sp_acc a, b, both;

	(void)state;
	sp_acc_init(&a, 4096);
	sp_acc_init(&b, R0);
	add_many(&a, 17, 100, 4096);
	add_many(&b, 5, 1000000, R0);
	both = a;
	sp_acc_merge(&both, &b);
	assert_close(sp_estimate_bytes(&both, 0.95).value,
		     sp_estimate_bytes(&a, 0.95).value +
			     sp_estimate_bytes(&b, 0.95).value,
		     1e-15);
	assert_close(sp_estimate_objects(&both, 0.95).value,
		     sp_estimate_objects(&a, 0.95).value +
			     sp_estimate_objects(&b, 0.95).value,
		     1e-15);
}

/* E9: the unseen is spoken of with the largest period; a mixture uses the
 * cumulants, which carry each sample's own period. */
static void test_mixed_periods(void **state)
{
	struct sp_acc small, large, mixed;
	struct sp_interval nb, p3;

	(void)state;
	/* samples of a period that the profile did not begin with */
	sp_acc_init(&mixed, 512);
	add_many(&mixed, 40, 16, 128);
	assert_int_equal(mixed.period_bytes, 512);
	assert_int_equal(mixed.period_min_bytes, 128);
	nb = sp_estimate_bytes(&mixed, 0.95);
	p3 = sp_estimate_bytes_p3(&mixed, 0.95);
	assert_true(nb.lo == p3.lo && nb.hi == p3.hi);

	sp_acc_init(&small, 128);
	sp_acc_init(&large, 512);
	mixed = small;
	sp_acc_merge(&mixed, &large);
	assert_close(sp_estimate_bytes(&mixed, 0.95).hi, 512 * log(40), 1e-12);

	add_many(&small, 40, 16, 128);
	sp_acc_merge(&mixed, &small);
	nb = sp_estimate_bytes(&mixed, 0.95);
	p3 = sp_estimate_bytes_p3(&mixed, 0.95);
	assert_true(nb.lo == p3.lo && nb.hi == p3.hi);
	/* never more confident than if all had the small period */
	assert_true(nb.hi > sp_estimate_bytes_p3(&small, 0.95).hi);
	/* a sample of period 1 is certain: it shifts, it does not widen */
	sp_acc_add(&mixed, 1000000, 0, 1);
	p3 = sp_estimate_bytes(&mixed, 0.95);
	assert_close(p3.lo, nb.lo + 1000000, 1e-12);
	assert_close(p3.hi, nb.hi + 1000000, 1e-12);
}

/* A total that cannot be right is not used; a right one never widens much. */
static void test_known_total_contract(void **state)
{
	struct sp_acc a, b;
	struct sp_interval alone, with;
	const uint64_t totals[] = {0, 100 * 16 + 50 * 4096 - 1};

	(void)state;
	sp_acc_init(&a, R0);
	sp_acc_init(&b, R0);
	add_many(&a, 100, 16, R0);
	add_many(&b, 50, 4096, R0);
	alone = sp_estimate_bytes_p3(&a, 0.95);
	for (size_t i = 0; i < N(totals); i++) {
		with = sp_estimate_bytes_of_total(&a, &b, totals[i], 0.95);
		assert_true(with.lo == alone.lo && with.hi == alone.hi &&
			    with.value == alone.value);
	}
	/* everything was sampled */
	with = sp_estimate_bytes_of_total(&a, &b, 100 * 16 + 50 * 4096, 0.95);
	assert_true(with.lo == 1600 && with.value == 1600 && with.hi == 1600);
	/* two thirds of the samples: narrower by sqrt(1 - 2/3) */
	with = sp_estimate_bytes_of_total(&a, &b, 150ull * R0, 0.95);
	assert_between(0.55 * (alone.hi - alone.lo), with.hi - with.lo,
		       0.61 * (alone.hi - alone.lo));
	/* all was recorded, yet not these: they may be anyone's */
	sp_acc_init(&a, 1);
	b = a;
	with = sp_estimate_bytes_of_total(&a, &b, 1000, 0.95);
	assert_true(with.lo == 0 && with.value == 500 && with.hi == 1000);
}

static void assert_ordered(struct sp_interval i, double floor_bytes)
{
	assert_true(isfinite(i.lo) && isfinite(i.value) && isfinite(i.hi));
	assert_true(floor_bytes <= i.lo && i.lo <= i.value && i.value <= i.hi);
}

static struct sp_acc random_acc(struct sp_rng *rng)
{
	const unsigned int period_bits = (unsigned int)random_below(rng, 46);
	const uint64_t r = random_size(rng, period_bits);
	const uint64_t n = random_below(rng, 1ull << random_below(rng, 8));
	const uint64_t mixed = random_below(rng, 2);
	struct sp_acc acc;

	sp_acc_init(&acc, r);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t z = random_size(rng, 56);

		sp_acc_add(&acc, z, random_below(rng, z),
			   mixed ? random_size(rng, period_bits) : r);
	}
	return acc;
}

/* Whatever the samples, periods and level: finite, ordered, and never below
 * what was seen. */
static void test_ordering(void **state)
{
	static const double levels[] = {0.01, 0.5, 0.9, 0.95, 0.99, 0.999999};
	struct sp_rng rng;

	(void)state;
	sp_rng_init(&rng, 2, 0);
	for (int round = 0; round < 4000; round++) {
		const struct sp_acc a = random_acc(&rng), b = random_acc(&rng);
		const double level = levels[random_below(&rng, N(levels))];
		const double seen = (double)a.size_bytes * (1 - 1e-15);
		struct sp_interval share;

		assert_ordered(sp_estimate_bytes(&a, level), seen);
		assert_ordered(sp_estimate_bytes_p3(&a, level), seen);
		assert_ordered(sp_estimate_objects(&a, level),
			       (double)a.samples);
		assert_ordered(sp_estimate_bytes_of_total(
				       &a, &b,
				       a.size_bytes + b.size_bytes +
					       random_size(&rng, 50),
				       level),
			       seen);
		share = sp_estimate_share(&a, &b, level);
		assert_ordered(share, 0);
		assert_true(share.hi <= 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weight_algebra),
		cmocka_unit_test(test_everything_recorded),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_methods_agree_on_small_objects),
		cmocka_unit_test(test_limits_are_quantiles),
		cmocka_unit_test(test_exact_coverage),
		cmocka_unit_test(test_p3_exact_coverage),
		cmocka_unit_test(test_merge_is_add),
		cmocka_unit_test(test_sums_saturate),
		cmocka_unit_test(test_additivity),
		cmocka_unit_test(test_mixed_periods),
		cmocka_unit_test(test_known_total_contract),
		cmocka_unit_test(test_ordering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
