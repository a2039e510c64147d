/* SPDX-License-Identifier: MIT */
#pragma once

#include "stats/estimator.h"

/*
 * Amounts of a fleet of which only a share of the processes was recorded
 * (docs/statistics.md, E50).  A unit is what was drawn together: a program that
 * started, with its forked children.  Each is one trial, as an object is one of
 * the sampling by bytes, so what is between units adds to the cumulants of what
 * is within them.  All sums of a unit enter at once: those of parts of a unit
 * do not add up.
 */
struct sp_two_stage {
	struct sp_acc bytes;   /* for sp_estimate_bytes_p3() */
	struct sp_acc objects; /* for sp_estimate_objects_p3() */
};

/* Nothing, of a fleet whose largest period is period_bytes and whose smallest
 * probability of a unit is `fraction`, in (0, 1]. */
void sp_two_stage_init(struct sp_two_stage *sum, uint64_t period_bytes,
		       double fraction);

/* The samples of one unit that was recorded with that probability, in (0, 1].
 */
void sp_two_stage_add(struct sp_two_stage *sum, const struct sp_acc *unit,
		      double fraction);

/* The same of an amount that is exactly known of a unit; it enters `bytes`. */
void sp_two_stage_add_exact(struct sp_two_stage *sum, double amount,
			    double fraction);

/* With a level in (0, 1); of a row that is shown because it has samples. */
struct sp_interval sp_two_stage_bytes(const struct sp_two_stage *sum,
				      double confidence);
struct sp_interval sp_two_stage_objects(const struct sp_two_stage *sum,
					double confidence);
