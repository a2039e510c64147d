/* SPDX-License-Identifier: MIT */
/*
 * Claims.  The sampler draws gap = floor(E R), E exponential (E1), so that an
 * object of z bytes is sampled with probability pi = 1 - exp(-z / R)
 * independently of all others (E2), and sums of z / pi and 1 / pi over the
 * samples are unbiased (E3), whatever is allocated in which order, in however
 * many threads, and when the period changes.
 *
 * H0: the claims.  Statistics, all from the code of src/agent/sampler.c with
 * fixed seeds, each standardised with the exact variance under H0:
 *
 *   T1 gaps       R = 256, n = 4e6: mean, variance, lag-1 correlation, and
 *                 chi-squared over 64 intervals of exactly known probability
 *                 (z by Wilson and Hilferty); R = 2^40, n = 2^15: the number
 *                 of pairs of equal gaps, which is Poisson(n^2 / 4R)
 *   T2 objects    R = 256, n = 8e6 objects of eight sizes from 8 to 2000
 *                 bytes, through the countdown of the fast path with check-ins
 *                 every 4 KiB: hits of each size (8), weighted bytes, weighted
 *                 count, mean offset of the hit byte
 *   T3 periods    R = 128 and 512 in turns of 4 KiB, a new gap at each change,
 *                 4e6 objects: weighted bytes of the phases of each period (2)
 *   T4 threads    R = 4096, 4e5 generators of neighbouring streams, each with
 *                 one object of 512 bytes: hits, and hits of two neighbours
 *
 * alpha: |z| <= 5 has probability 5.7e-7 each under H0, more than one pair of
 * equal gaps 3e-8; the 20 statistics make 1.1e-5 for a fresh seed.
 *
 * Power: a rate that is off by 0.5 % is rejected by T1's mean with probability
 * above 0.9999 (z = 10), by T2 above 0.99.
 *
 * Negative controls: each mutant below must be rejected by the test that is
 * there for it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "agent/sampler.h"

#define Z_MAX        5.0
#define STATISTICS   16
#define T1_GAPS      4000000
#define T1_BINS      64
#define T1_TWINS     32768
#define T2_OBJECTS   8000000
#define T2_SIZES     8
#define T2_CHECK_IN  4096
#define T3_OBJECTS   4000000
#define T3_PHASE     4096
#define T4_THREADS   400000
#define T4_SIZE      512
#define SMALL_PERIOD 256

enum mutant {
	HONEST,
	RATE_OFF,      /* a period that is 0.5 % longer than it says */
	GAP_PLUS_ONE,  /* the hit byte counted as one that passed */
	LESS_OR_EQUAL, /* an object is hit by the byte behind it, too */
	USABLE_SIZE,   /* the allocator's rounded size passes */
	OVERSHOOT,     /* the next gap begins at the hit byte, cut at the end */
	FIXED_STRIDE,  /* a hit every R bytes */
	SHORT_GAPS,    /* gaps beyond 4 R are drawn again */
	COARSE_UNIFORM, /* 26 random bits */
	FIRST_ALWAYS,   /* a thread's first object is always sampled */
	SHARED_SEED,    /* all threads draw the same gaps */
	FOREIGN_WEIGHT, /* weights of a period that is 0.5 % off */
	NO_REDRAW,      /* the old period's gap goes on in the new one */
};

/* Named statistics of one test. */
struct result {
	struct {
		const char *name;
		double z;
	} of[STATISTICS];
	int n;
};

static void add(struct result *r, const char *name, double z)
{
	r->of[r->n].name = name;
	r->of[r->n++].z = z;
}

static double worst(const struct result *r)
{
	double z = 0;

	for (int i = 0; i < r->n; i++)
		if (!(fabs(r->of[i].z) <= z))
			z = fabs(r->of[i].z);
	return z;
}

/* ---- the sampler, or a mutant of it ---- */

static uint64_t draw(struct sp_rng *rng, uint64_t period, enum mutant mutant)
{
	uint64_t gap;

	switch (mutant) {
	case RATE_OFF:
		return sp_sampler_draw(rng, 1005 * period) / 1000;
	case GAP_PLUS_ONE:
		return sp_sampler_draw(rng, period) + 1;
	case FIXED_STRIDE:
		return period;
	case SHORT_GAPS:
		do
			gap = sp_sampler_draw(rng, period);
		while (gap > 4 * period);
		return gap;
	case COARSE_UNIFORM:
		return sp_sampler_gap(sp_rng_next(rng) >> 38 << 27, period);
	default:
		return sp_sampler_draw(rng, period);
	}
}

