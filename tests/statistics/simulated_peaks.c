/* SPDX-License-Identifier: MIT */
/*
 * The peak's value and rows, of small objects that four functions make in turn,
 * as a report has them: with the exact totals of what was allocated, of which
 * as many objects as the peak has are freed at once.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/estimate.h"
#include "stats/peak.h"
#include "simulated.h"
#include "support/live_profile.h"

#define PERIOD     4096u
#define SIZE_BYTES 16u
#define FUNCTIONS  4
#define SOME       2 /* functions that have as much at any time */
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

enum shape {
	RAMP,     /* all is kept */
	PLATEAU,  /* each object is freed when the n-th after it is born */
	SAWTOOTH, /* n objects, then all are freed, again and again */
	HILLS,    /* up and down, five times, never as high as the third time */
	ALIKE,    /* up and down, again and again */
	SPIKE,    /* a plateau of half the height, and once the rest on it */
};

struct program {
	const char *name;
	enum shape shape;
	unsigned int rounds;  /* lifetimes of a plateau, teeth of a saw */
	unsigned int samples; /* at the peak */
	unsigned int runs;
	bool ends_high;
};

static const struct program programs[] = {
	{"ramp", RAMP, 1, 10, 5000, true},
	{"ramp", RAMP, 1, 100, 5000, true},
	{"summit", PLATEAU, 1, 1, 5000, false},
	{"summit", PLATEAU, 1, 3, 5000, false},
	{"summit", PLATEAU, 1, 10, 5000, false},
	{"summit", PLATEAU, 1, 100, 5000, false},
	{"summit", PLATEAU, 1, 1000, 1000, false},
	{"plateau, 10 lifetimes", PLATEAU, 10, 3, 5000, false},
	{"plateau, 10 lifetimes", PLATEAU, 10, 10, 5000, false},
	{"plateau, 10 lifetimes", PLATEAU, 10, 100, 5000, false},
	{"plateau, 10 lifetimes", PLATEAU, 10, 1000, 300, false},
	{"plateau to the end", PLATEAU, 10, 10, 5000, true},
	{"plateau to the end", PLATEAU, 10, 100, 2000, true},
	{"plateau, 100 lifetimes", PLATEAU, 100, 10, 2000, false},
	{"plateau, 100 lifetimes", PLATEAU, 100, 100, 500, false},
	{"sawtooth, 10 peaks", SAWTOOTH, 10, 10, 5000, false},
	{"sawtooth, 10 peaks", SAWTOOTH, 10, 100, 5000, false},
	{"sawtooth, 1000 peaks", SAWTOOTH, 1000, 10, 500, false},
	{"hills, one a little higher", HILLS, 5, 10, 5000, false},
	{"hills, one a little higher", HILLS, 5, 100, 5000, false},
	{"two hills alike", ALIKE, 2, 10, 5000, false},
	{"two hills alike", ALIKE, 2, 100, 5000, false},
	{"twenty hills alike", ALIKE, 20, 10, 2000, false},
	{"twenty hills alike", ALIKE, 20, 100, 1000, false},
	{"spike on a plateau", SPIKE, 5, 10, 5000, false},
	{"spike on a plateau", SPIKE, 5, 100, 5000, false},
};

enum { SUMMIT = 5 }; /* of a hundred samples */

enum what { VALUE, ALL_ROWS, ROWS, TOGETHER, WHATS };

static const char *const names[WHATS] = {"the peak", "its rows added up",
					 "its rows",
					 "its rows, --simultaneous"};

struct life {
	uint64_t born_ns, freed_ns;
	uint64_t hill; /* lifetimes of a plateau, teeth, hills */
};

static double height_of(enum shape shape, uint64_t hill)
{
	static const double heights[] = {0.8, 0.9, 1, 0.95, 0.85};

	return shape == ALIKE ? 1 : heights[hill];
}

/* Of object `i`, where n are alive at the peak. */
static struct life life_of(const struct program *p, uint64_t i, uint64_t n)
{
	uint64_t begin = 0, part;
	const uint64_t half = n / 2;

	switch (p->shape) {
	case RAMP:
		return (struct life){i, SP_NEVER, 0};
	case PLATEAU:
		return (struct life){i, i + n, i / n};
	case SAWTOOTH:
		return (struct life){i, (i / n + 1) * n, i / n};
	case SPIKE:
		part = i / half;
		return (struct life){
			i, part == 4 || part == 5 ? 6 * half : i + half, part};
	case HILLS:
	case ALIKE:
		break;
	}
	for (unsigned int k = 0; k < p->rounds; k++) {
		part = (uint64_t)(height_of(p->shape, k) * (double)n);
		if (i < part)
			return (struct life){begin + i, begin + part + i, k};
		i -= part;
		begin += 2 * part;
	}
	return (struct life){SP_NEVER, SP_NEVER, 0};
}

