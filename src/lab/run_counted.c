/* SPDX-License-Identifier: MIT */
/*
 * Strategies that go by amounts of memory, not by chance: the only chance is
 * where in its stride a program begins.  Their weights are what the event says
 * it stands for.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lab/random.h"
#include "lab/strategy.h"

/* As soon as `parameter` bytes have been allocated, the object that did it
 * stands for all of them, and the count begins anew. */
int sp_lab_run_stride(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	double since = sp_lab_uniform(&run->rng) * run->parameter;

	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];

		since += (double)a->size_bytes;
		if (since < run->parameter)
			continue;
		sp_lab_add_weight(sp_lab_take(run, a), a->size_bytes, since);
		since = 0;
	}
	return 0;
}

/*
 * Buffers from which a thread allocates.  An object that does not fit is given
 * a buffer of which it is the first, unless more of the old one is left than
 * may be wasted: then it is allocated outside, as one that is larger than a
 * buffer always is.  The JVM lets waste a 64th of a buffer, and 32 bytes more
 * after each object that was put outside (TLABRefillWasteFraction,
 * TLABWasteIncrement).
 */
#define WASTE_FRACTION  64
#define WASTE_INCREMENT 32

struct buffer {
	double left;
	double waste; /* that may be left when the next is begun */
	double since; /* bytes since the thread's last event */
};

/* Is there an event?  *ret_weight is what the event says it stands for. */
static bool refills_buffer(struct buffer *buffer, double size, double whole,
			   double *ret_weight)
{
	if (size <= buffer->left) {
		buffer->left -= size;
		return false;
	}
	*ret_weight = size;
	if (size > whole)
		return true;
	if (buffer->left > buffer->waste) {
		buffer->waste += WASTE_INCREMENT;
		return true;
	}
	*ret_weight = whole;
	buffer->left = whole - size;
	buffer->waste = whole / WASTE_FRACTION;
	return true;
}

/* At any point of their present buffers. */
static struct buffer *new_buffers(struct sp_lab_run *run, double whole)
{
	const uint32_t n = run->trace->n_threads;
	struct buffer *buffers = calloc(n, sizeof(*buffers));

	for (uint32_t i = 0; buffers && i < n; i++) {
		buffers[i].left = sp_lab_uniform(&run->rng) * whole;
		buffers[i].waste = whole / WASTE_FRACTION;
	}
	return buffers;
}

int sp_lab_run_tlab(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	struct buffer *buffers = new_buffers(run, run->parameter);

	if (!buffers)
		return -ENOMEM;
	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		double weight;

		if (refills_buffer(&buffers[a->thread], (double)a->size_bytes,
				   run->parameter, &weight))
			sp_lab_add_weight(sp_lab_take(run, a), a->size_bytes,
					  weight);
	}
	free(buffers);
	return 0;
}

/* ---- the throttle of JFR's ObjectAllocationSample ---- */

/*
 * Windows of 200 ms, or of a second for up to nine samples per second.  Of the
 * events of a window each interval-th is taken, up to as many as are due; the
 * interval is drawn for each window from a geometric law with the mean
 * population / due, where the population is a moving average over 25 windows.
 * What a window has not used is due in the next, up to the end of a second.
 */
#define SECOND_NS  1000000000ull
#define LOW_RATE   9
#define LOOKBACK   25
#define PER_SECOND 5

struct throttle {
	uint64_t end_ns;
	uint64_t window_ns;
	uint64_t per_window;  /* the target */
	unsigned int windows; /* in a second */
	uint64_t interval;
	uint64_t projected; /* events that may be taken */
	uint64_t population;
	double average;
	unsigned int carried; /* windows since debts were forgotten */
};

static uint64_t unused_budget(const struct throttle *t)
{
	uint64_t taken;

	if (!t->projected)
		return 0;
	taken = (t->population < t->projected ? t->population : t->projected) /
		t->interval;
	/* What was due was the target and what it had taken over. */
	return t->projected / t->interval - taken;
}

static void next_window(struct throttle *t, struct sp_rng *rng, uint64_t now_ns)
{
	uint64_t due = t->per_window;
	double chance;

	if (t->carried == t->windows)
		t->carried = 0;
	else
		due += unused_budget(t);
	t->carried++;
	t->average += ((double)t->population - t->average) / LOOKBACK;
	chance = (double)due / t->average;
	t->interval = 1;
	if (t->average > (double)due)
		t->interval = (uint64_t)ceil(log(sp_lab_uniform(rng)) /
					     log1p(-chance));
	t->projected = due * t->interval;
	t->population = 0;
	t->end_ns = now_ns + t->window_ns;
}

static struct throttle new_throttle(double rate, struct sp_rng *rng)
{
	const uint64_t per_second = (uint64_t)fmax(1, rate + 0.5);
	const unsigned int windows = per_second > LOW_RATE ? PER_SECOND : 1;
	struct throttle t = {
		.window_ns = SECOND_NS / windows,
		.per_window = per_second / windows,
		.windows = windows,
		.carried = windows,
	};

	next_window(&t, rng, 0);
	return t;
}

/* The event that finds its window over opens the next and is not taken. */
static bool lets_through(struct throttle *t, struct sp_rng *rng,
			 uint64_t now_ns)
{
	if (now_ns >= t->end_ns) {
		next_window(t, rng, now_ns);
		return false;
	}
	t->population++;
	return t->population <= t->projected &&
	       t->population % t->interval == 0;
}

/* Sixteen events for each that is wanted; a sample stands for what its thread
 * has allocated since its last one. */
#define EVENTS_PER_SAMPLE 16

int sp_lab_run_jfr(struct sp_lab_run *run)
{
	const struct sp_lab_trace *trace = run->trace;
	const double seconds = (double)trace->duration_ns * 1e-9;
	const double whole = (double)trace->bytes /
			     (run->parameter * seconds * EVENTS_PER_SAMPLE);
	struct throttle throttle = new_throttle(run->parameter, &run->rng);
	struct buffer *buffers = new_buffers(run, whole);

	if (!buffers)
		return -ENOMEM;
	for (size_t i = 0; i < trace->n_allocs; i++) {
		const struct sp_lab_alloc *a = &trace->allocs[i];
		struct buffer *buffer = &buffers[a->thread];
		double weight;

		buffer->since += (double)a->size_bytes;
		if (!refills_buffer(buffer, (double)a->size_bytes, whole,
				    &weight) ||
		    !lets_through(&throttle, &run->rng, a->time_ns))
			continue;
		sp_lab_add_weight(sp_lab_take(run, a), a->size_bytes,
				  buffer->since);
		buffer->since = 0;
	}
	free(buffers);
	return 0;
}
