/* SPDX-License-Identifier: MIT */
/* Tables of functions that share size classes, with exact class totals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/estimate.h"
#include "simulated.h"

#define PERIOD        4096u
#define FUNCTIONS_MAX 1000
#define WIDTH_RUNS    20 /* are enough for widths */
#define COUNT(a)      (sizeof(a) / sizeof((a)[0]))

enum what { SHOWN, ONE_SAMPLE, ALL_FUNCTIONS, TOGETHER, WHATS };

static const char *const names[WHATS] = {"rows shown", "rows of one sample",
					 "all functions",
					 "all rows shown, --simultaneous"};

/* Functions of one size each, and others that are in no row. */
struct function {
	uint64_t size_bytes;
	double objects;
};

struct table {
	const char *name;
	unsigned int runs;
	unsigned int functions;
	struct function function[FUNCTIONS_MAX + 1]; /* the last: the others */
};

/* 574 bytes each are 0.14 periods, in a class of 17. */
static void make_rare(struct table *t)
{
	t->name = "60 functions of 0.14 periods, a class of 17";
	t->runs = 4000;
	t->functions = 60;
	for (unsigned int i = 0; i < t->functions; i++)
		t->function[i] = (struct function){41, 14};
	t->function[t->functions] = (struct function){41, 858};
}

static void make_tiny(struct table *t)
{
	t->name = "1000 functions of 0.01 periods, a class of 27";
	t->runs = 4000;
	t->functions = 1000;
	for (unsigned int i = 0; i < t->functions; i++)
		t->function[i] = (struct function){41, 1};
	t->function[t->functions] = (struct function){41, 1700};
}

/* 16 bytes to 2 periods, bytes as 1 / rank. */
static void make_ranks(struct table *t)
{
	t->name = "200 functions by 1/rank, sizes 16 B to 2 periods";
	t->runs = 1000;
	t->functions = 200;
	for (unsigned int i = 0; i < t->functions; i++) {
		const uint64_t z = 16u << (7 * i) % 10;
		const double bytes = 60.0 * PERIOD / (i + 1);

		t->function[i] =
			(struct function){z, fmax(1, round(bytes / (double)z))};
	}
	t->function[t->functions] = (struct function){64, 640};
}

static double bytes_of(const struct function *f)
{
	return f->objects * (double)f->size_bytes;
}

static void population_of(const struct table *t, struct sp_population *ret)
{
	static struct sp_profile profile;

	profile = (struct sp_profile){.has_classes = true,
				      .period_bytes = PERIOD};
	for (unsigned int i = 0; i <= t->functions; i++) {
		const struct function *f = &t->function[i];
		struct sp_class_total *total =
			&profile.classes[sp_format_class(f->size_bytes)];

		total->objects += (uint64_t)f->objects;
		total->bytes += (uint64_t)bytes_of(f);
		profile.exact_alloc_bytes += (uint64_t)bytes_of(f);
	}
	if (sp_population_init(ret, &profile) < 0 || !ret->has_totals)
		abort();
}

static void record(const struct function *f, struct sp_rng *rng,
		   struct sp_class_sums *sums, struct sp_class_sums *all)
{
	const struct sp_law_used law = {.always_large = true};
	const double x = (double)f->size_bytes / PERIOD;

	for (double i = missed_objects(rng, x); i < f->objects;
	     i += 1 + missed_objects(rng, x))
		if (sp_class_sums_add(sums, &law, f->size_bytes, 0, PERIOD) <
			    0 ||
		    sp_class_sums_add(all, &law, f->size_bytes, 0, PERIOD) < 0)
			abort();
}

/* Widths of the rows of two samples and more, added up: each by itself; with
 * all others; with all others, if rows of one sample counted as well. */
struct widths {
	double alone, together, with_all;
};

static double width_of(const struct sp_population *population,
		       const struct sp_class_sums *row, double confidence,
		       unsigned int samples_min)
{
	const struct sp_estimation how = {SP_METHOD_P3T, confidence, population,
					  samples_min};
	const struct sp_interval i = sp_estimate_bytes(&how, row);

	return i.hi - i.lo;
}

static void add_widths(const struct table *t, const struct sp_class_sums *rows,
		       const struct sp_population *population,
		       double confidence, struct widths *sum)
{
	unsigned int counted = 0, shown = 0;

	for (unsigned int i = 0; i < t->functions; i++) {
		counted += rows[i].all.samples >= 2;
		shown += rows[i].all.samples > 0;
	}
	for (unsigned int i = 0; i < t->functions; i++) {
		if (rows[i].all.samples < 2)
			continue;
		sum->alone += width_of(population, &rows[i], confidence, 0);
		sum->together +=
			width_of(population, &rows[i],
				 sp_confidence_of_each(confidence, counted), 2);
		sum->with_all +=
			width_of(population, &rows[i],
				 sp_confidence_of_each(confidence, shown), 0);
	}
}

