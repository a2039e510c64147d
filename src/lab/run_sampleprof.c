/* SPDX-License-Identifier: MIT */
/* What is profiled by: the agent's own sampler and rate limit, one for each
 * thread and one for all of them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/process/checkin.h"
#include "agent/process/rate_limit.h"
#include "agent/thread/sampler.h"
#include "lab/strategy.h"

static const struct sp_law_used used = {.always_large = true};

static struct sp_sampler *new_samplers(struct sp_lab_run *run,
				       const struct sp_law *law)
{
	const uint32_t n = run->trace->n_threads;
	struct sp_sampler *samplers = calloc(n, sizeof(*samplers));
	const uint64_t seed = sp_rng_next(&run->rng);

	for (uint32_t i = 0; samplers && i < n; i++)
		sp_sampler_begin(&samplers[i], law, seed, 1, i + 1);
	return samplers;
}

int sp_lab_run_sampleprof(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	const uint64_t period = (uint64_t)(run->parameter + 0.5);
	struct sp_sampler *samplers;
	struct sp_law law;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, period);
	samplers = new_samplers(run, &law);
	if (!samplers)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->n_sites; i++)
		sp_acc_init(&run->sites[i], period);
	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		uint64_t offset;

		if (sp_sampler_pass(&samplers[a->thread], 0, a->size_bytes,
				    &offset))
			sp_acc_add(sp_lab_take(run, a), &used, a->size_bytes,
				   offset, period);
	}
	free(samplers);
	return 0;
}

/* ---- with a target ---- */

/* The finest period is an eighth of what keeps to the target on average. */
#define FINER 8

/* What all threads share. */
struct pace {
	struct sp_rate_limit rate_limit;
	struct sp_law laws[SP_RATE_LIMIT_STEPS_MAX + 1];
	unsigned int step;
	uint64_t due_ns;
};

static void init_pace(struct pace *pace, const struct sp_lab_run *run)
{
	const double seconds = (double)run->trace->duration_ns * 1e-9;
	const double base =
		(double)run->trace->bytes / (run->parameter * seconds * FINER);

	pace->step = 0;
	pace->due_ns = 0;
	sp_rate_limit_init(&pace->rate_limit,
			   (uint64_t)fmax(1, run->parameter + 0.5));
	for (unsigned int i = 0; i <= SP_RATE_LIMIT_STEPS_MAX; i++)
		sp_law_init(&pace->laws[i], SP_LAW_EXPONENTIAL,
			    sp_rate_limit_period((uint64_t)(base + 1), i));
}

static void follow_rate(struct pace *pace, struct sp_sampler *sampler,
			uint64_t now_ns)
{
	const struct sp_law *law;

	pace->step = sp_rate_limit_step(&pace->rate_limit, pace->step,
					pace->due_ns, now_ns);
	law = &pace->laws[pace->step];
	if (sampler->law != law)
		sp_sampler_change(sampler, law);
}

/* A thread follows at its next sample, or when it has allocated so much. */
static void run_paced(struct sp_lab_run *run, struct pace *pace,
		      struct sp_sampler *samplers, uint64_t *unchecked)
{
	const struct sp_lab_trace *trace = run->trace;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		struct sp_sampler *sampler = &samplers[a->thread];
		const struct sp_law *drawn = sampler->law;
		uint64_t offset;

		unchecked[a->thread] += a->size_bytes;
		if (sp_sampler_pass(sampler, 0, a->size_bytes, &offset)) {
			sp_acc_add(sp_lab_take(run, a), &used, a->size_bytes,
				   offset, drawn->period_bytes);
			pace->due_ns = sp_rate_limit_charge(
				&pace->rate_limit, pace->due_ns, a->time_ns);
		} else if (unchecked[a->thread] < SP_CHECKIN_BYTES_MAX) {
			continue;
		}
		unchecked[a->thread] = 0;
		follow_rate(pace, sampler, a->time_ns);
	}
}

int sp_lab_run_sampleprof_rate(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	uint64_t *unchecked = calloc(trace->n_threads, sizeof(*unchecked));
	struct sp_sampler *samplers;
	struct pace pace;
	int r = -ENOMEM;

	init_pace(&pace, run);
	samplers = new_samplers(run, &pace.laws[0]);
	for (uint32_t i = 0; i < trace->n_sites; i++)
		sp_acc_init(&run->sites[i], pace.laws[0].period_bytes);
	if (samplers && unchecked) {
		run_paced(run, &pace, samplers, unchecked);
		r = 0;
	}
	free(samplers);
	free(unchecked);
	return r;
}
