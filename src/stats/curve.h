/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "stats/peak.h"
#include "stats/size_class_sums.h"

/* What is alive at the points of a timeline, while a file is read. */
struct sp_curve {
	struct sp_class_sums *points;
	size_t n;                /* of them that are over */
	size_t n_points;         /* of the plan */
	uint64_t next_ns;        /* the next one; SP_NEVER: there is none */
	uint64_t from_ns, to_ns; /* the first and the last */
	uint64_t period_bytes;
};

/* Points of what the selection names by birth.  0 or -ENOMEM; borrows nothing.
 */
int sp_curve_init(struct sp_curve *curve, const struct sp_profile *profile,
		  const struct sp_selection *births, size_t n_points);

/* All points before that time are over: what is alive now is alive at them.  0
 * or -ENOMEM. */
int sp_curve_take(struct sp_curve *curve, const struct sp_peak_walk *walk,
		  uint64_t time_ns);
static inline int sp_curve_pass(struct sp_curve *curve,
				const struct sp_peak_walk *walk,
				uint64_t time_ns)
{
	return time_ns > curve->next_ns ? sp_curve_take(curve, walk, time_ns)
					: 0;
}

/* The points become the profile's.  0 or -ENOMEM. */
int sp_curve_give(const struct sp_curve *curve, struct sp_profile *profile);

void sp_curve_done(struct sp_curve *curve);
