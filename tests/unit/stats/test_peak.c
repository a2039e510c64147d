/* SPDX-License-Identifier: MIT */
/* E22 to E25 and E62 against plain maxima; coverage and bias are in
 * stat/test_live. */
#include <math.h>

#include "base/rng.h"
#include "format/layout.h"
#include "stats/peak.h"
#include "support/acc.h"
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
	const struct sp_acc then = acc_at(profile, peak.time_ns);

	assert_close(peak.raw_bytes, want.est_bytes, 1e-12);
	assert_close(peak.bytes.hi, fmax(want.upper, peak.rows_bytes.hi), 1e-9);
	assert_close(peak.bytes.lo,
		     fmax(peak.rows_bytes.lo, (double)want.size_bytes), 1e-12);
	assert_int_equal(peak.samples, then.samples);
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
	static const struct summit weighed[] = {{100, 0}, {0, 50}, {10, 0}};
	struct maxima want;
	struct sp_peak peak;

	for (uint64_t seed = 0; seed < 50; seed++) {
		peak = three_summits(seed, weighed, &want);
		assert_int_equal(peak.rows_ns, 0);
		peak = three_summits(seed, each, &want);
		assert_true(want.size_bytes == 90 * R0);
		assert_true(want.est_bytes > 102.4 * R0 &&
			    want.est_bytes < 103 * R0);
		assert_true(want.upper > 121 * R0);
		assert_close(peak.raw_bytes, want.est_bytes, 1e-12);
		assert_close(peak.bytes.hi,
			     fmax(want.upper, peak.rows_bytes.hi), 1e-9);
		assert_true(peak.bytes.lo >= (double)want.size_bytes);
		peak = three_summits(seed, last, &want);
		assert_true(peak.bytes.lo >= (double)want.size_bytes);
		assert_close(peak.raw_bytes, want.est_bytes, 1e-12);
	}
}

/* (E22) and (E23) once more: of n equal objects that are all alive, k chose and
 * are known. */
static struct sp_interval others_say(unsigned int n, unsigned int k,
				     double size, double confidence)
{
	const double pi = -expm1(-size / R0);
	const double in_others = 0.75 * pi / (1 - pi / 4), miss = 1 - in_others;
	const double w = size / in_others;
	struct sp_acc acc;
	struct sp_interval others;

	sp_acc_init(&acc, (4 * R0 + 2) / 3);
	acc.samples = n - k;
	acc.size_bytes = (n - k) * (uint64_t)size;
	acc.est_bytes = (n - k) * w;
	acc.k2 = (n - k) * w * w * miss;
	acc.k3 = (n - k) * w * w * w * miss * (1 + miss);
	acc.kz = (n - k) * w * w * miss * size;
	others = sp_estimate_bytes_p3(&acc, confidence);
	others.lo += k * size;
	others.hi += k * size;
	others.value += k * size;
	return others;
}

static unsigned int count_choosers(const struct sp_profile *p)
{
	unsigned int n = 0;

	for (size_t i = 0; i < p->n_samples; i++)
		n += !sp_peak_measures(p, &p->samples[i]);
	return n;
}

/* Of n objects that are all there at one time, and are freed or not. */
TEST(measured_by_the_others)
{
	static const uint64_t sizes[] = {16, R0 / 4, R0 / 2, R0};
	const unsigned int n = 40;
	struct live_profile live;

	for (unsigned int i = 0; i < 8 * N(sizes); i++) {
		const bool stays = i >= 4 * N(sizes);
		struct sp_interval want;
		struct sp_peak peak;
		struct sp_acc all;

		live_profile_init(&live, R0, 1000);
		live.profile.seed = i;
		for (unsigned int k = 0; k < n; k++)
			live_profile_add(&live, k, stays ? SP_NEVER : 500 + k,
					 sizes[i % N(sizes)]);
		peak = peak_of(&live.profile, 0.9);
		want = others_say(n, count_choosers(&live.profile),
				  (double)sizes[i % N(sizes)], 0.9);
		all = acc_at(&live.profile, 499);
		assert_int_equal(peak.samples, n);
		assert_int_equal(peak.rows_ns, stays ? SP_NEVER : n - 1);
		assert_int_equal(peak.time_ns, stays ? 1000 : n - 1);
		/* nobody chose the end */
		if (stays)
			want = sp_estimate_bytes_p3(&all, 0.9);
		assert_close(peak.rows_bytes.value, want.value, 1e-12);
		assert_close(peak.rows_bytes.lo, want.lo, 1e-9);
		assert_close(peak.rows_bytes.hi, want.hi, 1e-9);
		live_profile_free(&live);
	}
}

