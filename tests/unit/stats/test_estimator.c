/* SPDX-License-Identifier: MIT */
/* E2 to E4, E7 to E9, E11, E15, E16 without vectors: accumulators, algebra,
 * exact coverage, limits. */
#include <math.h>

#include "base/rng.h"
#include "format/layout.h"
#include "stats/estimator.h"
#include "support/acc.h"
#include "support/close.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define R0       524288u

static const struct sp_law_used plain = {0};
static const struct sp_law_used always = {.always_large = true};
static const struct sp_law_used dotnet = {.is_dotnet = true};

static void add_many(struct sp_acc *acc, unsigned int n, uint64_t size_bytes,
		     uint64_t period_bytes)
{
	while (n--)
		sp_acc_add(acc, &plain, size_bytes, size_bytes / 2,
			   period_bytes);
}

/* p (S / p) = S: no randomness is needed to see that a weight is right. */
TEST(weight_algebra)
{
	static const uint64_t periods[] = {1,    2,  3,          16,
					   4096, R0, 1ull << 40, UINT64_MAX};

	for (size_t i = 0; i < N(periods); i++)
		for (unsigned int bit = 0; bit < 64; bit++) {
			const uint64_t z = 1ull << bit, r = periods[i];
			const double pi = sp_inclusion_probability(z, r);
			struct sp_acc acc;

			sp_acc_init(&acc, r);
			sp_acc_add(&acc, &plain, z, 0, r);
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

TEST(everything_recorded)
{
	struct sp_acc acc, rest;

	sp_acc_init(&acc, 1);
	sp_acc_init(&rest, 1);
	for (int round = 0; round < 3; round++) {
		const struct sp_interval b = sp_estimate_bytes_p3(&acc, 0.95);
		const struct sp_interval n =
			sp_estimate_objects_p3(&acc, SP_SMALLEST_UNKNOWN, 0.95);

		assert_true(b.lo == (double)acc.size_bytes);
		assert_true(b.value == (double)acc.size_bytes);
		assert_true(b.hi == (double)acc.size_bytes);
		assert_true(n.lo == round && n.value == round && n.hi == round);
		sp_acc_add(&acc, &plain, 1 + 4095 * (uint64_t)round, 0, 1);
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
TEST(empty)
{
	for (uint64_t r = 2; r < 1ull << 45; r *= 5) {
		struct sp_acc acc;
		struct sp_interval p3, n;

		sp_acc_init(&acc, r);
		p3 = sp_estimate_bytes_p3(&acc, 0.95);
		n = sp_estimate_objects_p3(&acc, SP_SMALLEST_UNKNOWN, 0.95);
		assert_true(p3.lo == 0 && p3.value == 0);
		assert_true(n.lo == 0 && n.value == 0);
		assert_close(p3.hi, (double)r * log(40), 1e-12);
		/* the next whole number of objects of 16 bytes */
		assert_true(exp(-16 * (floor(n.hi) + 1) / (double)r) <= 0.025);
	}
}

/* The accumulator of `samples` equal objects. */
static struct sp_acc acc_of_equal(unsigned int samples, uint64_t size_bytes,
				  uint64_t period_bytes)
{
	struct sp_acc acc;
	const double s = samples;

	sp_acc_init(&acc, period_bytes);
	sp_acc_add(&acc, &plain, size_bytes, 0, period_bytes);
	acc.samples = samples;
	acc.size_bytes *= samples;
	acc.tail_bytes *= samples;
	acc.sure_samples *= samples;
	acc.sure_bytes *= samples;
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
		o = sp_estimate_objects_p3(&acc, SP_SMALLEST_UNKNOWN, 0.95);
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
TEST(p3_exact_coverage)
{
	double bytes = 1, objects = 1;

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

/* Sharing samples out and merging is the same as adding them one by one, in
 * either order, also when sizes overflow. */
TEST(merge_is_add)
{
	struct sp_rng rng;

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

			sp_acc_add(&all, &plain, z, offset, r);
			sp_acc_add(random_below(&rng, 3) ? &left : &right,
				   &plain, z, offset, r);
		}
		merged = left;
		sp_acc_merge(&merged, &right);
		assert_same_acc(&merged, &all);
		sp_acc_merge(&right, &left);
		assert_same_acc(&right, &all);
	}
}

TEST(sums_saturate)
{
	struct sp_acc acc, other;

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
TEST(additivity)
{
	struct sp_acc a, b, both;

	sp_acc_init(&a, 4096);
	sp_acc_init(&b, R0);
	add_many(&a, 17, 100, 4096);
	add_many(&b, 5, 1000000, R0);
	both = a;
	sp_acc_merge(&both, &b);
	assert_close(sp_estimate_bytes_p3(&both, 0.95).value,
		     sp_estimate_bytes_p3(&a, 0.95).value +
			     sp_estimate_bytes_p3(&b, 0.95).value,
		     1e-15);
	assert_close(
		sp_estimate_objects_p3(&both, SP_SMALLEST_UNKNOWN, 0.95).value,
		sp_estimate_objects_p3(&a, SP_SMALLEST_UNKNOWN, 0.95).value +
			sp_estimate_objects_p3(&b, SP_SMALLEST_UNKNOWN, 0.95)
				.value,
		1e-15);
}

/* E9: the unseen is spoken of with the largest period; the cumulants carry each
 * sample's own. */
TEST(mixed_periods)
{
	struct sp_acc small, large, mixed;
	struct sp_interval i, more;

	sp_acc_init(&small, 128);
	sp_acc_init(&large, 512);
	mixed = small;
	sp_acc_merge(&mixed, &large);
	assert_int_equal(mixed.period_bytes, 512);
	assert_int_equal(mixed.period_min_bytes, 128);
	assert_close(sp_estimate_bytes_p3(&mixed, 0.95).hi, 512 * log(40),
		     1e-12);

	add_many(&small, 40, 16, 128);
	sp_acc_merge(&mixed, &small);
	i = sp_estimate_bytes_p3(&mixed, 0.95);
	/* never more confident than if all had the small period */
	assert_true(i.hi > sp_estimate_bytes_p3(&small, 0.95).hi);
	assert_close(i.lo, sp_estimate_bytes_p3(&small, 0.95).lo, 1e-12);
	/* a sample of period 1 is certain: it shifts, it does not widen */
	sp_acc_add(&mixed, &plain, 1000000, 0, 1);
	more = sp_estimate_bytes_p3(&mixed, 0.95);
	assert_close(more.lo, i.lo + 1000000, 1e-12);
	assert_close(more.hi, i.hi + 1000000, 1e-12);
}

/* E16: an object that is always sampled is known; it moves every limit by
 * itself, and one byte less is left to chance. */
TEST(always_sampled)
{
	const uint64_t sure = sp_format_always_bytes(R0);
	struct sp_acc acc;
	struct sp_interval before, after, n, more;

	assert_close((double)sure, R0 * log(100), 1e-6);
	sp_acc_init(&acc, R0);
	add_many(&acc, 7, 4096, R0);
	before = sp_estimate_bytes_p3(&acc, 0.95);
	n = sp_estimate_objects_p3(&acc, SP_SMALLEST_UNKNOWN, 0.95);
	sp_acc_add(&acc, &always, sure, 0, R0);
	after = sp_estimate_bytes_p3(&acc, 0.95);
	more = sp_estimate_objects_p3(&acc, SP_SMALLEST_UNKNOWN, 0.95);
	assert_close(after.lo, before.lo + (double)sure, 1e-12);
	assert_close(after.value, before.value + (double)sure, 1e-12);
	assert_close(after.hi, before.hi + (double)sure, 1e-12);
	assert_close(more.lo, n.lo + 1, 1e-12);
	assert_close(more.hi, n.hi + 1, 1e-12);
	assert_int_equal(acc.sure_samples, 1);
	assert_int_equal(acc.sure_bytes, sure);
	assert_int_equal(acc.tail_bytes, 7 * 2048);

	sp_acc_init(&acc, R0);
	sp_acc_add(&acc, &always, sure - 1, 0, R0);
	assert_close(acc.est_bytes, (double)(sure - 1) / 0.99, 1e-6);
	sp_acc_add(&acc, &plain, sure, 0, R0);
	assert_int_equal(acc.sure_samples, 0);
	assert_close(acc.est_count, 2 / 0.99, 1e-6);
}

/* E15: (1 - 1/R)^z and nothing else; at period 2 the laws are far apart. */
TEST(dotnet_law)
{
	struct sp_acc acc;

	for (uint64_t z = 1; z < 40; z++) {
		const double q = pow(0.5, (double)z);

		sp_acc_init(&acc, 2);
		sp_acc_add(&acc, &dotnet, z, 0, 2);
		assert_close(acc.est_count, 1 / (1 - q), 1e-14);
		assert_close(acc.c2, q / ((1 - q) * (1 - q)), 1e-13);
		assert_int_equal(acc.dotnet_samples, 1);
	}
	sp_acc_init(&acc, 1);
	sp_acc_add(&acc, &dotnet, 5, 0, 1);
	assert_true(acc.est_bytes == 5 && acc.k2 == 0);
}

/* What was added apart can be taken away again; nothing leaves nothing. */
TEST(subtract)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 3, 0);
	for (int round = 0; round < 200; round++) {
		struct sp_acc part, rest, all;
		uint64_t n = random_below(&rng, 20);

		sp_acc_init(&part, R0);
		sp_acc_init(&rest, R0);
		while (n--)
			sp_acc_add(random_below(&rng, 2) ? &part : &rest,
				   &always, random_size(&rng, 23), 0, R0);
		all = part;
		sp_acc_merge(&all, &rest);
		sp_acc_subtract(&all, &part);
		assert_int_equal(all.samples, rest.samples);
		assert_int_equal(all.size_bytes, rest.size_bytes);
		assert_int_equal(all.tail_bytes, rest.tail_bytes);
		assert_int_equal(all.sure_bytes, rest.sure_bytes);
		assert_close(
			all.est_bytes, rest.est_bytes,
			rest.samples
				? 1e-12 * (part.est_bytes / rest.est_bytes + 1)
				: 0);
		assert_true(all.k2 >= 0 && all.k3 >= 0 && all.c2 >= 0);
		if (rest.samples == rest.sure_samples)
			assert_true(all.k2 == 0 && all.c3 == 0 && all.kz == 0);
	}
}

/* E19: Bonferroni's bound. */
/* (E42) Lower limits come down to what was seen as the level rises, whatever is
 * mixed: periods, sizes. */
TEST(lower_limits_reach_what_was_seen)
{
	struct sp_acc acc;

	sp_acc_init(&acc, 1000);
	for (int i = 0; i < 30; i++)
		sp_acc_add(&acc, &plain, 16, 0, 100);
	sp_acc_add(&acc, &plain, 16, 0, 1000000);
	assert_true(sp_lower_bytes_p3(&acc, 0.025) > 2000);
	assert_true(sp_lower_bytes_p3(&acc, 1e-9) < 31 * 16 + 1);
	sp_acc_init(&acc, 65536);
	sp_acc_add(&acc, &plain, 16, 0, 65536);
	for (int i = 0; i < 30; i++)
		sp_acc_add(&acc, &plain, 4096, 0, 65536);
	assert_true(sp_lower_objects_p3(&acc, 1e-9) < 31 + 1);
}

TEST(confidence_of_each)
{
	assert_close(sp_confidence_of_each(0.95, 10), 0.995, 1e-15);
	assert_true(sp_confidence_of_each(0.95, 1) == 0.95);
	assert_true(sp_confidence_of_each(0.95, 0) == 0.95);
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

		sp_acc_add(&acc, &plain, z, random_below(rng, z),
			   mixed ? random_size(rng, period_bits) : r);
	}
	return acc;
}

/* Whatever the samples, periods and level: finite, ordered, and never below
 * what was seen. */
TEST(ordering)
{
	static const double levels[] = {0.01, 0.5, 0.9, 0.95, 0.99, 0.999999};
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 0);
	for (int round = 0; round < 4000; round++) {
		const struct sp_acc a = random_acc(&rng), b = random_acc(&rng);
		const double level = levels[random_below(&rng, N(levels))];
		const double seen = (double)a.size_bytes * (1 - 1e-15);
		struct sp_interval share;

		assert_ordered(sp_estimate_bytes_p3(&a, level), seen);
		assert_ordered(
			sp_estimate_objects_p3(&a, SP_SMALLEST_UNKNOWN, level),
			(double)a.samples);
		share = sp_estimate_share(&a, &b, level);
		assert_ordered(share, 0);
		assert_true(share.hi <= 1);
	}
}

TEST_MAIN(NULL, NULL)
