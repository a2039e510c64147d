/* SPDX-License-Identifier: MIT */
/* Strategies by chance: of each object, or of each byte. */
#include <math.h>

#include "lab/random.h"
#include "lab/strategy.h"

int sp_lab_run_objects(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];

		if (sp_lab_uniform(&run->rng) < run->parameter)
			sp_lab_add_chance(sp_lab_take(run, a), a->size_bytes,
					  run->parameter);
	}
	return 0;
}

int sp_lab_run_best(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;

	/* Nothing sampled of B bytes: exp(-B / threshold) at most, as with a
	 * period, so that limits are those of a period (E8). */
	for (uint32_t i = 0; i < trace->n_sites; i++)
		sp_acc_init(&run->sites[i], (uint64_t)ceil(run->parameter));
	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		const double chance =
			fmin(1, (double)a->size_bytes / run->parameter);

		if (sp_lab_uniform(&run->rng) < chance)
			sp_lab_add_chance(sp_lab_take(run, a), a->size_bytes,
					  chance);
	}
	return 0;
}

/*
 * One gap for the whole program: where every byte has its own chance, it makes
 * no difference whose bytes they are.
 */
int sp_lab_run_dotnet(struct sp_lab_run *run)
{
	static const struct sp_law_used law = {.is_dotnet = true};
	const struct sp_lab_trace *trace = run->trace;
	const uint64_t period = (uint64_t)(run->parameter + 0.5);
	const double mean = -1 / log1p(-1 / (double)period);
	double gap = floor(sp_lab_exponential(&run->rng) * mean);

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		const double size = (double)a->size_bytes;

		if (gap >= size) {
			gap -= size;
			continue;
		}
		sp_acc_add(sp_lab_take(run, a), &law, a->size_bytes,
			   (uint64_t)gap, period);
		/* From the end of the object. */
		gap = floor(sp_lab_exponential(&run->rng) * mean);
	}
	return 0;
}

/* ---- each hit counts ---- */

static void run_hits(struct sp_lab_run *run, double certain_bytes)
{
	const struct sp_lab_trace *trace = run->trace;
	double gap = sp_lab_exponential(&run->rng) * run->parameter;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		const double size = (double)a->size_bytes;
		double weight = 0;
		struct sp_acc *acc;

		if (size >= certain_bytes) {
			acc = sp_lab_take(run, a);
			sp_lab_add_weight(acc, a->size_bytes, size);
			acc->sure_bytes += a->size_bytes;
			continue;
		}
		for (; gap < size;
		     gap += sp_lab_exponential(&run->rng) * run->parameter)
			weight += run->parameter;
		gap -= size;
		if (weight > 0)
			sp_lab_add_weight(sp_lab_take(run, a), a->size_bytes,
					  weight);
	}
}

int sp_lab_run_heapprofd(struct sp_lab_run *run)
{
	run_hits(run, INFINITY);
	return 0;
}

int sp_lab_run_heapprofd_cut(struct sp_lab_run *run)
{
	run_hits(run, log(100) * run->parameter);
	return 0;
}

/* ---- a sum is divided by the probability of its mean ---- */

int sp_lab_run_summed(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	double gap = sp_lab_exponential(&run->rng) * run->parameter;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		const double size = (double)a->size_bytes;

		if (gap >= size) {
			gap -= size;
			continue;
		}
		sp_lab_add_weight(sp_lab_take(run, a), a->size_bytes, size);
		gap = sp_lab_exponential(&run->rng) * run->parameter;
	}
	for (uint32_t i = 0; i < trace->n_sites; i++) {
		struct sp_acc *acc = &run->sites[i];
		const double n = (double)acc->samples;
		const double sum = (double)acc->size_bytes;
		double chance;

		if (!acc->samples)
			continue;
		chance = -expm1(-sum / n / run->parameter);
		acc->est_bytes = sum / chance;
		acc->est_count = n / chance;
	}
	return 0;
}
