/* SPDX-License-Identifier: MIT */
#pragma once

#include "stats/estimate.h"

/*
 * Estimates that are held against exact totals as sums over samples (E46), so
 * that whatever adds up samples by itself shows what the rows of a report do:
 * est_bytes and est_count of an accumulator become what its samples add to
 * sp_estimate_bytes_value() and sp_estimate_objects_value().  The spread goes
 * with what they gain (E40).
 *
 * Rows differ from such sums only where they are cut, at what was seen of them
 * or at all that was allocated: a cut of a row is none of its parts; and a row
 * that has all samples has the totals of strata that have none, too.
 */

/* Set the gains of a population, of which those of classes without samples are
 * not asked for. */
void sp_adjust_init(struct sp_population *population);

/* Samples of one size class.  Nothing where values are sums of weights already:
 * without totals, or by another method than p3t. */
void sp_adjust(const struct sp_estimation *how, uint32_t class,
	       struct sp_acc *acc);

/* All samples of the sums; what is measured (is_measured) is as it is. */
struct sp_acc sp_adjusted(const struct sp_estimation *how,
			  const struct sp_class_sums *sums);