/* One thread's countdown, as the fast path has it: `left` bytes until the
 * nearer of the gap's end and the next check-in. */
struct countdown {
	struct sp_rng rng;
	uint64_t gap; /* from the last event */
	uint64_t limit;
	uint64_t left;
	uint64_t period;
	enum mutant mutant;
};

static void next_limit(struct countdown *c)
{
	c->limit = c->gap < T2_CHECK_IN ? c->gap : T2_CHECK_IN;
	c->left = c->limit;
}

static void start(struct countdown *c, uint64_t seed, uint64_t stream,
		  uint64_t period, enum mutant mutant)
{
	sp_rng_init(&c->rng, seed, mutant == SHARED_SEED ? 0 : stream);
	c->period = period;
	c->mutant = mutant;
	c->gap = mutant == FIRST_ALWAYS ? 0 : draw(&c->rng, period, mutant);
	next_limit(c);
}

/* What passes of an object: its size, or what an allocator makes of it. */
static uint64_t charge_of(const struct countdown *c, uint64_t size)
{
	return c->mutant == USABLE_SIZE ? ((size + 8 + 15) & ~15ull) - 8 : size;
}

/* An event: the sampler decides, and the next limit is set. */
static bool event(struct countdown *c, uint64_t size, uint64_t *ret_offset)
{
	struct sp_sampler sampler = {&c->rng, &c->gap, c->period};
	uint64_t used = c->limit - c->left;
	uint64_t gap = c->gap;
	bool hit;

	if (c->mutant == LESS_OR_EQUAL && gap == used + size)
		gap = --c->gap;
	hit = sp_sampler_pass(&sampler, used, charge_of(c, size), ret_offset);
	/* The real one has drawn from the honest law; a mutant draws again. */
	if (hit && c->mutant != HONEST)
		c->gap = draw(&c->rng, c->period, c->mutant);
	if (hit && c->mutant == OVERSHOOT) {
		uint64_t rest = used + size - gap;

		c->gap -= rest < c->gap ? rest : c->gap;
	}
	next_limit(c);
	return hit;
}

/* One allocation. */
static bool allocate(struct countdown *c, uint64_t size, uint64_t *ret_offset)
{
	uint64_t charge = charge_of(c, size);

	if (c->left > charge ||
	    (c->left == charge && c->mutant != LESS_OR_EQUAL)) {
		c->left -= charge;
		return false;
	}
	return event(c, size, ret_offset);
}

/* ---- the weights of E2 and E3 ---- */

static double inclusion(uint64_t size, double period)
{
	return -expm1(-(double)size / period);
}

/* A sum of `weight` over the hits, its expectation and variance. */
struct sum {
	double got, want, variance;
};

static void expect(struct sum *s, double value, double n, double pi)
{
	s->want += value * n;
	s->variance += value * value * n * (1 - pi) / pi;
}

static double z_of(const struct sum *s)
{
	return (s->got - s->want) / sqrt(s->variance);
}

/* ---- T1 ---- */

/* P(gap >= k) = exp(-k / R). */
static double tail(double k)
{
	return exp(-k / SMALL_PERIOD);
}

/* Upper ends of intervals that are nearly equally probable; the last is open.
 */
static void bin_edges(uint64_t *edges)
{
	for (int i = 1; i < T1_BINS; i++)
		edges[i - 1] = (uint64_t)ceil(-SMALL_PERIOD *
					      log1p(-(double)i / T1_BINS));
}