TEST(one_in_four_chooses)
{
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, R0, 1000);
	live.profile.seed = 7;
	for (unsigned int k = 0; k < 10000; k++)
		live_profile_add(&live, k % 1000, SP_NEVER, 64);
	assert_in_range(count_choosers(&live.profile), 2067, 2933);
}

/* No sample chooses: all do. */
TEST(nobody_chooses)
{
	struct live_profile live;
	struct sp_peak peak;

	for (uint64_t seed = 0; seed < 8; seed++) {
		live_profile_init(&live, R0, 1000);
		live.profile.seed = seed;
		live_profile_add(&live, 200, 500, 64);
		peak = peak_of(&live.profile, 0.95);
		assert_int_equal(peak.rows_ns, 200);
		assert_int_equal(peak.samples, 1);
		assert_close(peak.bytes.value,
			     count_choosers(&live.profile)
				     ? 64
				     : others_say(1, 0, 64, 0.95).value,
			     1e-12);
		live_profile_free(&live);
	}
}

/* Hills of so many samples each, from 0, 100, ... on. */
static struct sp_peak peak_of_hills(uint64_t seed, const unsigned int *hills,
				    unsigned int n)
{
	struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, R0, 1000);
	live.profile.seed = seed;
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < hills[i]; k++)
			live_profile_add(&live, 100 * i, 100 * i + 50, 32);
	peak = peak_of(&live.profile, 0.95);
	live_profile_free(&live);
	return peak;
}

/* What is left of a time before the window was alive at it. */
TEST(not_before_the_window)
{
	struct live_profile live;
	struct sp_peak peak;

	for (uint64_t seed = 0; seed < 20; seed++) {
		live_profile_init(&live, R0, 1000);
		live.profile.seed = seed;
		live.profile.window_ns = 300;
		for (unsigned int k = 0; k < 100; k++)
			live_profile_add(&live, k, 400 + k, 64);
		for (unsigned int k = 0; k < 20; k++)
			live_profile_add(&live, 600 + k, 700, 64);
		peak = peak_of(&live.profile, 0.95);
		assert_int_equal(peak.rows_ns, 300);
		assert_int_equal(peak.time_ns, 300);
		assert_int_equal(peak.samples, 100);
		live_profile_free(&live);
	}
}

/* (E62) Another summit is named where it may be the peak. */
TEST(another_summit)
{
	static const unsigned int alike[] = {100, 100, 10};
	static const unsigned int one[] = {20, 400, 20, 60};
	bool was_first[2] = {false, false};

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct sp_peak peak = peak_of_hills(seed, alike, 3);

		assert_true(peak.rows_ns == 0 || peak.rows_ns == 100);
		assert_int_equal(peak.other_ns, 100 - peak.rows_ns);
		assert_true(peak.other_bytes.hi >= peak.rows_bytes.lo);
		was_first[peak.rows_ns == 0] = true;
		peak = peak_of_hills(seed, one, 4);
		assert_int_equal(peak.rows_ns, 100);
		assert_true(peak.other_ns == SP_NEVER);
	}
	assert_true(was_first[0] && was_first[1]);
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
		live_profile_free(&live);
	}
}

/* What is certain says when the peak was. */
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
		assert_true(peak.rows_bytes.lo <= peak.raw_bytes &&
			    peak.raw_bytes <= peak.rows_bytes.hi);
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
		assert_in_range(peak.samples, 10, 12);
		assert_true(peak.bytes.lo >= 12 * 32);
		lower += peak.bytes.value < peak.raw_bytes;
		live_profile_free(&live);
	}
	assert_in_range(lower, 120, 200);
}

/* Objects that are always sampled are known, whoever chooses. */
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
			     (double)want.size_bytes +
				     (peak.rows_ns == SP_NEVER
					      ? R0
					      : (4 * R0 + 2) / 3) *
					     log(40),
			     1e-9);
		live_profile_free(&live);
	}
}

/* An address that a realloc frees and gets again is not there twice; what was
 * freed at its birth was never there. */
TEST(one_nanosecond)
{
	FREED_BY(live_profile_free) struct live_profile live;
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
}

TEST(selection)
{
	struct sp_selection selection;
	FREED_BY(live_profile_free) struct live_profile live;
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
}

TEST(empty)
{
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_peak peak;

	live_profile_init(&live, R0, 100);
	peak = peak_of(&live.profile, 0.95);
	assert_true(peak.bytes.lo == 0 && peak.bytes.value == 0);
	assert_close(peak.bytes.hi, R0 * log(40), 1e-12);
	assert_int_equal(peak.samples, 0);
	assert_int_equal(peak.time_ns, 0);
}

/* The largest numbers that a file can hold. */
TEST(hostile_sizes)
{
	FREED_BY(live_profile_free) struct live_profile live;
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
}

TEST_MAIN(NULL, NULL)
