/* SPDX-License-Identifier: MIT */
/* E10, E17 without randomness: what follows from known totals; the coverage is
 * tests/statistics/test_totals.c's. */
#include <math.h>

#include "base/rng.h"
#include "format/layout.h"
#include "stats/strata.h"
#include "support/close.h"
#include "support/test.h"

#define R0 524288u

static const struct sp_law_used law = {.always_large = true};

static struct sp_acc acc_of(unsigned int n, uint64_t size_bytes, uint64_t r)
{
	struct sp_acc acc;

	sp_acc_init(&acc, r);
	while (n--)
		sp_acc_add(&acc, &law, size_bytes, 0, r);
	return acc;
}

/* So many periods in all, of which these samples; objects to match. */
static struct sp_stratum stratum_of(unsigned int part, unsigned int rest,
				    uint64_t size_bytes, double total_bytes)
{
	return (struct sp_stratum){
		.part = acc_of(part, size_bytes, R0),
		.rest = acc_of(rest, size_bytes, R0),
		.total_bytes = total_bytes,
		.total_objects = total_bytes / (double)size_bytes,
		.smallest.bytes = size_bytes,
	};
}

static struct sp_interval bytes_of(const struct sp_stratum *strata, uint32_t n)
{
	return sp_strata_bytes(strata, n, 0, 0.95);
}

static void assert_point(struct sp_interval i, double at)
{
	assert_close(i.lo, at, 1e-15);
	assert_close(i.value, at, 1e-15);
	assert_close(i.hi, at, 1e-15);
}

static double width(struct sp_interval i)
{
	return i.hi - i.lo;
}

/* Two thirds of the samples: narrower by sqrt(1 - 2/3); and a total that the
 * samples exceed is none. */
TEST(one_stratum)
{
	struct sp_stratum s = stratum_of(100, 50, 16, 150. * R0);
	const struct sp_interval alone = sp_estimate_bytes_p3(&s.part, 0.95);
	struct sp_interval with = bytes_of(&s, 1);

	assert_between(0.55 * width(alone), width(with), 0.61 * width(alone));
	assert_close(with.value, 100. * R0, 1e-4);
	s.total_bytes = 150 * 16;
	assert_point(bytes_of(&s, 1), 1600);
	s.total_bytes -= 1;
	with = bytes_of(&s, 1);
	assert_close(with.lo, alone.lo, 1e-12);
	assert_close(with.value, alone.value, 1e-12);
	assert_close(with.hi, alone.hi, 1e-12);
	/* the slack accounts for it */
	with = sp_strata_bytes(&s, 1, 10, 0.95);
	assert_true(with.lo == 1600 && with.hi >= 1600 && with.hi <= 1610);
}

/* A bound holds the limit and does nothing else. */
TEST(alone)
{
	struct sp_stratum s = stratum_of(100, 50, 16, 104. * R0);
	const struct sp_interval alone = sp_estimate_bytes_p3(&s.part, 0.95);
	struct sp_interval with;

	s.bytes_alone = true;
	with = bytes_of(&s, 1);
	assert_close(with.lo, alone.lo, 1e-12);
	assert_close(with.value, alone.value, 1e-12);
	assert_close(with.hi, 104. * R0 - 50 * 16, 1e-12);
	s.objects_alone = true;
	s.total_objects = 1e9;
	with = sp_strata_objects(&s, 1, 0, 0.95);
	assert_close(
		with.lo,
		sp_estimate_objects_p3(&s.part, SP_SMALLEST_UNKNOWN, 0.95).lo,
		1e-12);
	assert_close(
		with.hi,
		sp_estimate_objects_p3(&s.part, SP_SMALLEST_UNKNOWN, 0.95).hi,
		1e-12);
}