/* Some have a quarter each, others a half by turns. */
static uint32_t function_of(uint64_t i, const struct life *life)
{
	const uint32_t k = (uint32_t)(i % FUNCTIONS);

	return k < SOME ? k : SOME + (uint32_t)(life->hill % SOME);
}

/* Bytes of each function at that time; returns those of all. */
static double bytes_at(const struct program *p, uint64_t n, uint64_t time_ns,
		       double *ret)
{
	/* Births come one a nanosecond, and nothing lives for longer. */
	uint64_t i = time_ns < n ? 0 : time_ns - n, born = 0;
	double all = 0;

	if (p->shape == RAMP)
		i = 0;
	if (p->shape == HILLS || p->shape == ALIKE)
		i /= 2;
	for (unsigned int k = 0; k < FUNCTIONS; k++)
		ret[k] = 0;
	for (; i < n * p->rounds && born <= time_ns; i++) {
		const struct life life = life_of(p, i, n);

		born = life.born_ns;
		if (born > time_ns || life.freed_ns <= time_ns)
			continue;
		ret[function_of(i, &life)] += SIZE_BYTES;
		all += SIZE_BYTES;
	}
	return all;
}

struct result {
	struct score scores[WHATS][SIMULATED_LEVELS];
	double value, squares, highest; /* sums over the runs, relative */
	double below;                   /* runs with the peak below 95 % */
};

static void record(const struct program *p, uint64_t n, struct sp_rng *rng,
		   struct live_profile *live)
{
	const double x = (double)SIZE_BYTES / PERIOD;
	const double last = (double)(n * p->rounds);

	live_profile_clear(live);
	live->profile.seed = sp_rng_next(rng);
	live->profile.duration_ns =
		n * p->rounds *
			(p->shape == HILLS || p->shape == ALIKE ? 2 : 1) +
		(p->ends_high ? 0 : n);
	for (double i = missed_objects(rng, x); i < last;
	     i += 1 + missed_objects(rng, x)) {
		const struct life life = life_of(p, (uint64_t)i, n);
		const bool stays = life.freed_ns > live->profile.duration_ns;

		if (life.born_ns == SP_NEVER)
			break;
		live_profile_add(live, life.born_ns,
				 stays ? SP_NEVER : life.freed_ns, SIZE_BYTES)
			->stack = function_of((uint64_t)i, &life);
	}
	for (double i = missed_objects(rng, x); i < (double)n;
	     i += 1 + missed_objects(rng, x))
		live_profile_add(live, 0, 0, SIZE_BYTES);
}

/* The exact totals of all that is allocated, also of what is freed at once. */
static void count_objects(const struct program *p, uint64_t n,
			  struct sp_profile *profile)
{
	uint64_t most = n * p->rounds;
	struct sp_class_total *total =
		&profile->classes[sp_format_class(SIZE_BYTES)];

	while (life_of(p, most - 1, n).born_ns == SP_NEVER)
		most--;
	most += n;
	*total = (struct sp_class_total){.bytes = most * SIZE_BYTES,
					 .objects = most};
	profile->has_classes = true;
	profile->exact_alloc_bytes = total->bytes;
	profile->exact_alloc_objects = total->objects;
}

/* As a report does with the exact totals. */
static void raise_peak(const struct sp_profile *profile,
		       const struct sp_estimation *how, struct sp_peak *peak)
{
	struct sp_selection end;
	struct sp_sums *live;

	sp_selection_init(&end);
	end.view = SP_VIEW_LIVE;
	if (sp_sums_new(profile, &end, &live, NULL))
		abort();
	sp_peak_raise(peak, sp_estimate_bytes(how, &live->all),
		      live->all.all.samples, profile->duration_ns);
	sp_sums_free(live, profile);
}

/* What was alive at the moment that the peak names, by its rows. */
static void judge_rows(const struct program *p, uint64_t n,
		       const struct sp_profile *profile, struct sp_peak peak,
		       struct result *r)
{
	struct sp_population population;
	struct sp_estimation how = {SP_METHOD_P3T, 0, &population, 0},
			     each = how;
	struct sp_selection selection;
	struct sp_sums *sums;
	unsigned int shown = 0;
	double truths[FUNCTIONS], truth;

