/* SPDX-License-Identifier: MIT */
/*
 * Intervals of 136 simulated programs, and computed coverage of equal objects.
 * False alarm: 1e-6; 3 s.
 *
 * coverage [--full | SUBSET]: do the intervals contain the truth as often as
 * they say?  SUBSET: only where the subset's objects have such sizes, or
 * "exact", "rows" or "apart".
 *
 * Claims.  The estimates of bytes and objects are unbiased (E3).  Of the
 * intervals at a confidence c, at least a share c contains the truth: bytes
 * (E8), also with class totals (E10), negative binomial limits with s + 1 above
 * (E6), shares (E12), two periods (E9); objects (E11) at least c - (1 - c)/10
 * for c up to 0.99.
 *
 * H0, for each cell of a grid of programs: the claims hold.  Objects pass
 * through the agent's sampler; only misses are passed over many at a time.
 *
 * Equal objects that are left to chance need no random numbers: the coverage of
 * (E8) for them is computed, and may not be less than c.  So is that of rows
 * that share a size class with others (E10, E40), at c from 0.9 to 0.9999: of
 * those that are shown, which is to have a sample (E41), at least a share c
 * contains the truth.  And of rows with ten samples and more, intervals at 95 %
 * are no wider than those of E10 without E40 and E41 but for what
 * width_allowed() says.  So is that of upper limits of rows that have most of a
 * class and something elsewhere (E74), whose intervals are narrower than with a
 * whole phantom.  For the rest:
 *
 * Statistics, from n runs of each program with fixed seeds: the number of
 * intervals that contain the truth, binomial(n, c) at worst; z = (mean estimate
 * - truth) / its exact standard error.
 *
 * alpha: a count that is less than 1e-9 likely under H0, |z| > 6 (2e-9): below
 * 1e-6 for the cells of the short form together, for fresh seeds.
 *
 * Power of the short form, n = 1000: a coverage of 0.88 instead of 0.95 is
 * rejected in a single cell with probability 0.99; a bias by 27 % of one run's
 * standard deviation with 0.99.  Of the full form, n = 20000: 0.936 with 0.99.
 *
 * Prints a line for each cell; tests/statistics/coverage_table.py makes the
 * tables of docs/measurements.txt of them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apart.h"
#include "exact.h"
#include "measure.h"
#include "stats/special.h"
#include "rows.h"

#define ALPHA 1e-9
#define Z_MAX 6.0

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BIT(answer)  (1u << (answer))

/* Alone in its program: the sizes of its objects are what matters. */
static const struct workload alone[] = {
	{"16 B", SIZES_FIXED, 16, 0},
	{"4 KiB", SIZES_FIXED, 4096, 0},
	{"R/4", SIZES_FIXED, PERIOD / 4, 0},
	{"R", SIZES_FIXED, PERIOD, 0},
	{"2 R", SIZES_FIXED, 2 * PERIOD, 0},
	{"3 R", SIZES_FIXED, 3 * PERIOD, 0},
	{"4 R", SIZES_FIXED, 4 * PERIOD, 0},
	{"10 R", SIZES_FIXED, 10 * PERIOD, 0},
	{"single object", SIZES_SINGLE, 0, 0},
	{"Pareto 0.8", SIZES_PARETO, 0.8, 0},
	{"Pareto 1.1", SIZES_PARETO, 1.1, 0},
	{"Pareto 1.5", SIZES_PARETO, 1.5, 0},
	{"lognormal 2", SIZES_LOGNORMAL, 2, 0},
	{"lognormal 3", SIZES_LOGNORMAL, 3, 0},
	{"16 B and 3 R", SIZES_PAIR, 16, 3 * PERIOD},
	{"1 B and 4 KiB", SIZES_PAIR, 1, 4096},
	{"8 B and one large", SIZES_JEMALLOC, 0, 0},
	{"periodic", SIZES_PERIODIC, 4096, 0},
};

