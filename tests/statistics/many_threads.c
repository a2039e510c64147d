/* SPDX-License-Identifier: MIT */
#include "many_threads.h"

#include <stdbool.h>

#include "agent/process/checkin.h"
#include "agent/process/period.h"

static struct sp_law first;
static uint64_t clock_ns, changes, longest_bytes;

/* The agent's clock: the linker is told to use this one (--wrap). */
uint64_t __wrap_sp_clock_now_ns(void);
uint64_t __wrap_sp_clock_now_ns(void)
{
	return clock_ns;
}

void workers_begin(uint64_t base_bytes, uint64_t samples_per_s)
{
	clock_ns = WORKERS_START_NS;
	changes = 0;
	longest_bytes = base_bytes;
	sp_law_init(&first, SP_LAW_EXPONENTIAL, base_bytes);
	sp_period_init(&first, SP_LAW_EXPONENTIAL, true, samples_per_s);
}

void worker_begin(struct worker *worker, uint64_t seed, uint32_t index)
{
	sp_sampler_begin(&worker->sampler, sp_period_law(), seed, 1, index);
	worker->pending_bytes = 0;
}

static void adapt(void)
{
	const struct sp_law *law;

	if (!sp_period_is_due())
		return;
	law = sp_period_adapt();
	if (!law)
		return;
	changes++;
	if (law->period_bytes > longest_bytes)
		longest_bytes = law->period_bytes;
	sp_period_use(law, longest_bytes);
}

static void follow(struct worker *w)
{
	const struct sp_law *law = sp_period_law();

	if (w->sampler.law != law)
		sp_sampler_change(&w->sampler, law);
}

/* An allocation that takes the cold path. */
static void event(struct worker *w, uint64_t size_bytes, worker_sample *sample,
		  void *arg)
{
	uint64_t offset;

	w->pending_bytes += size_bytes;
	if (sp_sampler_pass(&w->sampler, 0, size_bytes, &offset)) {
		sample(arg, size_bytes, offset, w->sampler.law->period_bytes,
		       clock_ns);
		sp_period_charge();
	}
	if (w->pending_bytes >= SP_CHECKIN_BYTES_MAX)
		w->pending_bytes = 0;
	adapt();
	follow(w);
}

void worker_allocate(struct worker *w, uint64_t size_bytes, uint64_t n,
		     uint64_t from_ns, uint64_t to_ns, worker_sample *sample,
		     void *arg)
{
	uint64_t left = n;

	while (left) {
		uint64_t limit = SP_CHECKIN_BYTES_MAX - w->pending_bytes;
		uint64_t pass;

		if (w->sampler.gap < limit)
			limit = w->sampler.gap;
		pass = limit / size_bytes < left ? limit / size_bytes : left;
		sp_sampler_skip(&w->sampler, pass * size_bytes);
		w->pending_bytes += pass * size_bytes;
		left -= pass;
		if (!left)
			break;
		left--;
		clock_ns = WORKERS_START_NS + from_ns +
			   (uint64_t)((double)(to_ns - from_ns) *
				      (double)(n - left) / (double)n);
		event(w, size_bytes, sample, arg);
	}
}

uint64_t workers_changes(void)
{
	return changes;
}

uint64_t workers_longest(void)
{
	return longest_bytes;
}