static void judge_level(const struct table *t, const struct sp_class_sums *rows,
			const struct sp_population *population,
			unsigned int level,
			struct score scores[WHATS][SIMULATED_LEVELS])
{
	const double confidence = simulated_levels[level];
	struct sp_estimation how = {SP_METHOD_P3T, confidence, population, 0};
	struct sp_estimation each = {SP_METHOD_P3T, confidence, population, 2};
	unsigned int asked[WHATS] = {0}, held[WHATS] = {0}, counted = 0;
	/* the same for all of which there is no sample */
	const struct sp_interval of_nothing = sp_estimate_bytes(
		&how,
		&(struct sp_class_sums){.all = {.period_bytes = PERIOD,
						.period_min_bytes = PERIOD}});

	for (unsigned int i = 0; i < t->functions; i++)
		counted += rows[i].all.samples >= each.samples_min;
	for (unsigned int i = 0; i < t->functions; i++)
		asked[SHOWN] += rows[i].all.samples > 0;
	each.confidence = sp_confidence_of_each(confidence, counted);
	asked[ALL_FUNCTIONS] = t->functions;
	asked[TOGETHER] = held[TOGETHER] = 1;
	for (unsigned int i = 0; i < t->functions; i++) {
		const double truth = bytes_of(&t->function[i]);
		const bool holds = interval_holds(
			rows[i].all.samples ? sp_estimate_bytes(&how, &rows[i])
					    : of_nothing,
			truth);

		held[ALL_FUNCTIONS] += holds;
		if (!rows[i].all.samples)
			continue;
		held[SHOWN] += holds;
		if (rows[i].all.samples == 1) {
			asked[ONE_SAMPLE]++;
			held[ONE_SAMPLE] += holds;
		}
		held[TOGETHER] &= interval_holds(
			sp_estimate_bytes(&each, &rows[i]), truth);
	}
	for (unsigned int w = 0; w < WHATS; w++)
		score_add(&scores[w][level], asked[w], held[w]);
}

/* Only the rows that count are compared, and they are no wider for that. */
static void put_widths(const struct table *t, double confidence,
		       const struct widths *w)
{
	if (!(w->alone > 0))
		return;
	printf("width\t%s\t%g\t%.3f\t%.3f\n", t->name, confidence,
	       w->together / w->alone, w->with_all / w->alone);
	if (w->together > w->with_all * 1.001)
		claim_fails(t->name, "--simultaneous is too wide");
}

static void simulate_table(const struct table *t, unsigned int runs)
{
	static struct sp_class_sums rows[FUNCTIONS_MAX + 1];
	struct score scores[WHATS][SIMULATED_LEVELS] = {0};
	struct widths widths[SIMULATED_LEVELS] = {0};
	struct sp_population population;
	double samples = 0;
	struct sp_rng rng;

	population_of(t, &population);
	sp_rng_init(&rng, 20261123, t->functions);
	for (unsigned int run = 0; run < runs; run++) {
		sp_class_sums_free(&population.all);
		sp_class_sums_init(&population.all, PERIOD);
		for (unsigned int i = 0; i <= t->functions; i++) {
			sp_class_sums_init(&rows[i], PERIOD);
			record(&t->function[i], &rng, &rows[i],
			       &population.all);
		}
		samples += (double)population.all.all.samples / runs;
		for (unsigned int l = 0; l < SIMULATED_LEVELS; l++)
			judge_level(t, rows, &population, l, scores);
		for (unsigned int l = 0;
		     run < WIDTH_RUNS && l < SIMULATED_LEVELS; l++)
			add_widths(t, rows, &population, simulated_levels[l],
				   &widths[l]);
		for (unsigned int i = 0; i <= t->functions; i++)
			sp_class_sums_free(&rows[i]);
	}
	sp_population_free(&population);
	for (unsigned int l = 0; l < SIMULATED_LEVELS; l++)
		put_widths(t, simulated_levels[l], &widths[l]);
	for (unsigned int w = 0; w < WHATS; w++)
		score_put(t->name, round(samples), names[w], runs, scores[w],
			  w != ONE_SAMPLE);
}

void simulate_tables(unsigned int scale)
{
	static void (*const make[])(struct table *) = {make_rare, make_tiny,
						       make_ranks};
	static struct table table;

	for (unsigned int i = 0; i < COUNT(make); i++) {
		make[i](&table);
		simulate_table(&table, table.runs / scale);
	}
}
