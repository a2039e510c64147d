/* SPDX-License-Identifier: MIT */
#ifndef SP_STATS_CURVE_H
#define SP_STATS_CURVE_H

#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "stats/peak.h"
#include "stats/tally.h"

/* What is alive at the points of a plan, while a profile is folded. */
struct sp_curve {
	struct sp_tally *points;
	size_t n;         /* of them that are over */
	size_t n_points;  /* of the plan */
	uint64_t next_ns; /* the next one; SP_NEVER: there is none */
	uint64_t duration_ns;
	uint64_t period_bytes;
};

/* 0 or -ENOMEM; borrows nothing. */
int sp_curve_init(struct sp_curve *curve, const struct sp_profile *profile,
		  size_t n_points);

/* All points before that time are over: what is alive now is alive at them.  0
 * or -ENOMEM. */
int sp_curve_pass(struct sp_curve *curve, const struct sp_peak_walk *walk,
		  uint64_t time_ns);

/* The points become the profile's.  0 or -ENOMEM. */
int sp_curve_give(const struct sp_curve *curve, struct sp_profile *profile);

void sp_curve_done(struct sp_curve *curve);

#endif
