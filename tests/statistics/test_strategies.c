/* SPDX-License-Identifier: MIT */
/*
 * The sampling lab: unbiased strategies are unbiased, biased ones are found
 * out, deviations are those of theory; broken ones are noticed. False alarm:
 * 1e-4; 3 s.
 *
 * The sampling lab says of each strategy what is true of it.
 *
 * H0: for every workload, the strategies of `unbiased` estimate the bytes of
 * the program, those of the site and the number of objects without bias; the
 * intervals of `valid` contain the truth in at least 95 % of the runs, for the
 * program and for the site; the standard deviation of the law by bytes and of
 * the best law are those of (E35) and (E38).  The others are biased, or
 * miss the truth, where theory says so, each in a test of its own.
 *
 * Statistics, fixed seeds, 300 samples in each of n = 300 runs: z of 7 x 8 x 3
 * means; 7 x 5 x 2 numbers of misses; 7 x 2 standard deviations; 14 claims.
 *
 * alpha: |z| <= 5 is missed with probability 5.7e-7 by each mean, 1e-4 by all;
 * more than 37 misses of 300 at a true coverage of 95 % with 1.8e-7, 1.3e-5 by
 * all; a standard deviation is off by five of its errors about as rarely.
 *
 * Power: a bias of 0.4 standard deviations of a run, which is 2.3 % of the
 * bytes of a program, is seen in 97 % of the seeds; a coverage of 80 % in more
 * than 99.9 %.  Four broken strategies, below, are told from the right ones.
 */
#include <math.h>
#include <stdbool.h>

#include "lab/random.h"
#include "lab/trial.h"
#include "lab/workload.h"
#include "support/test.h"

#define RUNS       300
#define MISSES_MAX 37
#define SEED       7

static const struct sp_lab_trial trial = {300, RUNS, SEED};

static const char *const unbiased[] = {
	"objects",    "dotnet-weighted", "dotnet-trials",
	"heapprofd",  "heapprofd-cut",   "best",
	"sampleprof", "sampleprof-rate", NULL};

static const char *const valid[] = {"heapprofd",  "heapprofd-cut",   "best",
				    "sampleprof", "sampleprof-rate", NULL};

/* All results, once. */
static struct sp_lab_trace traces[8];
static struct sp_lab_result results[8][SP_LAB_STRATEGIES];
static size_t n_traces;

static int set_up(void **state)
{
	(void)state;
	for (const struct sp_lab_workload *w = sp_lab_workloads; w->name; w++) {
		struct sp_lab_trace *trace = &traces[n_traces];

		if (sp_lab_workload_make(w, trial.samples, SEED, trace) < 0)
			return -1;
		for (size_t i = 0; i < SP_LAB_STRATEGIES; i++)
			if (sp_lab_try(&trial, trace, &sp_lab_strategies[i],
				       &results[n_traces][i]) < 0)
				return -1;
		n_traces++;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_traces; i++)
		sp_lab_trace_free(&traces[i]);
	return 0;
}

static const struct sp_lab_result *result_of(size_t trace, const char *name)
{
	for (size_t i = 0; i < SP_LAB_STRATEGIES; i++)
		if (strcmp(sp_lab_strategies[i].name, name) == 0)
			return &results[trace][i];
	fail_msg("there is no strategy %s", name);
	return NULL;
}

static size_t trace_of(const char *workload)
{
	for (size_t i = 0; i < n_traces; i++)
		if (strcmp(traces[i].name, workload) == 0)
			return i;
	fail_msg("there is no workload %s", workload);
	return 0;
}

static void check_unbiased(size_t trace, const char *name, const char *what,
			   const struct sp_lab_figure *f)
{
	if (sp_lab_is_biased(f))
		fail_msg("%s, %s, %s: bias %g, %g expected from chance",
			 traces[trace].name, name, what, f->bias,
			 f->bias_error);
}

TEST(unbiased)
{
	assert_int_equal(n_traces, 7);
	for (size_t t = 0; t < n_traces; t++) {
		for (const char *const *name = unbiased; *name; name++) {
			const struct sp_lab_result *r = result_of(t, *name);

			assert_true(r->samples > 0.95 * trial.samples);
			assert_true(r->samples < 1.05 * trial.samples);
			check_unbiased(t, *name, "bytes", &r->total);
			check_unbiased(t, *name, "site", &r->focus);
			check_unbiased(t, *name, "objects", &r->objects);
		}
	}
}