/* A subset and the rest, for class totals and shares. */
static const struct {
	struct workload subset, rest;
} pairs[] = {
	{{"16 B", SIZES_FIXED, 16, 0}, {"16 B", SIZES_FIXED, 16, 0}},
	{{"R", SIZES_FIXED, PERIOD, 0}, {"R", SIZES_FIXED, PERIOD, 0}},
	{{"4 R", SIZES_FIXED, 4 * PERIOD, 0},
	 {"4 R", SIZES_FIXED, 4 * PERIOD, 0}},
	{{"16 B", SIZES_FIXED, 16, 0}, {"Pareto 1.1", SIZES_PARETO, 1.1, 0}},
	{{"Pareto 1.1", SIZES_PARETO, 1.1, 0},
	 {"Pareto 1.1", SIZES_PARETO, 1.1, 0}},
	{{"16 B and 3 R", SIZES_PAIR, 16, 3 * PERIOD},
	 {"16 B and 3 R", SIZES_PAIR, 16, 3 * PERIOD}},
	{{"16 B and 3 R", SIZES_PAIR, 16, 3 * PERIOD},
	 {"Pareto 1.1", SIZES_PARETO, 1.1, 0}},
	{{"lognormal 2", SIZES_LOGNORMAL, 2, 0},
	 {"Pareto 0.8", SIZES_PARETO, 0.8, 0}},
};

/* The extent of a form; lists end with 0. */
struct form {
	double alone_periods[12];
	double pair_periods[6];
	double shares[7];
	unsigned int replicates;
	double all_levels_every; /* ... periods that divide by this */
};

static const struct form short_form = {
	{0.3, 3, 30, 300}, {10, 100}, {0.05, 0.5, 0.95}, 1000, 0,
};

static const struct form full_form = {
	{0.1, 0.3, 1, 2, 3, 5, 10, 30, 100, 1000, 10000},
	{3, 10, 30, 100, 1000},
	{0.01, 0.05, 0.2, 0.5, 0.8, 0.95},
	20000,
	10,
};

static unsigned int cells, failures;

/* P(fewer than `covered` of n) under H0 is not below alpha. */
static bool is_enough(unsigned int covered, unsigned int n, double claim)
{
	if (covered == n)
		return true;
	return sp_special_beta_lower(n - covered, covered + 1.0, 1 - claim) >=
	       ALPHA;
}

static void judge(const struct question *q, const struct measured *m,
		  enum answer a, unsigned int l)
{
	const double claim = answer_claim(a, levels[l]);
	const bool fails =
		claim > 0 && !is_enough(m->covered[a][l], m->replicates, claim);

	failures += fails;
	printf("%c,%s,%s,%g,%g,%s,%g,%u,%u,%.6g,%.6g\n", fails ? '!' : ' ',
	       q->subset->name, q->rest ? q->rest->name : "", q->periods,
	       q->share, answer_name(a), levels[l], m->replicates,
	       m->covered[a][l], m->width[a][l], m->samples);
}

static void judge_bias(const struct question *q, const char *what, double z)
{
	if (fabs(z) <= Z_MAX)
		return;
	failures++;
	printf("!,%s,%s,%g,%g,bias of %s,z = %.1f\n", q->subset->name,
	       q->rest ? q->rest->name : "", q->periods, q->share, what, z);
}

/* Programs of many samples are slow, and a quarter of the runs will do. */
static void ask(const struct question *q, unsigned int replicates)
{
	struct measured m;

	if (q->periods > 300)
		replicates /= 4;

	if (!measure(q, replicates, 20261121 + cells, &m))
		return;
	cells++;
	for (enum answer a = 0; a < ANSWERS; a++)
		for (unsigned int l = 0; l < q->levels; l++)
			if (q->answers & BIT(a))
				judge(q, &m, a, l);
	judge_bias(q, "bytes", m.z_bytes);
	judge_bias(q, "objects", m.z_objects);
	fflush(stdout);
}

static void ask_alone(const struct form *f, const struct workload *w)
{
	struct question q = {.subset = w, .share = 1};

	for (const double *n = f->alone_periods; *n > 0; n++) {
		q.periods = *n;
		q.levels = f->all_levels_every > 0 &&
					   !(fmod(*n, f->all_levels_every) > 0)
				   ? LEVELS
				   : 1;
		q.two_periods = false;
		q.answers = BIT(ANSWER_P3) | BIT(ANSWER_NEGBINOM) |
			    BIT(ANSWER_AS_WRITTEN) | BIT(ANSWER_OBJECTS);
		ask(&q, f->replicates);
		if (w->sizes != SIZES_PAIR && w->sizes != SIZES_PARETO)
			continue;
		q.two_periods = true;
		q.levels = 1;
		q.answers = BIT(ANSWER_P3) | BIT(ANSWER_OBJECTS);
		ask(&q, f->replicates);
	}
}

