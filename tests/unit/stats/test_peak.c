/* SPDX-License-Identifier: MIT */
/* E22 to E25 against plain maxima; coverage and bias are in stat/test_live. */
#include <math.h>

#include "base/rng.h"
#include "format/layout.h"
#include "stats/peak.h"
#include "support/close.h"
#include "support/live_profile.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define R0       4096u

static uint64_t below(struct sp_rng *rng, uint64_t limit)
{
	return sp_rng_next(rng) % limit;
}

/* From 1 byte to 2^bits, every order of magnitude as often. */
static uint64_t random_size(struct sp_rng *rng, unsigned int bits)
{
	return 1 + below(rng, 1ull << (1 + below(rng, bits)));
}

static void add_random(struct live_profile *live, struct sp_rng *rng,
		       unsigned int n, uint64_t longest, unsigned int bits)
{
	const uint64_t last = live->profile.duration_ns;

	while (n--) {
		const uint64_t born = below(rng, last + 1);
		const uint64_t freed = born + below(rng, longest + 1);

		live_profile_add(live, born, freed <= last ? freed : SP_NEVER,
				 random_size(rng, bits));
	}
}

static struct sp_peak peak_of(const struct sp_profile *profile,
			      double confidence)
{
	struct sp_selection selection;
	struct sp_peak peak;

	sp_selection_init(&selection);
	assert_int_equal(sp_peak(profile, &selection, confidence, &peak, NULL),
			 0);
	assert_true(peak.bytes.lo <= peak.bytes.value &&
		    peak.bytes.value <= peak.bytes.hi);
	return peak;
}

/* What was alive at a moment, one sample after another. */
static struct sp_acc acc_at(const struct sp_profile *profile, uint64_t time_ns)
{
	struct sp_acc acc;

	sp_acc_init(&acc, profile->period_bytes);
	for (size_t k = 0; k < profile->n_samples; k++) {
		const struct sp_sample *s = &profile->samples[k];

		if (s->born_ns <= time_ns && time_ns < s->freed_ns)
			sp_acc_add(&acc, &profile->law, s->size_bytes,
				   s->offset_bytes, s->period_bytes);
	}
	return acc;
}

/* Maxima over all births, which is where the curve can be highest. */
struct maxima {
	double est_bytes;
	double upper;
	uint64_t size_bytes;
	uint64_t time_ns; /* of est_bytes, the first */
	uint64_t samples; /* then */
};

/* Sums are made anew at each. */
static struct maxima maxima_of(const struct sp_profile *profile,
			       double confidence)
{
	struct sp_acc none = acc_at(profile, SP_NEVER);
	struct maxima m = {.est_bytes = 0};

	/* what was not sampled is spoken of with the largest period */
	for (size_t k = 0; k < profile->n_samples; k++) {
		const struct sp_sample *s = &profile->samples[k];

		if (s->born_ns < s->freed_ns &&
		    s->period_bytes > none.period_bytes)
			none.period_bytes = s->period_bytes;
	}
	m.upper = sp_estimate_bytes_p3(&none, confidence).hi;
	for (size_t k = 0; k < profile->n_samples; k++) {
		const uint64_t t = profile->samples[k].born_ns;
		struct sp_acc acc = acc_at(profile, t);

		if (acc.est_bytes > m.est_bytes ||
		    (acc.est_bytes == m.est_bytes && t < m.time_ns)) {
			m.est_bytes = acc.est_bytes;
			m.time_ns = t;
			m.samples = acc.samples;
		}
		if (acc.size_bytes > m.size_bytes)
			m.size_bytes = acc.size_bytes;
		acc.period_bytes = none.period_bytes;
		m.upper = fmax(m.upper,
			       sp_estimate_bytes_p3(&acc, confidence).hi);
	}
	return m;
}