static void check_coverage(size_t trace, const char *name,
			   const struct sp_lab_figure *f)
{
	const double misses = (1 - f->coverage) * RUNS;

	if (misses > MISSES_MAX)
		fail_msg("%s, %s: %g of %d intervals miss", traces[trace].name,
			 name, misses, RUNS);
}

TEST(valid_intervals)
{
	for (size_t t = 0; t < n_traces; t++) {
		for (const char *const *name = valid; *name; name++) {
			const struct sp_lab_result *r = result_of(t, *name);

			check_coverage(t, *name, &r->total);
			check_coverage(t, *name, &r->focus);
		}
	}
}

/* The estimates are sums of many terms: a standard deviation from n runs has a
 * relative error of about 1 / sqrt(2 n). */
static void check_sd(const char *name, double sd, double variance, double bytes)
{
	const double expected = sqrt(variance) / bytes;

	if (fabs(sd / expected - 1) > 5 / sqrt(2.0 * RUNS))
		fail_msg("%s: standard deviation %g, not %g", name, sd,
			 expected);
}

TEST(standard_deviations)
{
	for (size_t t = 0; t < n_traces; t++) {
		const struct sp_period_model *sizes = &traces[t].sizes;
		const struct sp_lab_result *best = result_of(t, "best");
		const struct sp_lab_result *law =
			result_of(t, "dotnet-weighted");
		const double bytes = (double)traces[t].bytes;
		const double best_variance =
			sp_period_model_best_variance(sizes, best->parameter);
		const double variance =
			sp_period_model_variance(sizes, law->parameter);

		check_sd("best", best->total.sd, best_variance, bytes);
		check_sd("dotnet-weighted", law->total.sd, variance, bytes);
		assert_true(best_variance <= variance * (1 + 1e-9));
	}
}

/* A target spends as many samples on a slow beginning as on what follows. */
TEST(rate_sees_the_beginning)
{
	const size_t ramp = trace_of("ramp");

	assert_true(result_of(ramp, "sampleprof-rate")->focus.sd <
		    0.6 * result_of(ramp, "sampleprof")->focus.sd);
}

/* ---- what is wrong with the others ---- */

TEST(stride_resonates)
{
	const struct sp_lab_result *r =
		result_of(trace_of("periodic"), "stride");

	/* All samples are of the same place in the loop. */
	assert_true(r->focus.sd > 2);
	assert_true(r->focus.coverage < 0.05);
	assert_true(r->total.sd < 0.01);
}

TEST(stride_is_biased)
{
	/* What comes behind a large object is met less often. */
	assert_true(sp_lab_is_biased(
		&result_of(trace_of("tail"), "stride")->focus));
	assert_true(sp_lab_is_biased(
		&result_of(trace_of("tail"), "stride")->objects));
}

TEST(first_in_buffer_is_biased)
{
	const struct sp_lab_result *r = result_of(trace_of("tail"), "tlab");

	assert_true(sp_lab_is_biased(&r->objects));
	assert_true(r->objects.bias > 0.1);
}

TEST(jfr_is_biased)
{
	const struct sp_lab_result *bursts =
		result_of(trace_of("bursts"), "jfr");
	const struct sp_lab_result *threads =
		result_of(trace_of("threads"), "jfr");

	/* A burst is over before the next window knows of it. */
	assert_true(sp_lab_is_biased(&bursts->focus));
	assert_true(bursts->focus.bias < -0.3);
	assert_true(bursts->focus.coverage < 0.5);
	/* Threads without a sample are nobody's weight. */
	assert_true(sp_lab_is_biased(&threads->total));
	assert_true(threads->focus.bias < -0.3);
}

TEST(sum_is_biased)
{
	const struct sp_lab_result *r =
		result_of(trace_of("tail"), "jemalloc-summed");

	assert_true(sp_lab_is_biased(&r->total));
	assert_true(r->total.bias < -0.03);
	assert_true(r->focus.bias < -0.05);
	assert_true(r->objects.bias < -0.8);
}