static void ask_pair(const struct form *f, const struct workload *subset,
		     const struct workload *rest)
{
	struct question q = {.subset = subset, .rest = rest, .levels = 1};

	q.answers = BIT(ANSWER_P3) | BIT(ANSWER_P3T) | BIT(ANSWER_SHARE) |
		    BIT(ANSWER_OBJECTS) | BIT(ANSWER_OBJECTS_P3T);
	for (const double *n = f->pair_periods; *n > 0; n++) {
		for (const double *share = f->shares; *share > 0; share++) {
			q.periods = *n;
			q.share = *share;
			ask(&q, f->replicates);
		}
		/* As after SIGKILL: close to the most that is still used. */
		q.late = sqrt(*n) / 11;
		q.share = 0.5;
		ask(&q, f->replicates);
		q.late = 0;
	}
}

/* Equal objects of so many periods. */
static const double equal[] = {0.001, 0.01, 0.05, 0.1, 0.25, 0.5,
			       0.75,  1,    1.5,  2,   2.5,  3,
			       3.5,   4,    4.25, 4.5, 4.6};

/* The least coverage over numbers of equal objects, at one level. */
static void ask_exactly(double x, double confidence, uint64_t n_max,
			double growth)
{
	const uint64_t size = (uint64_t)(x * PERIOD);
	uint64_t worst_n = 0;
	double worst = 1;
	bool fails;

	for (uint64_t n = 1; n <= n_max;
	     n = n < 10 ? n + 1 : (uint64_t)((double)n * growth) + 1) {
		const double c = exact_coverage(size, n, confidence);

		if (c < worst) {
			worst = c;
			worst_n = n;
		}
	}
	fails = worst < confidence - 1e-9;
	failures += fails;
	cells++;
	printf("%c,exact,%g,%g,%.5f,%llu\n", fails ? '!' : ' ', x, confidence,
	       worst, (unsigned long long)worst_n);
}

static void ask_all_exactly(bool full)
{
	for (size_t i = 0; i < COUNT(equal); i += full ? 1 : 2)
		for (unsigned int l = 0; l < LEVELS; l++)
			ask_exactly(equal[i], levels[l], full ? 4000 : 500,
				    full ? 1.05 : 1.3);
}

/* Of a row with ten samples and more: what (E10) alone gave it. */
static const struct {
	struct row_of_class row;
	double width; /* mean at 95 %, in periods */
} old_widths[] = {
	{{40, 17, 10}, 8.7645},
	{{40, 17, 13.6}, 7.2996},
	{{40, 17, 16.83}, 3.8271},
	{{40, 40, 10}, 11.6596},
	{{40, 40, 32}, 10.8503},
	{{40, 100, 10}, 12.7526},
	{{40, 100, 20}, 16.6504},
	{{40, 100, 50}, 20.5523},
	{{40, 100, 95}, 9.5643},
	{{40, 1000, 10}, 13.3718},
	{{40, 1000, 50}, 28.0241},
	{{PERIOD / 4, 17, 13.6}, 6.9709},
	{{PERIOD / 4, 40, 20}, 12.7043},
	{{PERIOD / 4, 100, 50}, 19.4983},
	{{PERIOD / 4, 1000, 20}, 17.4646},
	{{PERIOD, 40, 20}, 10.7790},
	{{PERIOD, 100, 50}, 16.5662},
	{{PERIOD, 100, 95}, 7.3516},
	{{PERIOD, 1000, 50}, 22.2568},
	{{2 * PERIOD, 100, 50}, 11.4244},
	{{4 * PERIOD, 1000, 50}, 8.0560},
};

/* Objects of a period and more that are unseen are few, and where there are
 * more or fewer than expected, that is now allowed for. */
static double width_allowed(uint64_t size_bytes)
{
	return size_bytes < PERIOD ? 1.002 : size_bytes == PERIOD ? 1.01 : 1.02;
}

static void ask_old_widths(void)
{
	for (size_t i = 0; i < COUNT(old_widths); i++) {
		const struct row_of_class *row = &old_widths[i].row;
		struct row_result r;
		double ratio;
		bool fails;

		if (!measure_row(row, &r))
			continue;
		ratio = r.width / old_widths[i].width;
		fails = ratio > width_allowed(row->size_bytes);
		failures += fails;
		cells++;
		printf("%c,width,%llu,%g,%g,%.4f,%.4f\n", fails ? '!' : ' ',
		       (unsigned long long)row->size_bytes, row->class_periods,
		       row->row_periods, r.width, ratio);
	}
}

