/* SPDX-License-Identifier: MIT */
/* What the gaps are like, of one thread and of many. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "acceptance.h"
#include "agent/thread/sampler.h"
#include "one_thread.h"
#include "stats/estimator.h"

#define GAPS          4000000
#define BINS          64
#define PERIOD        256
#define LONG_GAPS     32768
#define PHASE_BYTES   4096
#define PHASE_OBJECTS 4000000
#define THREADS       400000

/*
 * Gaps one after another: a hit byte is followed by objects of one byte, so
 * that what passes is the gap itself.  Long ones come in parts, of which only
 * the last ends in a hit.
 */
static uint64_t next_gap(struct sp_sampler *sampler)
{
	uint64_t passed = 0, offset;

	for (;;) {
		uint64_t step = sampler->gap;

		if (sp_sampler_pass(sampler, step, 1, &offset))
			return passed + step;
		passed += step + 1;
	}
}

/* P(gap >= k) = exp(-k / R). */
static double tail(double k)
{
	return exp(-k / PERIOD);
}

/* Upper ends of intervals that are nearly equally probable; the last is open.
 */
static void bin_edges(uint64_t *edges)
{
	for (int i = 1; i < BINS; i++)
		edges[i - 1] =
			(uint64_t)ceil(-PERIOD * log1p(-(double)i / BINS));
}

static int bin_of(const uint64_t *edges, uint64_t gap)
{
	int low = 0, high = BINS - 1;

	while (low < high) {
		int middle = (low + high) / 2;

		if (gap < edges[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Wilson and Hilferty. */
static double chi_squared_z(const unsigned int *counts, const uint64_t *edges)
{
	const double df = BINS - 1;
	double chi = 0;

	for (int i = 0; i < BINS; i++) {
		double from = i ? tail((double)edges[i - 1]) : 1;
		double to = i < BINS - 1 ? tail((double)edges[i]) : 0;
		double want = GAPS * (from - to);

		chi += (counts[i] - want) * (counts[i] - want) / want;
	}
	return (cbrt(chi / df) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
}

void test_gaps(struct statistics *s)
{
	/* Geometric, q = exp(-1/R), with its fourth moment. */
	const double p = -expm1(-1.0 / PERIOD), q = 1 - p;
	const double mean = q / p, variance = q / (p * p);
	const double kurtosis = 9 + p * p / q;
	double s1 = 0, s2 = 0, lag = 0, last = 0;
	unsigned int counts[BINS] = {0};
	uint64_t edges[BINS - 1];
	struct sp_sampler sampler;
	struct sp_law law;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, PERIOD);
	sp_sampler_begin(&sampler, &law, 101, 1, 1);
	bin_edges(edges);
	for (int i = 0; i < GAPS; i++) {
		const uint64_t gap = next_gap(&sampler);
		const double d = (double)gap - mean;

		s1 += d;
		s2 += d * d;
		lag += d * last;
		last = d;
		counts[bin_of(edges, gap)]++;
	}
	add_z(s, "mean gap", s1 / sqrt(GAPS * variance));
	add_z(s, "variance of gaps",
	      (s2 / GAPS - variance) /
		      (variance * sqrt((kurtosis - 1) / GAPS)));
	add_z(s, "neighbouring gaps", lag / (variance * sqrt((double)GAPS)));
	add_z(s, "distribution of gaps", chi_squared_z(counts, edges));
}

/* Under a period so long there should be no two equal gaps. */
void test_uniforms(struct statistics *s)
{
	static uint64_t gaps[LONG_GAPS];
	struct sp_sampler sampler;
	struct sp_law law;
	int pairs = 0;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, 1ull << 40);
	sp_sampler_begin(&sampler, &law, 107, 1, 1);
	for (int i = 0; i < LONG_GAPS; i++)
		gaps[i] = next_gap(&sampler);
	qsort(gaps, LONG_GAPS, sizeof(gaps[0]), sp_array_compare_u64);
	for (int i = 1; i < LONG_GAPS; i++)
		pairs += gaps[i] == gaps[i - 1];
	add_check(s, "equal gaps", pairs <= 1);
}

/* ---- changes of the period ---- */

void test_periods(struct statistics *s)
{
	static const uint64_t sizes[] = {8, 24, 64, 100, 256, 512};
	static const uint64_t periods[2] = {128, 512};
	const struct sp_law_used used = {.always_large = true};
	struct sum bytes[2] = {{0, 0, 0}, {0, 0, 0}};
	struct sp_law law[2];
	struct sp_acc acc[2];
	struct sp_rng order;
	uint64_t in_phase = 0;
	int phase = 0;

	for (int i = 0; i < 2; i++) {
		sp_law_init(&law[i], SP_LAW_EXPONENTIAL, periods[i]);
		sp_acc_init(&acc[i], periods[i]);
	}
	thread_begin(&law[0], 104, 1);
	sp_rng_init(&order, 105, 1);
	for (int i = 0; i < PHASE_OBJECTS; i++) {
		const uint64_t size = sizes[sp_rng_next(&order) % 6];
		uint64_t at;

		if (in_phase >= PHASE_BYTES) {
			in_phase = 0;
			phase = !phase;
			thread_change(&law[phase]);
		}
		in_phase += size;
		expect(&bytes[phase], (double)size, 1,
		       inclusion((double)size, (double)periods[phase]));
		if (thread_allocate(size, &at))
			sp_acc_add(&acc[phase], &used, size, at,
				   periods[phase]);
	}
	for (int i = 0; i < 2; i++)
		bytes[i].got = acc[i].est_bytes;
	add_z(s, "weighted bytes, period 128", z_of(&bytes[0]));
	add_z(s, "weighted bytes, period 512", z_of(&bytes[1]));
}

/* ---- threads ---- */

/* Short-lived threads of neighbouring numbers: what each does with its first
 * object. */
void test_threads(struct statistics *s)
{
	const double pi = inclusion(512, 4096), n = THREADS;
	double hits = 0, together = 0, last = 0;
	struct sp_law law;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, 4096);
	for (uint32_t i = 1; i <= THREADS; i++) {
		uint64_t at;
		double d;

		thread_begin(&law, 106, i);
		d = thread_allocate(512, &at) - pi;
		hits += d;
		together += d * last;
		last = d;
	}
	add_z(s, "first objects", hits / sqrt(n * pi * (1 - pi)));
	add_z(s, "neighbouring threads",
	      together / (sqrt(n - 1) * pi * (1 - pi)));
}