/* Normal limits from the few samples that met a large object: far too narrow.
 */
TEST(objects_miss)
{
	const struct sp_lab_result *r = result_of(trace_of("tail"), "objects");

	assert_true(r->focus.coverage < 0.2);
	assert_true(r->total.sd >
		    10 * result_of(trace_of("tail"), "sampleprof")->total.sd);
}

/* Four samples expected: as published, limits are too low above, so that 90 %
 * of them are right. */
TEST(published_intervals_miss)
{
	const size_t ramp = trace_of("ramp");

	assert_true(result_of(ramp, "dotnet-weighted")->focus.coverage < 0.94);
	assert_true(result_of(ramp, "dotnet-trials")->focus.coverage < 0.94);
}

/* ---- broken strategies are found out ---- */

/* One period's worth for each sample, whatever its size. */
static int run_by_period(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	double gap = sp_lab_exponential(&run->rng) * run->parameter;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];

		if (gap >= (double)a->size_bytes) {
			gap -= (double)a->size_bytes;
			continue;
		}
		sp_lab_add_weight(sp_lab_take(run, a), a->size_bytes,
				  run->parameter);
		gap = sp_lab_exponential(&run->rng) * run->parameter;
	}
	return 0;
}

/* A gap that is long is drawn again. */
static int run_impatient(struct sp_lab_run *run)
{
	static const struct sp_law_used law;
	const struct sp_lab_trace *trace = run->trace;
	const uint64_t period = (uint64_t)(run->parameter + 0.5);
	double gap = sp_lab_exponential(&run->rng) * run->parameter;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];

		if (gap >= (double)a->size_bytes) {
			gap -= (double)a->size_bytes;
			if (gap > 3 * run->parameter)
				gap = sp_lab_exponential(&run->rng) *
				      run->parameter;
			continue;
		}
		sp_acc_add(sp_lab_take(run, a), &law, a->size_bytes,
			   (uint64_t)gap, period);
		gap = sp_lab_exponential(&run->rng) * run->parameter;
	}
	return 0;
}

/* The bytes of an object behind its hit are tested again. */
static int run_overlapping(struct sp_lab_run *run)
{
	static const struct sp_law_used law;
	const struct sp_lab_trace *trace = run->trace;
	const uint64_t period = (uint64_t)(run->parameter + 0.5);
	double gap = sp_lab_exponential(&run->rng) * run->parameter;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];

		for (; gap < (double)a->size_bytes;
		     gap += sp_lab_exponential(&run->rng) * run->parameter)
			sp_acc_add(sp_lab_take(run, a), &law, a->size_bytes, 0,
				   period);
		gap -= (double)a->size_bytes;
	}
	return 0;
}

/* Weights for other chances than those that were taken. */
static int run_wrong_chance(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		const double chance =
			fmin(1, (double)a->size_bytes / run->parameter);

		if (sp_lab_uniform(&run->rng) < chance)
			sp_lab_add_chance(sp_lab_take(run, a), a->size_bytes,
					  fmin(1, chance * 1.05));
	}
	return 0;
}

static bool is_found_out(const char *workload, int (*run)(struct sp_lab_run *),
			 enum sp_lab_fit fit)
{
	const struct sp_lab_strategy broken = {"broken", "", fit, run,
					       sp_lab_counted};
	struct sp_lab_result r;

	assert_int_equal(
		sp_lab_try(&trial, &traces[trace_of(workload)], &broken, &r),
		0);
	return sp_lab_is_biased(&r.total) || sp_lab_is_biased(&r.focus) ||
	       sp_lab_is_biased(&r.objects);
}

TEST(mutants)
{
	assert_true(is_found_out("large", run_by_period, SP_LAB_FIT_PERIOD));
	assert_true(is_found_out("small", run_impatient, SP_LAB_FIT_PERIOD));
	assert_true(is_found_out("large", run_overlapping, SP_LAB_FIT_PERIOD));
	assert_true(
		is_found_out("small", run_wrong_chance, SP_LAB_FIT_THRESHOLD));
}

TEST_MAIN(set_up, tear_down)