static void ask_row(const struct row_of_class *row)
{
	struct row_result r;

	if (!measure_row(row, &r))
		return;
	for (unsigned int l = 0; l < ROW_LEVELS; l++) {
		const double least = 1 - row_levels[l];
		const double missed = r.too_high[l] + r.too_low[l];
		/* rare outcomes are left out, and others thinned */
		const bool fails = missed > least * 1.01 + 1e-8;

		failures += fails;
		cells++;
		printf("%c,row,%llu,%g,%g,%g,%.6f,%.2e,%.2e\n",
		       fails ? '!' : ' ', (unsigned long long)row->size_bytes,
		       row->class_periods, row->row_periods, row_levels[l],
		       1 - missed, r.too_high[l], r.too_low[l]);
	}
}

/* Of a class: a row's periods, or its share of the class. */
static const double of_class[] = {0.003, 0.03, 0.14, 0.5, 1, 2, 3, 5, 10, 20};
static const double share_of_class[] = {0.5, 0.8, 0.95, 0.99, 0.999};

static void ask_class(uint64_t size_bytes, double class_periods, bool full)
{
	struct row_of_class row = {size_bytes, class_periods, 0};

	for (size_t i = 0; i < COUNT(of_class); i += full ? 1 : 2) {
		row.row_periods = of_class[i];
		ask_row(&row);
	}
	if (class_periods > 150)
		return;
	for (size_t i = 0; i < COUNT(share_of_class); i++) {
		row.row_periods = share_of_class[i] * class_periods;
		ask_row(&row);
	}
}

static void ask_rows(bool full)
{
	static const uint64_t sizes[] = {40,         PERIOD / 4, PERIOD,
					 2 * PERIOD, 3 * PERIOD, 4 * PERIOD};
	static const double classes[] = {17, 40, 100, 1000};

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t k = 0; k < COUNT(classes); k += full ? 1 : 3)
			ask_class(sizes[i], classes[k], full);
	ask_old_widths();
}

/* Most of a class, and something elsewhere (E74).  `width`: what (E17) gave
 * with a whole phantom and nothing else. */
static const struct {
	struct row_apart row;
	double width;
} apart[] = {
	{{PERIOD, 20, 10, 12}, 8.9317},     {{PERIOD, 20, 14, 12}, 9.2994},
	{{PERIOD, 20, 18, 12}, 8.3312},     {{PERIOD, 40, 39, 12}, 7.9982},
	{{3 * PERIOD, 20, 10, 12}, 7.2329}, {{3 * PERIOD, 20, 18, 12}, 6.7737},
};

static void ask_apart(void)
{
	for (size_t i = 0; i < COUNT(apart); i++) {
		const struct row_apart *row = &apart[i].row;
		struct apart_result r;
		bool fails;

		measure_apart(row, &r);
		fails = r.width > apart[i].width;
		failures += fails;
		cells++;
		printf("%c,apart,%llu,%u,%u,width,%.4f,%.4f\n",
		       fails ? '!' : ' ', (unsigned long long)row->size_bytes,
		       row->objects, row->of_row, r.width,
		       r.width / apart[i].width);
		for (unsigned int l = 0; l < ROW_LEVELS; l++) {
			const double half = (1 - row_levels[l]) / 2;

			fails = r.too_low[l] > half * 1.02;
			failures += fails;
			cells++;
			printf("%c,apart,%llu,%u,%u,%g,%.2e,%.2f,%.2f\n",
			       fails ? '!' : ' ',
			       (unsigned long long)row->size_bytes,
			       row->objects, row->of_row, row_levels[l],
			       r.too_low[l], r.too_low[l] / half,
			       r.elsewhere[l]);
		}
	}
}

static bool is_wanted(const char *only, const char *name)
{
	return !only || !strcmp(only, name);
}

int main(int argc, char **argv)
{
	const bool full = argc == 2 && !strcmp(argv[1], "--full");
	const struct form *f = full ? &full_form : &short_form;
	const char *only = argc == 2 && !full ? argv[1] : NULL;

	if (argc > 2)
		return 2;
	puts("#,subset,rest,periods,share,answer,confidence,replicates,covered,"
	     "width,samples");
	for (size_t i = 0; i < COUNT(alone); i++)
		if (is_wanted(only, alone[i].name))
			ask_alone(f, &alone[i]);
	for (size_t i = 0; i < COUNT(pairs); i++)
		if (is_wanted(only, pairs[i].subset.name))
			ask_pair(f, &pairs[i].subset, &pairs[i].rest);
	if (is_wanted(only, "exact"))
		ask_all_exactly(full);
	if (is_wanted(only, "rows"))
		ask_rows(full);
	if (is_wanted(only, "apart"))
		ask_apart();
	printf("# %u cells, %u failures\n", cells, failures);
	if (!cells)
		return 2;
	return failures ? 1 : 0;
}