TEST(exact_at_period_1)
{
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 1, 0);
	for (unsigned int i = 0; i < 300; i++) {
		struct maxima truth;
		struct sp_peak peak;

		live_profile_init(&live, 1, 1 + 3 * i);
		live.profile.seed = i;
		add_random(&live, &rng, 1 + i, 1 + i / 2, i % 2 ? 6 : 40);
		truth = maxima_of(&live.profile, 0.95);
		peak = peak_of(&live.profile, 0.95);
		assert_true(peak.bytes.value == (double)truth.size_bytes);
		assert_true(peak.bytes.lo == (double)truth.size_bytes);
		assert_true(peak.bytes.hi == (double)truth.size_bytes);
		assert_true(peak.raw_bytes == (double)truth.size_bytes);
		assert_int_equal(peak.time_ns, truth.time_ns);
		assert_int_equal(peak.samples, truth.samples);
		live_profile_free(&live);
	}
}

static void assert_as_maxima(const struct sp_profile *profile,
			     double confidence)
{
	const struct maxima want = maxima_of(profile, confidence);
	const struct sp_peak peak = peak_of(profile, confidence);
	/* Of moments that differ by rounding it may be another. */
	const struct sp_acc then = acc_at(profile, peak.time_ns);

	assert_close(peak.raw_bytes, want.est_bytes, 1e-12);
	assert_close(peak.bytes.hi, want.upper, 1e-9);
	assert_true(peak.bytes.lo >= (double)want.size_bytes);
	assert_int_equal(peak.samples, then.samples);
	assert_close(then.est_bytes, want.est_bytes, 1e-12);
}

/* The walk's running sums, and the upper limits that it does not compute. */
TEST(against_maxima)
{
	static const double confidences[] = {0.9, 0.95, 0.99, 0.999};
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 0);
	for (unsigned int i = 0; i < 240; i++) {
		live_profile_init(&live, R0, 1000);
		live.profile.seed = i;
		live.profile.law.always_large = i % 3 == 0;
		live.profile.law.is_dotnet = i % 7 == 0;
		add_random(&live, &rng, i, 1 + i * i % 1200, 4 + i % 13);
		for (size_t k = 0; i % 5 == 0 && k < live.profile.n_samples;
		     k += 2)
			live.profile.samples[k].period_bytes = 1ull << k % 24;
		assert_as_maxima(&live.profile, confidences[i % 4]);
		live_profile_free(&live);
	}
}

/* The walk has one sum while all are certain, and finds the others when one is
 * not: until some moment, or the end. */
TEST(certain_at_first)
{
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 0);
	for (unsigned int i = 0; i < 240; i++) {
		live_profile_init(&live, R0, 1000);
		live.profile.seed = i;
		add_random(&live, &rng, 1 + i, 1 + i * i % 1200, 4 + i % 13);
		for (size_t k = 0; k < live.profile.n_samples; k++)
			if (live.profile.samples[k].born_ns < i * 5)
				live.profile.samples[k].period_bytes = 1;
		assert_as_maxima(&live.profile, 0.95);
		live_profile_free(&live);
	}
}

struct summit {
	unsigned int small;     /* objects of 16 bytes */
	double certain_periods; /* of an object that was certain */
};

/* One after the other, from 0, 100 and 200 ns on. */
static struct sp_peak three_summits(uint64_t seed,
				    const struct summit summits[3],
				    struct maxima *ret_want)
{
	struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, R0, 1000);
	live.profile.seed = seed;
	live.profile.law.always_large = true;
	for (uint64_t i = 0; i < 3; i++) {
		const uint64_t at = 100 * i;
		const double bytes = summits[i].certain_periods * R0;

		for (unsigned int k = 0; k < summits[i].small; k++)
			live_profile_add(&live, at, at + 50, 16);
		if (bytes > 0)
			live_profile_add(&live, at, at + 50, (uint64_t)bytes);
	}
	*ret_want = maxima_of(&live.profile, 0.95);
	peak = peak_of(&live.profile, 0.95);
	live_profile_free(&live);
	return peak;
}

