/* SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "stats/estimator.h"
#include "stats/sums.h"

/*
 * The greatest live bytes of the run, of the objects that a selection names by
 * their birth, size and thread (its view and at_ns take no part).
 *
 * An object is alive from born_ns on and no longer at freed_ns: at one
 * nanosecond frees come first.
 */
struct sp_peak {
	/* The peak since the window (sp_profile_has_forgotten()).  What was
	 * alive at rows_ns: its value and lower limit are those of the rows of
	 * SP_VIEW_PEAK together.  The peak may have been at
	 * another moment, which the upper limit allows for, so that the limits
	 * contain the peak as well (E24, E25).
	 */
	struct sp_interval bytes;
	struct sp_interval rows_bytes; /* what was alive at rows_ns, no more */
	uint64_t rows_ns;              /* SP_NEVER: the end */
	uint64_t time_ns; /* the same since the start; 0 without samples */
	uint64_t samples; /* alive then */
	double raw_bytes; /* the highest point of the estimated curve: too high
			   * on average */
	/* Another summit that may be the peak, by limits that overlap; none if
	 * its time is SP_NEVER (E62). */
	struct sp_interval other_bytes;
	uint64_t other_ns;
};

/* At `confidence` in (0, 1).  0 and *ret, or -ENOMEM and *err. */
int sp_peak(const struct sp_profile *profile,
	    const struct sp_selection *selection, double confidence,
	    struct sp_peak *ret, struct sp_error *err);

/* The peak is no less than what is alive at the end, which exact totals may
 * know better than (E24) does; rows are of the end then. */
static inline void sp_peak_raise(struct sp_peak *peak, struct sp_interval end,
				 uint64_t samples, uint64_t end_ns)
{
	if (peak->rows_ns != SP_NEVER && !(end.value > peak->bytes.value))
		return;
	if (peak->rows_ns != SP_NEVER) {
		peak->other_bytes = peak->rows_bytes;
		peak->other_ns = peak->rows_bytes.hi >= end.lo ? peak->rows_ns
							       : SP_NEVER;
	}
	peak->rows_bytes = end;
	end.hi = fmax(end.hi, peak->bytes.hi);
	peak->bytes = end;
	peak->rows_ns = SP_NEVER;
	peak->time_ns = end_ns;
	peak->samples = samples;
}

/* Which samples choose is said by coins: the same in every report, others in
 * every run, and without regard to when an object was alive. */
uint64_t sp_peak_coins(uint64_t seed, uint64_t start_unix_ns);

/* 0: a sample with that id and offset chooses the moment; 1: it measures. */
unsigned int sp_peak_toss(uint64_t coins, uint64_t id, uint64_t offset_bytes);

/* Does it measure?  A sample of the profile, or one that stands for a group if
 * the plan had cuts. */
bool sp_peak_measures(const struct sp_profile *profile,
		      const struct sp_sample *sample);

/*
 * The same step by step, of births and frees in the order of time; at one
 * moment frees come first.  An object that is freed at its birth takes no part.
 * period_bytes is the largest period.  Borrows the profile.
 */
struct sp_peak_walk;

struct sp_peak_walk *sp_peak_walk_new(const struct sp_profile *profile,
				      uint64_t period_bytes,
				      double confidence); /* or NULL */

/* What is alike in objects of one size and period, as a number < 2^31;
 * UINT32_MAX without memory. */
uint32_t sp_peak_walk_kind(struct sp_peak_walk *walk, uint64_t size_bytes,
			   uint64_t period_bytes);

/* Are objects of that kind always sampled?  Then the toss does not matter. */
bool sp_peak_walk_is_certain(const struct sp_peak_walk *walk, uint32_t kind);

/* `object` is twice the kind, + 1 if it measures. */
void sp_peak_walk_birth(struct sp_peak_walk *walk, uint32_t object,
			uint64_t time_ns);
void sp_peak_walk_free(struct sp_peak_walk *walk, uint32_t object,
		       uint64_t time_ns);

/* Add up what is alive now, by kinds; *ret was initialised.  Where bytes were
 * hit is not known (tail_bytes).  0 or -ENOMEM. */
int sp_peak_walk_alive(const struct sp_peak_walk *walk,
		       struct sp_class_sums *ret);

void sp_peak_walk_end(struct sp_peak_walk *walk, struct sp_peak *ret);
void sp_peak_walk_destroy(struct sp_peak_walk *walk);
