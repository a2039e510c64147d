/* SPDX-License-Identifier: MIT */
#pragma once

#include "stats/estimate.h"

/*
 * What exact totals say of a row whatever its samples say: it is no more than
 * all that was allocated (E44), its small objects are no more than there are
 * (E48), and those of the size classes in which it has samples no more than
 * were allocated in these (E49).
 */

/* Set most_bytes, most_objects and smallest of a population that has its
 * totals and samples. */
void sp_bounds_init(struct sp_population *population,
		    const struct sp_profile *profile);

/* The classes of a set, in ascending order, into *best, whose `bytes` begin as
 * UINT64_MAX; `below` are the sums of those before this one (E48). */
void sp_bounds_add_smallest(struct sp_smallest *best, uint32_t class,
			    const struct sp_class_total *total,
			    struct sp_class_total below, double slack_bytes,
			    uint64_t period_bytes);

/* (E49) An upper limit of the objects of a subset that has samples; and its
 * value, which is cut at the total of its class if it has one only.  Not before
 * most_objects is known. */
double sp_bounds_objects(const struct sp_population *population,
			 const struct sp_class_sums *sums, double confidence);
double sp_bounds_objects_value(const struct sp_population *population,
			       const struct sp_class_sums *sums, double value);
