/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/wide.h"
#include "model/profile.h"
#include "stats/estimate.h"
#include "stats/sums.h"

/*
 * What was alive at a moment, of the objects that a selection names by their
 * birth, size and thread (its view and at_ns take no part).  An object is alive
 * from born_ns on and no longer at freed_ns.  The moments do not depend on the
 * samples, so that each interval by itself has the stated confidence (E21).
 */
struct sp_timeline_point {
	uint64_t time_ns; /* since the start */
	uint64_t samples;
	struct sp_interval live_bytes;
	struct sp_interval live_objects;
};

/* The time of point i of n >= 2 of equal distance from `from` to `to`, rounded
 * down to nanoseconds. */
static inline uint64_t sp_timeline_place(uint64_t from_ns, uint64_t to_ns,
					 size_t i, size_t n)
{
	return from_ns + (uint64_t)((sp_u128)(to_ns - from_ns) * i / (n - 1));
}

/* From where to where the points of a selection are: its beginning or, if that
 * is later, that of what the file has of the past; and its end (or the
 * profile's). */
void sp_timeline_span(const struct sp_profile *profile,
		      const struct sp_selection *selection,
		      uint64_t *ret_from_ns, uint64_t *ret_to_ns);

/*
 * `n` >= 2 points of equal distance, the first at the beginning of the span,
 * the last at its end.  If points of that selection were found while the file
 * was read, n is that of the plan.  By p3t if that is asked for, else by p3.  0
 * and out[0..n), or -ENOMEM and *err.
 */
int sp_timeline(const struct sp_profile *profile,
		const struct sp_selection *selection,
		const struct sp_estimation *how, struct sp_timeline_point *out,
		size_t n, struct sp_error *err);