static double chi_squared_z(const unsigned int *counts, const uint64_t *edges)
{
	double chi = 0, df = T1_BINS - 1, third;

	for (int i = 0; i < T1_BINS; i++) {
		double from = i ? tail((double)edges[i - 1]) : 1;
		double to = i < T1_BINS - 1 ? tail((double)edges[i]) : 0;
		double want = T1_GAPS * (from - to);

		chi += (counts[i] - want) * (counts[i] - want) / want;
	}
	third = cbrt(chi / df);
	return (third - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Pairs of equal gaps under a period so long that there should be none: 0 for
 * at most one, else a rejection. */
static double twins(struct sp_rng *rng, enum mutant mutant)
{
	static uint64_t gaps[T1_TWINS];
	unsigned int pairs = 0;

	for (int i = 0; i < T1_TWINS; i++)
		gaps[i] = draw(rng, 1ull << 40, mutant);
	qsort(gaps, T1_TWINS, sizeof(gaps[0]), compare_u64);
	for (int i = 1; i < T1_TWINS; i++)
		pairs += gaps[i] == gaps[i - 1];
	return pairs > 1 ? 100 : 0;
}

static struct result test_gaps(enum mutant mutant)
{
	/* Geometric: q = exp(-1/R). */
	double p = -expm1(-1.0 / SMALL_PERIOD), q = 1 - p;
	double mean = q / p, variance = q / (p * p);
	/* Fourth central moment over the variance squared. */
	double kurtosis = 9 + p * p / q;
	double s1 = 0, s2 = 0, lag = 0, last = 0;
	unsigned int counts[T1_BINS] = {0};
	uint64_t edges[T1_BINS - 1];
	struct result r = {.n = 0};
	struct sp_rng rng;

	sp_rng_init(&rng, 101, 1);
	bin_edges(edges);
	for (int i = 0; i < T1_GAPS; i++) {
		uint64_t gap = draw(&rng, SMALL_PERIOD, mutant);
		double d = (double)gap - mean;
		int low = 0, high = T1_BINS - 1;

		s1 += d;
		s2 += d * d;
		lag += d * last;
		last = d;
		while (low < high) {
			int middle = (low + high) / 2;

			if (gap < edges[middle])
				high = middle;
			else
				low = middle + 1;
		}
		counts[low]++;
	}
	add(&r, "mean gap", s1 / sqrt(T1_GAPS * variance));
	add(&r, "variance of gaps",
	    (s2 / T1_GAPS - variance) /
		    (variance * sqrt((kurtosis - 1) / T1_GAPS)));
	add(&r, "neighbouring gaps", lag / (variance * sqrt((double)T1_GAPS)));
	add(&r, "distribution of gaps", chi_squared_z(counts, edges));
	add(&r, "equal gaps", twins(&rng, mutant));
	return r;
}

/* ---- T2 ---- */

static const uint64_t sizes[T2_SIZES] = {8, 24, 64, 100, 256, 512, 1000, 2000};

/* Offset of the hit byte, given a hit: a geometric variable cut at z. */
static void expect_offset(struct sum *s, double hits, double size)
{
	double p = -expm1(-1.0 / SMALL_PERIOD), q = 1 - p;
	double qz = exp(-size / SMALL_PERIOD);
	double mean = q / p - size * qz / (1 - qz);
	double variance =
		q / (p * p) - size * size * qz / ((1 - qz) * (1 - qz));

	s->want += hits * mean;
	s->variance += hits * variance;
}

static struct result test_objects(enum mutant mutant)
{
	static const char *const names[T2_SIZES] = {
		"hits of 8",   "hits of 24",  "hits of 64",   "hits of 100",
		"hits of 256", "hits of 512", "hits of 1000", "hits of 2000"};
	double n[T2_SIZES] = {0}, hits[T2_SIZES] = {0};
	struct sum bytes = {0, 0, 0}, count = bytes, offset = bytes;
	double used =
		mutant == FOREIGN_WEIGHT ? SMALL_PERIOD * 1.005 : SMALL_PERIOD;
	struct countdown c;
	struct sp_rng order;
	struct result r = {.n = 0};

	start(&c, 102, 1, SMALL_PERIOD, mutant);
	sp_rng_init(&order, 103, 1);
	for (int i = 0; i < T2_OBJECTS; i++) {
		unsigned int k = sp_rng_next(&order) >> 61;
		uint64_t at = 0;

		n[k]++;
		if (!allocate(&c, sizes[k], &at))
			continue;
		hits[k]++;
		offset.got += (double)at;
	}
	for (int k = 0; k < T2_SIZES; k++) {
		double size = (double)sizes[k];
		double pi = inclusion(sizes[k], SMALL_PERIOD);
		double weight = inclusion(sizes[k], used);

		add(&r, names[k],
		    (hits[k] - n[k] * pi) / sqrt(n[k] * pi * (1 - pi)));
		bytes.got += hits[k] * size / weight;
		count.got += hits[k] / weight;
		expect(&bytes, size, n[k], pi);
		expect(&count, 1, n[k], pi);
		expect_offset(&offset, hits[k], size);
	}
	add(&r, "weighted bytes", z_of(&bytes));
	add(&r, "weighted count", z_of(&count));
	add(&r, "offset of the hit byte", z_of(&offset));
	return r;
}

/* ---- T3 ---- */

static struct result test_periods(enum mutant mutant)
{
	static const uint64_t periods[2] = {128, 512};
	struct sum bytes[2] = {{0, 0, 0}, {0, 0, 0}};
	double pi[2][6];
	struct countdown c;
	struct sp_rng order;
	struct result r = {.n = 0};
	uint64_t in_phase = 0;
	int phase = 0;

	for (int i = 0; i < 2 * 6; i++)
		pi[i / 6][i % 6] =
			inclusion(sizes[i % 6], (double)periods[i / 6]);
	start(&c, 104, 1, periods[0], mutant);
	sp_rng_init(&order, 105, 1);
	for (int i = 0; i < T3_OBJECTS; i++) {
		unsigned int k = sp_rng_next(&order) % 6;
		uint64_t at;

		if (in_phase >= T3_PHASE) {
			in_phase = 0;
			phase = !phase;
			c.period = periods[phase];
			c.gap = mutant == NO_REDRAW
					? c.gap - (c.limit - c.left)
					: draw(&c.rng, c.period, mutant);
			next_limit(&c);
		}
		in_phase += sizes[k];
		expect(&bytes[phase], (double)sizes[k], 1, pi[phase][k]);
		if (allocate(&c, sizes[k], &at))
			bytes[phase].got += (double)sizes[k] / pi[phase][k];
	}
	add(&r, "weighted bytes, period 128", z_of(&bytes[0]));
	add(&r, "weighted bytes, period 512", z_of(&bytes[1]));
	return r;
}

/* ---- T4 ---- */

static struct result test_threads(enum mutant mutant)
{
	double pi = inclusion(T4_SIZE, 4096), n = T4_THREADS;
	double hits = 0, both = 0;
	struct result r = {.n = 0};
	bool last = false;

	for (uint64_t i = 1; i <= T4_THREADS; i++) {
		struct countdown c;
		uint64_t at;
		bool hit;

		start(&c, 106, i, 4096, mutant);
		hit = allocate(&c, T4_SIZE, &at);
		hits += hit;
		/* Disjoint pairs, so that they are independent. */
		both += i % 2 == 0 && hit && last;
		last = hit;
	}
	add(&r, "first objects", (hits - n * pi) / sqrt(n * pi * (1 - pi)));
	add(&r, "neighbouring threads",
	    (both - n / 2 * pi * pi) / sqrt(n / 2 * pi * pi * (1 - pi * pi)));
	return r;
}

/* ---- the honest sampler passes, the mutants do not ---- */

typedef struct result test_fn(enum mutant mutant);

static void check_honest(test_fn *test, int statistics)
{
	struct result r = test(HONEST);

	assert_int_equal(r.n, statistics);
	for (int i = 0; i < r.n; i++)
		print_message("%-28s z = %6.2f\n", r.of[i].name, r.of[i].z);
	assert_true(worst(&r) <= Z_MAX);
}

static void test_honest(void **state)
{
	(void)state;
	check_honest(test_gaps, 5);
	check_honest(test_objects, T2_SIZES + 3);
	check_honest(test_periods, 2);
	check_honest(test_threads, 2);
}

static void test_mutants(void **state)
{
	static const struct {
		enum mutant mutant;
		const char *name;
		test_fn *test;
	} table[] = {
		{RATE_OFF, "rate off by 0.5 %", test_gaps},
		{GAP_PLUS_ONE, "gap plus one", test_gaps},
		{LESS_OR_EQUAL, "<= for <", test_objects},
		{USABLE_SIZE, "usable size", test_objects},
		{OVERSHOOT, "overshoot cut", test_objects},
		{FIXED_STRIDE, "fixed stride", test_gaps},
		{SHORT_GAPS, "long gaps drawn again", test_gaps},
		{COARSE_UNIFORM, "26 random bits", test_gaps},
		{FIRST_ALWAYS, "first always", test_threads},
		{SHARED_SEED, "shared seed", test_threads},
		{FOREIGN_WEIGHT, "weight of another period", test_objects},
		{NO_REDRAW, "no redraw at a change", test_periods},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct result r = table[i].test(table[i].mutant);
		int rejections = 0;

		for (int k = 0; k < r.n; k++)
			rejections += !(fabs(r.of[k].z) <= Z_MAX);
		print_message("%-28s |z| = %.1f, %d of %d reject\n",
			      table[i].name, worst(&r), rejections, r.n);
		assert_true(rejections > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest),
		cmocka_unit_test(test_mutants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
