/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stats/estimator.h"

/*
 * Intervals for a subset of allocations that are divided into strata, of each
 * of which the exact total is known (E10, E17).
 */
struct sp_stratum {
	uint8_t number;     /* what its user knows it by */
	struct sp_acc part; /* samples of the subset in this stratum */
	struct sp_acc rest; /* the stratum's other samples */
	/* What was allocated in the stratum is at least that. */
	double total_bytes;
	double total_objects;
	struct sp_smallest smallest; /* what can be unseen in it */
	/* If objects_alone: what exact totals of the stratum's classes add to
	 * the part's value (E49). */
	double objects_gain;
	/* Its total is a bound and no more: samples say too little of the
	 * rest to hold the subset against it. */
	bool bytes_alone;
	bool objects_alone;
};

#define SP_STRATA_MAX 256u

/*
 * Bytes, and objects, of the subset: n <= SP_STRATA_MAX strata, of which one
 * at most has no sample of the subset.  All strata together have at most
 * slack_bytes more than their totals.  A stratum whose total is less than what
 * was sampled of it, and the slack does not account for that, is estimated
 * from its samples alone.  In each stratum that is not "alone", values of
 * a subset and of its rest add up to the total.
 */
struct sp_interval sp_strata_bytes(const struct sp_stratum *strata, uint32_t n,
				   double slack_bytes, double confidence);
struct sp_interval sp_strata_objects(const struct sp_stratum *strata,
				     uint32_t n, double slack_bytes,
				     double confidence);

/* Their lower limits alone: the truth is below with probability `prob` at most,
 * 0 < prob < 1.  Not moved to the value. */
double sp_strata_bytes_lower(const struct sp_stratum *strata, uint32_t n,
			     double slack_bytes, double prob);
double sp_strata_objects_lower(const struct sp_stratum *strata, uint32_t n,
			       double slack_bytes, double prob);

/*
 * What the total adds to the value of each sample of a stratum, for each unit
 * of its variance (k2, c2): (E10) is in proportion to that, so that values are
 * sums over samples (E46).  0 of a stratum that is "alone".
 */
double sp_stratum_bytes_gain(const struct sp_stratum *stratum,
			     double slack_bytes);
double sp_stratum_objects_gain(const struct sp_stratum *stratum,
			       double slack_bytes);

/* Their values alone, without the limits, which take most of the time. */
double sp_strata_bytes_value(const struct sp_stratum *strata, uint32_t n,
			     double slack_bytes);
double sp_strata_objects_value(const struct sp_stratum *strata, uint32_t n,
			       double slack_bytes);
