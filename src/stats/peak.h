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
	/* The maximum of a noisy curve lies above the curve's maximum.  The
	 * value is free of that, but never less than the estimate of what is
	 * alive at the end; the limits contain the true maximum (E24, E25).
	 */
	struct sp_interval bytes;
	uint64_t time_ns; /* since the start, where the estimated curve is
			   * highest for the first time; 0 without samples */
	uint64_t samples; /* alive then */
	/* The moments that the halves chose, each of which the other half
	 * measures; SP_NEVER: the end.  What the rows of a peak are of (E43).
	 */
	uint64_t chosen_ns[2];
	double raw_bytes; /* the estimated curve there: too high on average */
};

/* At `confidence` in (0, 1).  0 and *ret, or -ENOMEM and *err. */
int sp_peak(const struct sp_profile *profile,
	    const struct sp_selection *selection, double confidence,
	    struct sp_peak *ret, struct sp_error *err);

/* The peak is no less than what is alive at the end, which exact totals may
 * know better than (E24) does; rows are of the end then. */
static inline void sp_peak_raise(struct sp_peak *peak, double end_bytes)
{
	if (!(end_bytes > peak->bytes.value))
		return;
	peak->bytes.value = end_bytes;
	peak->bytes.hi = fmax(peak->bytes.hi, end_bytes);
	peak->chosen_ns[0] = peak->chosen_ns[1] = SP_NEVER;
}

/* Halves are chosen by coins: the same in every report, another in every run,
 * and without regard to when an object was alive. */
uint64_t sp_peak_coins(uint64_t seed, uint64_t start_unix_ns);

/* The half, 0 or 1, of a sample with that id and offset. */
unsigned int sp_peak_toss(uint64_t coins, uint64_t id, uint64_t offset_bytes);

/* That of a sample of the profile, or of one that stands for a group if the
 * plan had cuts. */
unsigned int sp_peak_half(const struct sp_profile *profile,
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

/* Are objects of that kind always sampled?  Then the half does not matter. */
bool sp_peak_walk_is_certain(const struct sp_peak_walk *walk, uint32_t kind);

/* `object` is twice the kind, + 1 if it is in half 1. */
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
