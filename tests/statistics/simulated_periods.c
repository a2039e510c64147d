/* SPDX-License-Identifier: MIT */
/*
 * The period is changed at random moments, from outside.  A thread follows with
 * its next event: a sample, or a look after every so many bytes.
 */
#include <math.h>
#include <stdlib.h>

#include "agent/thread/sampler.h"
#include "base/order.h"
#include "stats/estimate.h"
#include "simulated.h"

#define SIZE_BYTES  512u
#define RUNS        5000
#define LOOKS_BYTES (64u << 10) /* between two looks at the period */
#define LAWS        11          /* 1 KiB, 2 KiB, ... 1 MiB */
#define CHANGES_MAX 100
#define EVERY       20 /* object so many is of the function */
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

static const struct program {
	const char *name;
	unsigned int objects, changes;
	unsigned int first, laws; /* of those above */
} programs[] = {
	{"4 MiB, 3 periods of 1 KiB to 1 MiB", 8192, 3, 0, LAWS},
	{"4 MiB, 30 periods of 1 KiB to 1 MiB", 8192, 30, 0, LAWS},
	{"4 MiB, 30 periods of 8 to 32 KiB", 8192, 30, 3, 3},
	{"64 MiB, 3 periods of 1 KiB to 1 MiB", 131072, 3, 0, LAWS},
	{"64 MiB, 100 periods of 1 KiB to 1 MiB", 131072, 100, 0, LAWS},
	{"64 MiB, 100 periods of 8 to 32 KiB", 131072, 100, 3, 3},
};

enum what { TOTAL, FUNCTION, WHATS };

static const char *const names[WHATS] = {"estimated total", "function of 5 %"};

/* The period that is in force from an object on. */
struct change {
	double first;
	unsigned int law;
};

SP_ORDER(compare_changes, struct change, SP_UP(first));

static unsigned int any_law(const struct program *p, struct sp_rng *rng)
{
	return p->first + (unsigned int)(sp_rng_next(rng) % p->laws);
}

struct run {
	struct sp_law law[LAWS];
	struct change change[CHANGES_MAX + 1]; /* ends with one at the end */
	unsigned int changes;
	struct sp_sampler sampler;
	struct sp_class_sums sums[WHATS];
};

static void run_begin(struct run *r, const struct program *p,
		      struct sp_rng *rng)
{
	const unsigned int changes = p->changes;
	unsigned int last = any_law(p, rng), largest = last;

	r->changes = changes;
	sp_sampler_begin(&r->sampler, &r->law[last], sp_rng_next(rng), 1, 1);
	for (unsigned int i = 0; i < changes; i++) {
		last = any_law(p, rng);
		largest = last > largest ? last : largest;
		r->change[i] = (struct change){
			(double)(sp_rng_next(rng) % p->objects), last};
	}
	qsort(r->change, changes, sizeof(r->change[0]), compare_changes);
	r->change[changes].first = p->objects;
	for (unsigned int w = 0; w < WHATS; w++)
		sp_class_sums_init(&r->sums[w], r->law[largest].period_bytes);
}

/* Objects from `i` on, up to `end` or to the first sample; the one to go on
 * with.  Each is smaller than any period times ln 100. */
static double pass_objects(struct run *r, double i, double end)
{
	const struct sp_law_used used = {.always_large = true};
	const uint64_t missed = r->sampler.gap / SIZE_BYTES;
	const uint64_t period = r->sampler.law->period_bytes;
	uint64_t offset;

	if (i + (double)missed >= end) {
		sp_sampler_skip(&r->sampler, (uint64_t)(end - i) * SIZE_BYTES);
		return end;
	}
	i += (double)missed;
	if (!sp_sampler_pass(&r->sampler, missed * SIZE_BYTES, SIZE_BYTES,
			     &offset))
		return i + 1;
	for (unsigned int w = 0; w < WHATS; w++)
		if ((w == TOTAL || (uint64_t)i % EVERY == 0) &&
		    sp_class_sums_add(&r->sums[w], &used, SIZE_BYTES, offset,
				      period) < 0)
			abort();
	return i + 1;
}

static void run_objects(struct run *r)
{
	const double look = LOOKS_BYTES / SIZE_BYTES;
	double i = 0;

	for (unsigned int k = 0; k <= r->changes; k++) {
		const double first = r->change[k].first;
		const uint64_t samples = r->sums[TOTAL].all.samples;
		double seen;

		while (i < first)
			i = pass_objects(r, i, first);
		if (k == r->changes)
			return;
		/* the next change may come before this one was seen */
		seen = fmin(ceil((first + 1) / look) * look,
			    r->change[k + 1].first);
		while (i < seen && r->sums[TOTAL].all.samples == samples)
			i = pass_objects(r, i, seen);
		if (r->sampler.law != &r->law[r->change[k].law])
			sp_sampler_change(&r->sampler,
					  &r->law[r->change[k].law]);
	}
}

static void score_run(const struct run *r, const double *truth,
		      struct score scores[WHATS][SIMULATED_LEVELS])
{
	struct sp_estimation how = {SP_METHOD_P3, 0, NULL, 0};

	for (unsigned int w = 0; w < WHATS; w++)
		for (unsigned int l = 0; l < SIMULATED_LEVELS; l++) {
			how.confidence = simulated_levels[l];
			score_add(&scores[w][l], 1,
				  interval_holds(
					  sp_estimate_bytes(&how, &r->sums[w]),
					  truth[w]));
		}
}

static void simulate_program(const struct program *p, unsigned int runs)
{
	static struct run r;
	struct score scores[WHATS][SIMULATED_LEVELS] = {0};
	const double objects = p->objects;
	const double truth[WHATS] = {objects * SIZE_BYTES,
				     ceil(objects / EVERY) * SIZE_BYTES};
	double samples = 0;
	struct sp_rng rng;

	for (unsigned int k = 0; k < LAWS; k++)
		sp_law_init(&r.law[k], SP_LAW_EXPONENTIAL, 1024u << k);
	sp_rng_init(&rng, 20261125, (uint64_t)(p - programs));
	for (unsigned int i = 0; i < runs; i++) {
		run_begin(&r, p, &rng);
		run_objects(&r);
		samples += (double)r.sums[TOTAL].all.samples / runs;
		score_run(&r, truth, scores);
		for (unsigned int w = 0; w < WHATS; w++)
			sp_class_sums_free(&r.sums[w]);
	}
	for (unsigned int w = 0; w < WHATS; w++)
		score_put(p->name, round(samples), names[w], runs, scores[w],
			  true);
}

void simulate_periods(unsigned int scale)
{
	for (unsigned int i = 0; i < COUNT(programs); i++)
		simulate_program(&programs[i], RUNS / scale);
}