/* Nothing is unseen: points, of any number of strata, also of period 1. */
TEST(all_seen)
{
	const uint64_t sure = sp_format_always_bytes(R0);
	struct sp_stratum s[3] = {
		stratum_of(3, 2, sure, 5. * (double)sure),
		stratum_of(0, 4, sure + 9, 4. * (double)(sure + 9)),
		stratum_of(7, 0, 5000, 35000),
	};

	assert_point(bytes_of(s, 3), 3. * (double)sure + 35000);
	assert_point(sp_strata_objects(s, 3, 0, 0.95), 10);
	assert_point(bytes_of(s, 0), 0);
	s[0] = (struct sp_stratum){
		.part = acc_of(3, 100, 1),
		.rest = acc_of(5, 100, 1),
		.total_bytes = 800,
		.total_objects = 8,
		.smallest.bytes = 97,
	};
	assert_point(bytes_of(s, 1), 300);
	assert_point(sp_strata_objects(s, 1, 0, 0.95), 3);
}

/* Neither side has anything to estimate from: it may be anyone's. */
TEST(nothing_to_go_by)
{
	const uint64_t sure = sp_format_always_bytes(R0);
	struct sp_stratum s = stratum_of(1, 1, sure, 2. * (double)sure + 1000);
	struct sp_interval i = bytes_of(&s, 1);

	assert_close(i.lo, (double)sure, 0);
	assert_close(i.value, (double)sure + 500, 0);
	assert_close(i.hi, (double)sure + 1000, 0);
	s = stratum_of(0, 0, 16, 1000);
	i = bytes_of(&s, 1);
	assert_true(i.lo == 0 && i.value == 0);
	assert_close(i.hi, 1000, 0);
}

/* (E74) Beside a stratum that the subset has for itself the limit is that of
 * nothing sampled elsewhere.  What is uncertain there takes nothing from it, at
 * no level; a little of both is less than the sum, and more than the larger. */
TEST(elsewhere)
{
	static const double levels[] = {0.9, 0.95, 0.99, 0.999, 0.9999};

	for (unsigned int l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
		const double hidden = -log((1 - levels[l]) / 2) * R0;
		struct sp_stratum s[2] = {
			stratum_of(0, 300, 16, 300. * R0),
			stratum_of(30, 0, 64, 30. * R0),
		};
		struct sp_interval i = sp_strata_bytes(s, 2, 0, levels[l]);

		assert_close(i.value, 30. * R0, 1e-9);
		assert_close(i.hi, 30. * R0 + hidden, 2e-3);
		for (unsigned int others = 1; others <= 30; others += 4) {
			double own;

			s[1] = stratum_of(30, others, 64, (30. + others) * R0);
			own = sp_strata_bytes(s + 1, 1, 0, levels[l]).hi;
			i = sp_strata_bytes(s, 2, 0, levels[l]);
			assert_between(fmax(i.value + hidden, own) * (1 - 1e-3),
				       i.hi, own + hidden);
		}
	}
}

/* Values of a subset and of its rest add up to the totals, and limits lie
 * between what was sampled and what the rest leaves. */
TEST(parts_add_up)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 6, 0);
	for (int round = 0; round < 500; round++) {
		struct sp_stratum s[5], other[5];
		const uint32_t n = 1 + (uint32_t)(sp_rng_next(&rng) % 5);
		struct sp_interval a, b;
		double total = 0, seen = 0, rest = 0;

		for (uint32_t i = 0; i < n; i++) {
			const unsigned int p = sp_rng_next(&rng) % 30;
			const unsigned int q = sp_rng_next(&rng) % 30;

			s[i] = stratum_of(p, q + 1, 1 + (40000u << i),
					  (p + q + 1) * 3e6);
			other[i] = s[i];
			other[i].part = s[i].rest;
			other[i].rest = s[i].part;
			total += s[i].total_bytes;
			seen += (double)s[i].part.size_bytes;
			rest += (double)s[i].rest.size_bytes;
		}
		a = bytes_of(s, n);
		b = bytes_of(other, n);
		/* a clamped value is the only exception */
		if (a.value > seen && b.value > rest && b.value < total - seen)
			assert_close(a.value + b.value, total, 1e-12);
		assert_true(seen <= a.lo && a.lo <= a.value);
		assert_true(a.value <= a.hi && a.hi <= total - rest + 1);
		a = sp_strata_objects(s, n, 0, 0.95);
		assert_true(a.lo <= a.value && a.value <= a.hi);
	}
}

