/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "model/profile.h"
#include "read/plan.h"
#include "stats/curve.h"
#include "stats/peak.h"

/*
 * The sinks that all files of a reading feed together, in the order of time:
 * the peak, and the points of a timeline.
 */
struct sp_sinks {
	const struct sp_plan *plan;
	struct sp_peak_walk *walk; /* NULL: nobody asks */
	struct sp_curve curve;
};

/*
 * `profile` has the law, has_frees, window_ns, and the period_bytes and
 * duration_ns that it will have; it and `plan` outlive the sinks.  0 or
 * -ENOMEM.
 */
int sp_sinks_init(struct sp_sinks *sinks, const struct sp_profile *profile,
		  const struct sp_plan *plan);

/* All was passed: what the sinks have becomes the profile's.  0 or -ENOMEM. */
int sp_sinks_end(struct sp_sinks *sinks, struct sp_profile *profile);

/* Also of sinks that are all zero. */
void sp_sinks_done(struct sp_sinks *sinks);
