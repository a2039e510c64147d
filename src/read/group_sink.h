/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"
#include "read/order.h"
#include "read/sample_groups.h"
#include "read/plan.h"

/*
 * The sink that counts samples that ended: with those that are alike at their
 * birth, in the stretch of the run that they were born in, and in what the plan
 * asks of their end.
 */

/* Zero-initialise, but for `groups.key` and `plan`. */
struct sp_group_sink {
	const struct sp_plan *plan;
	struct sp_sample_groups groups;
	uint64_t *marks; /* times at which a stretch begins, ascending */
	size_t n_marks, marks_room;
};

/* A stretch begins; none of the samples before was born later.  0 or -ENOMEM.
 */
int sp_group_sink_mark(struct sp_group_sink *sink, uint64_t time_ns);

/* A sample of the group with that position has ended by the free `end`; NULL:
 * no end is known.  0 or -ENOMEM. */
int sp_group_sink_classify(struct sp_group_sink *sink, uint32_t group,
			   uint64_t born_ns, uint64_t offset_bytes,
			   const struct sp_event *end);
static inline int sp_group_sink_add(struct sp_group_sink *sink, uint32_t group,
				    uint64_t born_ns, uint64_t offset_bytes,
				    const struct sp_event *end)
{
	const struct sp_plan *plan = sink->plan;

	/* Most readings ask nothing of when it was. */
	if (sink->n_marks || plan->n_cuts || plan->has_lifetimes ||
	    plan->has_temporary)
		return sp_group_sink_classify(sink, group, born_ns,
					      offset_bytes, end);
	return sp_sample_groups_add(&sink->groups, group, 0,
				    sink->groups.groups[group].key.size_bytes -
					    offset_bytes,
				    end ? (end->when >> 1) - born_ns : 0);
}

/* A sample with what its group says. */
struct sp_sample sp_group_sink_sample(const struct sp_group_sink *sink,
				      uint32_t group);

/* All that were counted become the groups of a profile, and part of the sums of
 * its threads.  0 or -ENOMEM. */
int sp_group_sink_end(struct sp_group_sink *sink, struct sp_profile *profile);

void sp_group_sink_done(struct sp_group_sink *sink);