/* A summit that is not looked at closely must be the highest in no respect. */
TEST(highest_in_one_respect)
{
	/* Of what was sampled, the upper limits, the estimates. */
	static const struct summit each[] = {{0, 90}, {100, 0}, {20, 82.5}};
	/* Of the upper limits, both others. */
	static const struct summit last[] = {{0, 1}, {100, 0}, {20, 79}};
	struct maxima want;
	struct sp_peak peak;

	for (uint64_t seed = 0; seed < 50; seed++) {
		peak = three_summits(seed, each, &want);
		assert_true(want.size_bytes == 90 * R0);
		assert_true(want.est_bytes > 102.4 * R0 &&
			    want.est_bytes < 103 * R0);
		assert_true(want.upper > 121 * R0);
		assert_int_equal(peak.time_ns, 200);
		assert_close(peak.raw_bytes, want.est_bytes, 1e-12);
		assert_close(peak.bytes.hi, want.upper, 1e-9);
		assert_true(peak.bytes.lo >= (double)want.size_bytes);
		peak = three_summits(seed, last, &want);
		assert_true(peak.bytes.lo >= (double)want.size_bytes);
		assert_close(peak.raw_bytes, want.est_bytes, 1e-12);
	}
}

/* All that was sampled was there at one time: no moment is chosen by luck, and
 * nothing is corrected. */
TEST(nothing_to_choose)
{
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 3, 0);
	for (unsigned int n = 1; n < 200; n += 7) {
		struct sp_peak peak;

		live_profile_init(&live, R0, 1000);
		live.profile.seed = n;
		for (unsigned int k = 0; k < n; k++)
			live_profile_add(&live, k, n % 2 ? SP_NEVER : 500 + k,
					 random_size(&rng, 14));
		peak = peak_of(&live.profile, 0.95);
		assert_int_equal(peak.samples, n);
		if (n % 2)
			assert_close(peak.bytes.value, peak.raw_bytes, 1e-12);
		live_profile_free(&live);
	}
}

/* (E22) and (E23) once more: of n equal objects that are all alive, one half
 * has k samples and knows of n - k others that were there. */
static struct sp_interval half_says(unsigned int n, unsigned int k, double size,
				    double confidence)
{
	const double pi = -expm1(-size / R0);
	const double in_half = pi / 2 / (1 - pi / 2), miss = 1 - in_half;
	const double w = size / in_half;
	struct sp_acc acc;
	struct sp_interval half;

	sp_acc_init(&acc, R0);
	acc.samples = k;
	acc.size_bytes = k * (uint64_t)size;
	acc.est_bytes = k * w;
	acc.k2 = k * w * w * miss;
	acc.k3 = k * w * w * w * miss * (1 + miss);
	acc.kz = k * w * w * miss * size;
	half = sp_estimate_bytes_p3(&acc, confidence);
	half.lo += (n - k) * size;
	half.value += (n - k) * size;
	return half;
}

/* The lower limit is the best one of two halves and the end, each at a third of
 * the level.  How many samples are in which half is the coin's secret. */
/* All samples are in one half: the other measures where that has most, or the
 * value would be the bytes that were seen. */
TEST(half_without_samples)
{
	struct live_profile live;
	struct sp_peak peak;

	for (uint64_t seed = 0; seed < 8; seed++) {
		live_profile_init(&live, R0, 1000);
		live.profile.seed = seed;
		live_profile_add(&live, 200, 500, 64);
		peak = peak_of(&live.profile, 0.95);
		assert_close(peak.bytes.value, peak.raw_bytes, 1e-12);
		assert_int_equal(peak.chosen_ns[0], 200);
		assert_int_equal(peak.chosen_ns[1], 200);
		live_profile_free(&live);
	}
}

