/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "read/plan.h"
#include "read/sample_groups.h"
#include "stats/curve.h"
#include "stats/peak.h"

/*
 * The sinks that all files of a reading feed together, in the order of time:
 * the peak, and the points of a timeline.
 */
struct sp_sinks {
	const struct sp_plan *plan;
	struct sp_selection births; /* of the plan, with survivors */
	bool has_all;               /* these are everything */
	struct sp_peak_walk *walk;  /* NULL: nobody asks */
	struct sp_curve curve;
};

/*
 * `profile` has the law, has_frees, window_ns, and the period_bytes and
 * duration_ns that it will have; it and `plan` outlive the sinks.  0 or
 * -ENOMEM.
 */
int sp_sinks_init(struct sp_sinks *sinks, const struct sp_profile *profile,
		  const struct sp_plan *plan);

/* What stands for a sample in the walk: twice its kind, + 1 if it measures; or
 * this if the walk is of others, or there is none. */
#define SP_SINKS_NONE UINT32_MAX

/* Of some of the samples: is the walk of that one?  Its thread is a position in
 * that profile of its file; `born_ns` is on the clock of all files. */
bool sp_sinks_choose(const struct sp_sinks *sinks,
		     const struct sp_profile *profile,
		     const struct sp_sample *sample, uint64_t born_ns);

/* The same of any samples: most walks are of all. */
static inline bool sp_sinks_want(const struct sp_sinks *sinks,
				 const struct sp_profile *profile,
				 const struct sp_sample *sample,
				 uint64_t born_ns)
{
	return sinks->walk &&
	       (sinks->has_all ||
		sp_sinks_choose(sinks, profile, sample, born_ns));
}

/* Samples of that group come: find its kind, if it has none yet.  0 or
 * -ENOMEM. */
int sp_sinks_find_kind(const struct sp_sinks *sinks,
		       struct sp_sample_groups_group *group);
static inline int sp_sinks_meet(const struct sp_sinks *sinks,
				struct sp_sample_groups_group *group)
{
	return !sinks->walk || group->kind != UINT32_MAX
		       ? 0
		       : sp_sinks_find_kind(sinks, group);
}

/* In the order of time, as sp_peak_walk_birth() and sp_peak_walk_free(). */
static inline void sp_sinks_birth(const struct sp_sinks *sinks, uint32_t object,
				  uint64_t time_ns)
{
	if (sinks->walk && object != SP_SINKS_NONE)
		sp_peak_walk_birth(sinks->walk, object, time_ns);
}

static inline void sp_sinks_free(const struct sp_sinks *sinks, uint32_t object,
				 uint64_t time_ns)
{
	if (sinks->walk && object != SP_SINKS_NONE)
		sp_peak_walk_free(sinks->walk, object, time_ns);
}

/* Everything before that time was told.  0 or -ENOMEM. */
static inline int sp_sinks_pass(struct sp_sinks *sinks, uint64_t time_ns)
{
	return sinks->walk ? sp_curve_pass(&sinks->curve, sinks->walk, time_ns)
			   : 0;
}

/* All was passed: what the sinks have becomes the profile's.  0 or -ENOMEM. */
int sp_sinks_end(struct sp_sinks *sinks, struct sp_profile *profile);

/* Also of sinks that are all zero. */
void sp_sinks_done(struct sp_sinks *sinks);
