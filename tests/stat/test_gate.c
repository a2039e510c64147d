/* SPDX-License-Identifier: MIT */
/*
 * Claims.  Of programs that did not change, the check calls at most 1 in 200 a
 * regression by one limit on an estimate, and 1 in 100 by a limit on each
 * function (E27 to E31), with one run on each side and a program that always
 * does the same, and with five runs on each side and a program that does not.
 * A growth that the check says it would find with 95 % is found as often (E32),
 * a new function of that size too, and with the variance that is said to be
 * needed no change is seen to be none (E33).
 *
 * H0, for each kind of program: the rate of false alarms is p0 = 0.005, or
 * 0.01; the rate of detection is 0.95.  Limits allow no growth at all (+0%),
 * which is where an unchanged program is closest to a false alarm.
 *
 * Statistics, from n = PAIRS pairs of simulated recordings with fixed seeds,
 * through the agent's own sampler: the number of regressions, binomial(n, p0)
 * at worst; the number of detections, binomial(n, 0.95) but for 0.02 that the
 * normal approximation of (E32) may be off.
 *
 * alpha: for n = 300 more than 10 of 0.005 has probability 1e-6, more than 14
 * of 0.01 7e-7, fewer than 258 of 0.93 1e-5; the 18 statistics make 1e-4.  Long
 * form: SAMPLEPROF_TEST_PAIRS=20000, with bounds at the same z.
 *
 * Power: a rate of false alarms of 0.12 instead of 0.01 is rejected with
 * probability 1 - 2e-5, detection of 0.75 instead of 0.95 with 1 - 1e-5; the
 * long form tells 0.015 from 0.01, and 0.91 from 0.95.
 *
 * Negative control: runs of a program with noise, taken for one long run on
 * each side, so that the noise is not seen, must raise false alarms.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gate/check.h"
#include "one_thread.h"
#include "support/gate_runs.h"

#define R     4096u
#define SITES 60
#define RUNS  5

static unsigned int pairs = 300;

/* What a program does: objects of each function, of one size each. */
struct program {
	unsigned int count[SITES];
	uint64_t size_bytes[SITES];
	double noise; /* relative standard deviation of each count, per run */
};

/* Shares fall as 1/rank, sizes go from 64 bytes to two periods. */
static struct program zipf(double samples, double noise)
{
	static const uint64_t sizes[] = {64, 128, 512, 1024, R / 2, 2 * R};
	struct program p = {.noise = noise};
	double sum = 0;

	for (unsigned int i = 0; i < SITES; i++)
		sum += 1.0 / (i + 1);
	for (unsigned int i = 0; i < SITES; i++) {
		p.size_bytes[i] = sizes[i % 6];
		p.count[i] = (unsigned int)(samples * R / sum / (i + 1) /
					    (double)sizes[i % 6]);
	}
	return p;
}

static struct sp_rng rng;