TEST(lower_limit)
{
	static const uint64_t sizes[] = {16, R0 / 4, R0 / 2, R0};
	const double each = 1 - (1 - 0.9) / 3;
	const unsigned int n = 40;
	struct live_profile live;

	for (unsigned int i = 0; i < 8 * N(sizes); i++) {
		const uint64_t freed = i < 4 * N(sizes) ? 500 : SP_NEVER;
		const double size = (double)sizes[i % N(sizes)];
		unsigned int matches = 0;
		struct sp_peak peak;
		struct sp_acc end;

		live_profile_init(&live, R0, 1000);
		live.profile.seed = i;
		for (unsigned int k = 0; k < n; k++)
			live_profile_add(&live, k, freed, sizes[i % N(sizes)]);
		peak = peak_of(&live.profile, 0.9);
		end = acc_at(&live.profile, 1000);
		for (unsigned int k = 8; k <= n / 2; k++) {
			const struct sp_interval a =
				half_says(n, k, size, each);
			const struct sp_interval b =
				half_says(n, n - k, size, each);
			const double lo =
				fmax(fmax(a.lo, b.lo),
				     sp_estimate_bytes_p3(&end, each).lo);

			assert_close((a.value + b.value) / 2, peak.raw_bytes,
				     1e-12);
			matches += fabs(lo / peak.bytes.lo - 1) < 1e-9;
		}
		/* that of the end is the same for all k */
		if (freed == SP_NEVER)
			assert_in_range(matches, 1, n);
		else
			assert_int_equal(matches, 1);
		live_profile_free(&live);
	}
}

/* What is alive at the end, by an estimate that noise has no part in choosing,
 * is not more than the peak. */
TEST(no_less_than_the_end)
{
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 0);
	for (unsigned int i = 0; i < 200; i++) {
		struct sp_peak peak;
		struct sp_acc end;

		live_profile_init(&live, R0, 1000);
		live.profile.seed = i;
		add_random(&live, &rng, 1 + i, 400, 12);
		peak = peak_of(&live.profile, 0.95);
		end = acc_at(&live.profile, 1000);
		assert_true(peak.bytes.value >= end.est_bytes * (1 - 1e-12));
		assert_true(peak.bytes.lo >=
			    sp_estimate_bytes_p3(&end, 0.99).lo);
		live_profile_free(&live);
	}
}

/* What is certain says when the peak was, to both halves. */
TEST(certain_objects_choose)
{
	struct live_profile live;

	for (unsigned int seed = 0; seed < 50; seed++) {
		struct sp_peak peak;

		live_profile_init(&live, R0, 1000);
		live.profile.seed = seed;
		live.profile.law.always_large = true;
		for (unsigned int k = 0; k < 100; k++)
			live_profile_add(&live, k, SP_NEVER, 32);
		for (unsigned int k = 0; k < 11; k++)
			live_profile_add(&live, k < 5 ? 200 : 400,
					 k < 5 ? 300 : 500, 1 << 20);
		peak = peak_of(&live.profile, 0.95);
		assert_int_equal(peak.time_ns, 400);
		assert_close(peak.bytes.value, peak.raw_bytes, 1e-12);
		live_profile_free(&live);
	}
}

/* Two equal peaks of unlike samples: the estimate at a moment that noise chose
 * is taken back, and never below what was certainly there. */
TEST(noise_is_taken_back)
{
	struct live_profile live;
	unsigned int lower = 0;

	for (unsigned int seed = 0; seed < 200; seed++) {
		struct sp_peak peak;

		live_profile_init(&live, R0, 1000);
		live.profile.seed = seed;
		for (unsigned int tooth = 0; tooth < 20; tooth++)
			for (unsigned int k = 0; k < 10 + tooth % 3; k++)
				live_profile_add(&live, 40 * tooth + k,
						 40 * tooth + 30, 32);
		peak = peak_of(&live.profile, 0.95);
		assert_int_equal(peak.samples, 12);
		assert_true(peak.bytes.lo >= 12 * 32);
		lower += peak.bytes.value < peak.raw_bytes;
		live_profile_free(&live);
	}
	assert_in_range(lower, 120, 200);
}