	if (sp_population_init(&population, profile))
		abort();
	how.confidence = 0.95;
	raise_peak(profile, &how, &peak);
	truth = bytes_at(p, n, peak.time_ns, truths);
	sp_selection_init(&selection);
	selection.view = SP_VIEW_PEAK;
	selection.peak_ns = peak.rows_ns;
	if (sp_sums_new(profile, &selection, &sums, NULL))
		abort();
	for (unsigned int k = 0; k < FUNCTIONS; k++)
		shown += sums->stacks[k].all.samples > 0;
	for (unsigned int l = 0; l < SIMULATED_LEVELS; l++) {
		unsigned int held = 0, all_hold = shown > 0;

		how.confidence = simulated_levels[l];
		each.confidence = sp_confidence_of_each(how.confidence, shown);
		for (unsigned int k = 0; k < FUNCTIONS; k++) {
			const struct sp_class_sums *row = &sums->stacks[k];

			if (!row->all.samples)
				continue;
			held += interval_holds(sp_estimate_bytes(&how, row),
					       truths[k]);
			all_hold &= interval_holds(
				sp_estimate_bytes(&each, row), truths[k]);
		}
		score_add(&r->scores[ROWS][l], shown, held);
		score_add(&r->scores[TOGETHER][l], shown > 0, all_hold);
		score_add(&r->scores[ALL_ROWS][l], 1,
			  interval_holds(sp_estimate_bytes(&how, &sums->all),
					 truth));
	}
	sp_sums_free(sums, profile);
	sp_population_free(&population);
}

static void judge_run(const struct program *p, uint64_t n,
		      const struct sp_profile *profile, struct result *r)
{
	const double truth = (double)(n * SIZE_BYTES);
	struct sp_selection selection;
	struct sp_peak peak;

	sp_selection_init(&selection);
	for (unsigned int l = 0; l < SIMULATED_LEVELS; l++) {
		if (sp_peak(profile, &selection, simulated_levels[l], &peak,
			    NULL))
			abort();
		score_add(&r->scores[VALUE][l], 1,
			  interval_holds(peak.bytes, truth));
		if (simulated_levels[l] > 0.94 && simulated_levels[l] < 0.96) {
			const double value = peak.bytes.value / truth - 1;

			r->below += peak.bytes.lo > truth * (1 + 1e-9);
			r->value += value;
			r->squares += value * value;
			r->highest += peak.raw_bytes / truth - 1;
			judge_rows(p, n, profile, peak, r);
		}
	}
}

/* With the exact totals at hand. */
static bool adds_up(const struct sp_profile *profile)
{
	struct sp_population population;
	const struct sp_estimation how = {SP_METHOD_P3T, 0.95, &population, 0};
	struct sp_selection selection;
	struct sp_sums *sums;
	struct sp_peak peak;
	double value;

	sp_selection_init(&selection);
	if (sp_peak(profile, &selection, how.confidence, &peak, NULL))
		abort();
	selection.view = SP_VIEW_PEAK;
	selection.peak_ns = peak.rows_ns;
	if (sp_population_init(&population, profile) ||
	    sp_sums_new(profile, &selection, &sums, NULL))
		abort();
	value = sp_estimate_bytes_value(&how, &sums->all);
	sp_sums_free(sums, profile);
	sp_population_free(&population);
	return fabs(value / peak.rows_bytes.value - 1) < 1e-9;
}

static void live_init(struct live_profile *live, const struct program *p)
{
	static struct sp_stack stacks[FUNCTIONS];
	const uint64_t n = (uint64_t)p->samples * PERIOD / SIZE_BYTES;

	live_profile_init(live, PERIOD, 0);
	live->profile.stacks = stacks;
	live->profile.n_stacks = FUNCTIONS;
	count_objects(p, n, &live->profile);
}

static void simulate_peak(const struct program *p, unsigned int runs)
{
	const uint64_t n = (uint64_t)p->samples * PERIOD / SIZE_BYTES;
	struct result r = {0};
	struct live_profile live;
	struct sp_rng rng;
	double mean;

	live_init(&live, p);
	sp_rng_init(&rng, 20261124, (uint64_t)(p - programs));
	for (unsigned int i = 0; i < runs; i++) {
		record(p, n, &rng, &live);
		judge_run(p, n, &live.profile, &r);
	}
	live_profile_free(&live);
	mean = r.value / runs;
	printf("bias\t%s\t%u\t%u\t%.5f\t%.5f\t%.5f\t%.5f\n", p->name,
	       p->samples, runs, r.highest / runs, mean,
	       sqrt((r.squares / runs - mean * mean) / runs), r.below / runs);
	for (unsigned int w = 0; w < WHATS; w++)
		score_put(p->name, p->samples, names[w], runs, r.scores[w],
			  true);
}

void simulate_peaks(unsigned int scale)
{
	for (unsigned int i = 0; i < COUNT(programs); i++)
		simulate_peak(&programs[i], programs[i].runs / scale);
}

/* Of a single summit, before which nothing is freed (E47). */
void simulate_sums(unsigned int scale)
{
	const struct program *p = &programs[SUMMIT];
	struct live_profile live;
	struct sp_rng rng;
	unsigned int wrong = 0;

	live_init(&live, p);
	sp_rng_init(&rng, 20261125, 0);
	for (unsigned int i = 0; i < p->runs / scale; i++) {
		record(p, (uint64_t)p->samples * PERIOD / SIZE_BYTES, &rng,
		       &live);
		wrong += !adds_up(&live.profile);
	}
	live_profile_free(&live);
	if (wrong)
		claim_fails(p->name, "rows add up to the peak");
}