static double uniform(void)
{
	return ((double)(sp_rng_next(&rng) >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* One recording of the program; a new seed each time. */
static void record(const struct program *p, struct sp_acc *accs)
{
	static const struct sp_law_used used = {.always_large = true};
	static uint64_t seed;
	struct sp_law law;
	uint64_t offset;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, R);
	thread_begin(&law, ++seed, 1);
	for (unsigned int i = 0; i < SITES; i++) {
		double n = p->count[i];

		sp_acc_init(&accs[i], R);
		if (p->noise > 0)
			n *= exp(p->noise * normal() - p->noise * p->noise / 2);
		for (unsigned int k = 0; k < (unsigned int)nearbyint(n); k++)
			if (thread_allocate(p->size_bytes[i], &offset))
				sp_acc_add(&accs[i], &used, p->size_bytes[i],
					   offset, R);
	}
}

static struct sp_summary *summary_of(const struct sp_acc *accs,
				     struct sp_paths *paths)
{
	struct sp_summary *run = gate_run_new(R);
	char name[32];

	for (unsigned int i = 0; i < SITES; i++) {
		snprintf(name, sizeof(name), "site%u<main", i);
		gate_run_add(run, paths, SP_VIEW_ALLOC, name, &accs[i]);
	}
	return run;
}

/* A side of n recordings, or of one that is all of them together. */
static void make_side(const struct program *p, unsigned int n, bool as_one,
		      struct sp_paths *paths, struct sp_side *side,
		      struct sp_summary **runs)
{
	struct sp_acc sum[SITES], accs[SITES];

	for (unsigned int i = 0; i < n; i++) {
		record(p, accs);
		if (!as_one)
			runs[i] = summary_of(accs, paths);
		for (unsigned int k = 0; k < SITES; k++) {
			if (!i)
				sum[k] = accs[k];
			else
				sp_acc_merge(&sum[k], &accs[k]);
		}
	}
	if (as_one)
		runs[0] = summary_of(sum, paths);
	*side = (struct sp_side){runs, as_one ? 1 : n};
}

struct experiment {
	const struct program *old, *new;
	unsigned int runs; /* on each side */
	bool as_one;
	const char *limits[3]; /* up to the first NULL */
	/* results: verdicts of each limit */
	unsigned int regressions[3], passes[3];
	double detectable[3], new_bytes; /* means of what was said */
};

static void one_pair(struct experiment *e, const struct sp_limits *limits)
{
	struct sp_summary *old[RUNS], *new[RUNS];
	struct sp_paths paths = {0};
	struct sp_pair pair = {.paths = &paths};
	struct sp_check *check;
	struct sp_error err;

	make_side(e->old, e->runs, e->as_one, &paths, &pair.old, old);
	make_side(e->new, e->runs, e->as_one, &paths, &pair.new, new);
	assert_int_equal(sp_check_new(&pair, limits, false, &check, &err), 0);
	for (size_t i = 0; i < check->n_findings; i++) {
		const struct sp_finding *f = &check->findings[i];

		e->regressions[i] += f->verdict == SP_VERDICT_REGRESSION;
		e->passes[i] += f->verdict == SP_VERDICT_PASS;
		e->detectable[i] += f->detectable / pairs;
		if (f->n_tests)
			e->new_bytes += f->new_site_bytes / pairs;
	}
	sp_check_free(check);
	for (size_t i = 0; i < pair.old.n; i++)
		sp_summary_free(old[i]);
	for (size_t i = 0; i < pair.new.n; i++)
		sp_summary_free(new[i]);
	sp_paths_done(&paths);
}

static void run(struct experiment *e)
{
	struct sp_limits limits = {0};
	struct sp_error err;

	for (int i = 0; i < 3 && e->limits[i]; i++)
		assert_int_equal(sp_limits_add(&limits, e->limits[i], &err), 0);
	for (unsigned int i = 0; i < pairs; i++)
		one_pair(e, &limits);
	sp_limits_done(&limits);
}

/* n p0 and 4.8 standard deviations, and 3 for the skewness of rare ones. */
static unsigned int most_of(double p0)
{
	return (unsigned int)(pairs * p0 + 4.8 * sqrt(pairs * p0) + 3);
}

static void assert_alarms(const char *what, unsigned int count, double p0)
{
	print_message("%s: %u alarms in %u pairs, at most %.1f expected\n",
		      what, count, pairs, pairs * p0);
	assert_true(count <= most_of(p0));
}

static void assert_found(const char *what, unsigned int count)
{
	print_message("%s: found in %u of %u pairs\n", what, count, pairs);
	assert_true(count >= 0.93 * pairs - 4.5 * sqrt(pairs * 0.07));
}

static void test_nothing_changed(void **state)
{
	static const double samples[] = {30, 300, 3000};

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct program p = zipf(samples[i], 0);
		struct experiment e = {.old = &p,
				       .new = &p,
				       .runs = 1,
				       .as_one = false,
				       .limits = {"sites=+0%",
						  "site(^site0$)=+0%",
						  "sites=+-0%"}};
		char what[64];

		run(&e);
		snprintf(what, sizeof(what), "%g samples", samples[i]);
		assert_alarms(what, e.regressions[0], 0.01);
		assert_alarms("  one function", e.regressions[1], 0.005);
		assert_alarms("  both ways", e.regressions[2], 0.01);
	}
}

static void test_nothing_but_noise(void **state)
{
	const struct program p = zipf(1500, 0.1);
	struct experiment e = {.old = &p,
			       .new = &p,
			       .runs = RUNS,
			       .as_one = false,
			       .limits = {"sites=+0%", "site(^site0$)=+0%",
					  "site(^site[1-9]$)=+-0%"}};
	struct experiment blind = {
		.old = &p,
		.new = &p,
		.runs = RUNS,
		.as_one = true,
		.limits = {"sites=+0%", "site(^site0$)=+0%"}};

	(void)state;
	run(&e);
	assert_alarms("noise of 10 %", e.regressions[0], 0.01);
	assert_alarms("  one function", e.regressions[1], 0.005);
	assert_alarms("  nine functions", e.regressions[2], 0.01);
	run(&blind);
	print_message("noise that is not looked at: %u, %u alarms\n",
		      blind.regressions[0], blind.regressions[1]);
	assert_true(blind.regressions[0] > most_of(0.01));
	assert_true(blind.regressions[1] > most_of(0.005));
}

/* What is found with 95 % is found with 95 %. */
static void test_power(void **state)
{
	struct program old = zipf(3000, 0), new = old;
	struct experiment told = {.old = &old,
				  .new = &old,
				  .runs = 1,
				  .as_one = false,
				  .limits = {"site(^site0$)=+5%", "sites=+5%"}};
	struct experiment grown = {.old = &old,
				   .new = &new,
				   .runs = 1,
				   .as_one = false,
				   .limits = {"site(^site0$)=+5%"}};
	struct experiment appeared = {.old = &old,
				      .new = &new,
				      .runs = 1,
				      .as_one = false,
				      .limits = {"sites=+5%"}};

	(void)state;
	run(&told);
	new.count[0] = (unsigned int)(old.count[0] * (1 + told.detectable[0]));
	run(&grown);
	print_message("growth of %.1f %% in one function\n",
		      100 * told.detectable[0]);
	assert_found("  site(^site0$)=+5%", grown.regressions[0]);
	/* a new function in the place of the smallest */
	new = old;
	old.count[SITES - 1] = 0;
	new.size_bytes[SITES - 1] = 64;
	new.count[SITES - 1] = (unsigned int)(told.new_bytes / 64);
	run(&appeared);
	print_message("a new function of %.1f periods\n", told.new_bytes / R);
	assert_found("  sites=+5%", appeared.regressions[0]);
}

/* With as many samples as are said to be needed, no change is none. */
static void test_samples_needed(void **state)
{
	const double needed =
		1 / sp_variance_needed(0.2, SP_SUMMARY_LEVEL, SP_CHECK_POWER);
	struct program p = {.size_bytes[0] = 64,
			    .count[0] = (unsigned int)(needed * R / 64)};
	struct experiment e = {.old = &p,
			       .new = &p,
			       .runs = 1,
			       .as_one = false,
			       .limits = {"site(^site0$)=+20%"}};

	(void)state;
	run(&e);
	print_message("%.0f samples for +20%%\n", needed);
	assert_found("  seen to be no change", e.passes[0]);
}

/* One doubles while another halves: what grew is found, and nothing else. */
static void test_one_for_another(void **state)
{
	const struct program old = zipf(6000, 0);
	struct program new = old;
	struct experiment e = {.old = &old,
			       .new = &new,
			       .runs = 1,
			       .as_one = false,
			       .limits = {"site(^site2$)=+50%",
					  "site(^site0$)=+0%", "sites=+50%"}};

	(void)state;
	new.count[2] *= 2;
	new.count[1] /= 2;
	run(&e);
	assert_found("one doubled", e.regressions[0]);
	assert_alarms("  another did not", e.regressions[1], 0.005);
	assert_found("  and one by one", e.regressions[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_changed),
		cmocka_unit_test(test_nothing_but_noise),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_samples_needed),
		cmocka_unit_test(test_one_for_another),
	};
	const char *asked = getenv("SAMPLEPROF_TEST_PAIRS");

	if (asked && atoi(asked) > 0)
		pairs = (unsigned int)atoi(asked);
	sp_rng_init(&rng, 20261121, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
