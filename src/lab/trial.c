/* SPDX-License-Identifier: MIT */
#include "lab/trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Runs to find a parameter by: their random numbers are others. */
#define PILOTS       16
#define PILOT_STREAM (1ull << 32)
#define PILOT_TURNS  12
#define PILOT_CLOSE  0.01

/* What a run needs, once for all of them. */
struct bench {
	struct sp_lab_run run;
	const struct sp_lab_strategy *strategy;
};

/* Sums over the runs; the first value is subtracted from all, lest the square
 * of a large mean hide a small variance. */
struct moments {
	double first, sum, squares;
	uint64_t n, covered;
};

static void add_value(struct moments *m, double value)
{
	if (!m->n++)
		m->first = value;
	m->sum += value - m->first;
	m->squares += (value - m->first) * (value - m->first);
}

static void add_interval(struct moments *m, struct sp_interval interval,
			 double truth)
{
	add_value(m, interval.value / truth);
	m->covered += interval.lo <= truth && truth <= interval.hi;
}

static struct sp_lab_figure conclude_figure(const struct moments *m)
{
	const double n = (double)m->n, mean = m->sum / n;
	const double variance =
		fmax(0, (m->squares - n * mean * mean) / (n - 1));
	const double covered = (double)m->covered / n;

	return (struct sp_lab_figure){
		.bias = m->first + mean - 1,
		.bias_error = sqrt(variance / n),
		.sd = sqrt(variance),
		.coverage = covered,
		.coverage_error = sqrt(covered * (1 - covered) / n),
	};
}

static int new_bench(const struct sp_lab_trace *trace,
		     const struct sp_lab_strategy *strategy, struct bench *ret)
{
	*ret = (struct bench){.run = {.trace = trace}, .strategy = strategy};
	ret->run.sites = calloc(trace->n_sites, sizeof(*ret->run.sites));
	return ret->run.sites ? 0 : -ENOMEM;
}

static void free_bench(struct bench *bench)
{
	free(bench->run.sites);
}

/* One run; *ret_all is the sum over the sites. */
static int run_once(struct bench *bench, uint64_t seed, uint64_t stream,
		    struct sp_acc *ret_all)
{
	struct sp_lab_run *run = &bench->run;
	const uint64_t period = (uint64_t)fmax(1, run->parameter + 0.5);
	int r;

	sp_rng_init(&run->rng, seed, stream);
	run->in_second = 0;
	run->most_in_second = 0;
	for (uint32_t i = 0; i < run->trace->n_sites; i++)
		sp_acc_init(&run->sites[i], period);
	r = bench->strategy->run(run);
	*ret_all = run->sites[0];
	for (uint32_t i = 1; i < run->trace->n_sites; i++)
		sp_acc_merge(ret_all, &run->sites[i]);
	return r;
}

/* ---- the parameter that keeps to the budget ---- */

static int mean_samples(struct bench *bench, uint64_t seed, double *ret)
{
	double sum = 0;
	int r = 0;

	for (uint64_t i = 0; r >= 0 && i < PILOTS; i++) {
		struct sp_acc all;

		r = run_once(bench, seed, PILOT_STREAM + i, &all);
		sum += (double)all.samples;
	}
	*ret = sum / PILOTS;
	return r;
}

/*
 * Correct the parameter, of which the number of samples is a multiple, or with
 * `is_inverse` the inverse, until it is close.  Where it jumps, the closest one
 * is kept.
 */
static int find_by_trying(struct bench *bench, const struct sp_lab_trial *trial,
			  double first, bool is_inverse)
{
	double *parameter = &bench->run.parameter;
	double best = first, least = INFINITY;
	int r = 0;

	*parameter = first;
	for (int i = 0; r >= 0 && least > PILOT_CLOSE && i < PILOT_TURNS; i++) {
		double samples, off;

		r = mean_samples(bench, trial->seed, &samples);
		off = fmax(0.5, samples) / (double)trial->samples;
		if (fabs(log(off)) < least) {
			least = fabs(log(off));
			best = *parameter;
		}
		*parameter *= is_inverse ? off : 1 / off;
	}
	*parameter = best;
	return r;
}

static int find_parameter(struct bench *bench, const struct sp_lab_trial *trial)
{
	const struct sp_lab_trace *trace = bench->run.trace;
	const double samples = (double)trial->samples;
	double *parameter = &bench->run.parameter;

	switch (bench->strategy->fit) {
	case SP_LAB_FIT_PERIOD:
		/* .NET's law has no period below 2. */
		*parameter = fmax(2, sp_period_model_period_for_samples(
					     &trace->sizes, samples));
		return 0;
	case SP_LAB_FIT_STRIDE:
		return find_by_trying(bench, trial,
				      (double)trace->bytes / samples, true);
	case SP_LAB_FIT_CHANCE:
		*parameter = samples / (double)trace->n_allocs;
		return 0;
	case SP_LAB_FIT_THRESHOLD:
		*parameter =
			sp_period_model_best_threshold(&trace->sizes, samples);
		return 0;
	case SP_LAB_FIT_RATE:
		return find_by_trying(
			bench, trial,
			samples / ((double)trace->duration_ns * 1e-9), false);
	}
	return -EINVAL;
}

/* ---- all runs ---- */

static int run_all(struct bench *bench, const struct sp_lab_trial *trial,
		   struct sp_lab_result *ret)
{
	const struct sp_lab_trace *trace = bench->run.trace;
	const double parameter = bench->run.parameter;
	struct moments total = {0}, focus = {0}, objects = {0};
	double samples = 0, most = 0;
	int r = 0;

	for (uint64_t i = 0; r >= 0 && i < trial->runs; i++) {
		const struct sp_acc *site = &bench->run.sites[trace->focus];
		struct sp_acc all;

		r = run_once(bench, trial->seed, 1 + i, &all);
		add_interval(&total,
			     bench->strategy->bytes(&all, parameter,
						    SP_LAB_CONFIDENCE),
			     (double)trace->bytes);
		add_interval(&focus,
			     bench->strategy->bytes(site, parameter,
						    SP_LAB_CONFIDENCE),
			     (double)trace->focus_bytes);
		add_value(&objects, all.est_count / (double)trace->n_allocs);
		samples += (double)all.samples;
		most += (double)bench->run.most_in_second;
	}
	*ret = (struct sp_lab_result){
		.strategy = bench->strategy,
		.parameter = parameter,
		.samples = samples / (double)trial->runs,
		.most_in_second = most / (double)trial->runs,
		.total = conclude_figure(&total),
		.focus = conclude_figure(&focus),
		.objects = conclude_figure(&objects),
	};
	ret->objects.coverage = NAN;
	ret->objects.coverage_error = NAN;
	return r;
}

int sp_lab_try(const struct sp_lab_trial *trial,
	       const struct sp_lab_trace *trace,
	       const struct sp_lab_strategy *strategy,
	       struct sp_lab_result *ret)
{
	struct bench bench;
	int r = new_bench(trace, strategy, &bench);

	if (r >= 0)
		r = find_parameter(&bench, trial);
	if (r >= 0)
		r = run_all(&bench, trial, ret);
	free_bench(&bench);
	return r;
}

bool sp_lab_is_biased(const struct sp_lab_figure *figure)
{
	return fabs(figure->bias) > fmax(5 * figure->bias_error, 1e-4);
}