/* The limits follow the totals: nowhere does a larger one lower them; and slack
 * does at least what the worst place for it would do, and at most all of it. */
TEST(monotone_in_totals)
{
	struct sp_stratum s[2] = {
		stratum_of(20, 30, 16, 50. * R0),
		stratum_of(5, 2, 4096, 8. * R0),
	};
	const struct sp_interval was = bytes_of(s, 2);
	const struct sp_interval slack = sp_strata_bytes(s, 2, 1e5, 0.95);
	double worst = 0;

	for (int i = 0; i < 2; i++) {
		struct sp_interval is;

		s[i].total_bytes += 1e5;
		is = bytes_of(s, 2);
		s[i].total_bytes -= 1e5;
		assert_true(is.lo > was.lo && is.hi > was.hi);
		worst = fmax(worst, is.hi);
	}
	assert_between(worst * (1 - 1e-12), slack.hi, was.hi + 1e5);
	assert_true(slack.lo == was.lo && slack.value == was.value);
}

/* One phantom, where it counts most: that nothing of the subset was sampled in
 * the large stratum says as much as it does alone. */
TEST(one_phantom)
{
	const struct sp_stratum s[2] = {
		stratum_of(0, 400, 16, 400. * R0),
		stratum_of(0, 3, 4096, 4. * R0),
	};
	const double alone = R0 * log(40);

	assert_between(0.97 * alone, bytes_of(s, 2).hi, 1.03 * alone);
	assert_between(0.97 * alone, bytes_of(s, 1).hi, 1.03 * alone);
	/* no more than there is */
	assert_close(bytes_of(&s[1], 1).lo, 0, 0);
	assert_between(2.8 * R0, bytes_of(&s[1], 1).hi, 3.2 * R0);
}

/* Part and rest alike: sums that differ by what another order of adding makes
 * of them give the same limits. */
TEST(order_of_sums)
{
	struct sp_stratum s[2] = {
		stratum_of(0, 400, 16, 400. * R0),
		stratum_of(40, 40, 32, 88. * R0),
	};
	const struct sp_interval bytes = bytes_of(s, 2);
	const struct sp_interval objects = sp_strata_objects(s, 2, 0, 0.95);

	for (int sign = -1; sign <= 1; sign += 2) {
		s[1].rest = acc_of(40, 32, R0);
		s[1].rest.k3 *= 1 + sign * 1e-13;
		s[1].rest.c3 *= 1 + sign * 1e-13;
		assert_close(bytes_of(s, 2).hi, bytes.hi, 1e-12);
		assert_close(sp_strata_objects(s, 2, 0, 0.95).hi, objects.hi,
			     1e-12);
	}
}

/* Objects are estimated as bytes are where all have one size. */
TEST(objects)
{
	struct sp_stratum s[2] = {
		stratum_of(20, 30, 16, 50. * R0),
		stratum_of(5, 20, 32, 25. * R0),
	};
	const struct sp_interval b = bytes_of(s, 1);
	struct sp_interval n = sp_strata_objects(s, 1, 0, 0.95);

	assert_close(16 * n.lo, b.lo, 1e-4);
	assert_close(16 * n.value, b.value, 1e-9);
	assert_close(16 * n.hi, b.hi, 1e-4);
	n = sp_strata_objects(s, 2, 0, 0.95);
	assert_close(n.value, 20. * R0 / 16 + 5. * R0 / 32, 1e-4);
}

/* What nobody was seen in is shared as all that was seen is. */
TEST(nothing_seen)
{
	struct sp_stratum s[2] = {
		stratum_of(60, 20, 16, 80. * R0),
		stratum_of(0, 0, 4096, 4. * R0),
	};

	assert_close(bytes_of(s, 2).value, 60. * R0 + 3. * R0, 1e-3);
	s[0] = stratum_of(80, 0, 16, 80. * R0);
	assert_close(bytes_of(s, 2).value, 84. * R0, 1e-12);
}

TEST_MAIN(NULL, NULL)