/* Objects that are always sampled are known, and stay known in both halves. */
TEST(certain_objects)
{
	const uint64_t large = sp_format_always_bytes(R0);
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 4, 0);
	for (unsigned int i = 1; i < 60; i++) {
		struct maxima want;
		struct sp_peak peak;

		live_profile_init(&live, R0, 200);
		live.profile.seed = i;
		live.profile.law.always_large = true;
		add_random(&live, &rng, 2 * i, 30, 8);
		for (size_t k = 0; k < live.profile.n_samples; k++)
			live.profile.samples[k].size_bytes += large;
		want = maxima_of(&live.profile, 0.95);
		peak = peak_of(&live.profile, 0.95);
		assert_true(peak.bytes.value == (double)want.size_bytes);
		assert_true(peak.bytes.lo == (double)want.size_bytes);
		/* something small may have been missed */
		assert_close(peak.bytes.hi,
			     (double)want.size_bytes + R0 * log(40), 1e-9);
		live_profile_free(&live);
	}
}

/* An address that a realloc frees and gets again is not there twice; what was
 * freed at its birth was never there. */
TEST(one_nanosecond)
{
	struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, 1, 100);
	live_profile_add(&live, 10, 20, 100);
	live_profile_add(&live, 20, 30, 200);
	live_profile_add(&live, 30, 30, 5000);
	live_profile_add(&live, 30, SP_NEVER, 50);
	peak = peak_of(&live.profile, 0.95);
	assert_true(peak.bytes.value == 200);
	assert_int_equal(peak.time_ns, 20);
	assert_int_equal(peak.samples, 1);
	live_profile_free(&live);
}

TEST(selection)
{
	struct sp_selection selection;
	struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, 1, 100);
	live_profile_add(&live, 5, SP_NEVER, 1);
	live_profile_add(&live, 10, SP_NEVER, 10);
	live_profile_add(&live, 20, SP_NEVER, 100);
	live_profile_add(&live, 11, SP_NEVER, 1000);
	sp_selection_init(&selection);
	selection.view = SP_VIEW_LEAKS; /* without effect on births */
	selection.at_ns = 0;
	selection.from_ns = 6;
	selection.max_size_bytes = 999;
	assert_int_equal(sp_peak(&live.profile, &selection, 0.95, &peak, NULL),
			 0);
	assert_true(peak.bytes.value == 110);
	assert_int_equal(peak.time_ns, 20);
	selection.to_ns = 20;
	assert_int_equal(sp_peak(&live.profile, &selection, 0.95, &peak, NULL),
			 0);
	assert_true(peak.bytes.value == 10);
	live_profile_free(&live);
}

TEST(empty)
{
	struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, R0, 100);
	peak = peak_of(&live.profile, 0.95);
	assert_true(peak.bytes.lo == 0 && peak.bytes.value == 0);
	assert_close(peak.bytes.hi, R0 * log(40), 1e-12);
	assert_int_equal(peak.samples, 0);
	assert_int_equal(peak.time_ns, 0);
	live_profile_free(&live);
}

/* The largest numbers that a file can hold. */
TEST(hostile_sizes)
{
	struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, SP_FORMAT_PERIOD_MAX, UINT64_MAX - 1);
	for (unsigned int k = 0; k < 50; k++) {
		live_profile_add(&live, k, SP_NEVER - 1 - k, UINT64_MAX - k);
		live_profile_add(&live, k, 100 + k, 1)->period_bytes = 1;
	}
	peak = peak_of(&live.profile, 0.95);
	assert_true(isfinite(peak.bytes.hi));
	assert_close(peak.bytes.value, 50 * 0x1p64, 1e-9);
	assert_int_equal(peak.samples, 100);
	live_profile_free(&live);
}

TEST_MAIN(NULL, NULL)
