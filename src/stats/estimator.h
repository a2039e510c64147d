/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"

/*
 * Estimates with intervals, from additive accumulators (docs/statistics.md).
 *
 * An accumulator is a handful of sums over samples, each sample unbiased by
 * its own period before it is added.  Accumulators of disjoint sets of samples
 * merge by addition: over stacks, threads, files and periods.
 */
struct sp_acc {
	uint64_t samples;
	/* Exact integer sums over the samples; they stop at UINT64_MAX. */
	uint64_t size_bytes; /* sum of sizes */
	/* Samples that were certain to be taken (pi = 1): no trials. */
	uint64_t sure_samples;
	uint64_t sure_bytes;     /* sum of their sizes */
	uint64_t tail_bytes;     /* of the others: size - offset of the hit */
	uint64_t dotnet_samples; /* drawn by .NET's law */
	/* Sums of the unbiased terms, in bytes and powers of it (E3, E4). */
	double est_bytes; /* sum of w = z / pi */
	double k2;        /* sum of w^2 q */
	double k3;        /* sum of w^3 q (1 + q) */
	double kz;        /* sum of w^2 q z */
	double est_count; /* sum of 1 / pi */
	double c2;        /* sum of q / pi^2 */
	double c3;        /* sum of q (1 + q) / pi^3 */
	/* The largest and the smallest period given to sp_acc_init or seen in
	 * an added sample: what was not sampled is spoken of with the largest
	 * (E9).  .NET's law means an R shorter by half a byte (E15), and the
	 * difference is on the safe side. */
	uint64_t period_bytes;
	uint64_t period_min_bytes;
};

struct sp_interval {
	double value;
	double lo;
	double hi;
};

/* An empty accumulator of a profile recorded with period_bytes >= 1. */
void sp_acc_init(struct sp_acc *acc, uint64_t period_bytes);

/*
 * Add one sample: an object of size_bytes >= 1 whose byte number offset_bytes
 * (0-based, < size_bytes) was hit under period_bytes >= 1 of that law.
 */
void sp_acc_add(struct sp_acc *acc, const struct sp_law_used *law,
		uint64_t size_bytes, uint64_t offset_bytes,
		uint64_t period_bytes);

/* n samples of objects of that size, of which the bytes from the one that was
 * hit to the end are tail_bytes together. */
void sp_acc_add_many(struct sp_acc *acc, const struct sp_law_used *law,
		     uint64_t size_bytes, uint64_t n, uint64_t tail_bytes,
		     uint64_t period_bytes);

/*
 * A peak is at a moment that samples chose.  So one in SP_PEAK_CHOOSES samples
 * chooses the moment, and takes no part in what the others then measure.
 */
#define SP_PEAK_CHOOSES 4

/*
 * Add n samples that were alive at the moment of a peak: those that chose it
 * are known, and add themselves; the others estimate all that did not choose
 * (E22, E43).
 */
void sp_acc_add_measured(struct sp_acc *acc, const struct sp_law_used *law,
			 uint64_t size_bytes, uint64_t n, uint64_t tail_bytes,
			 uint64_t period_bytes, bool chose);

/* The mean distance in bytes of samples that measure; 1 stays 1. */
uint64_t sp_acc_measured_period(uint64_t period_bytes);

/* Samples that are summed up with that share of their bytes, 0 to 1 (E60); how
 * many objects they stand for stays. */
void sp_acc_share(struct sp_acc *acc, double share);

/* What one sample adds if it measures (E22): from what it adds otherwise.  Its
 * period stays. */
struct sp_acc sp_acc_measured(struct sp_acc one);

/* dst += src.  Both were initialised.  Commutative and associative up to
 * rounding. */
void sp_acc_merge(struct sp_acc *dst, const struct sp_acc *src);

/*
 * dst -= src, of which src's samples are a subset.  What rounding leaves below
 * zero is zero, and without samples everything is; the periods stay.
 */
void sp_acc_subtract(struct sp_acc *dst, const struct sp_acc *src);

/* Inclusion probability pi = -expm1(-z / R) of an object of size_bytes; 1 for
 * period 1 (E2). */
double sp_inclusion_probability(uint64_t size_bytes, uint64_t period_bytes);

/*
 * The quantile at probability `prob` in (0, 1) of the shifted gamma
 * distribution with the cumulants k1, k2 >= 0 and k3 (E7).
 */
double sp_estimator_p3_quantile(double k1, double k2, double k3, double prob);

/*
 * The third cumulant with which that distribution of an amount that cannot be
 * negative does not begin above 0: k3, or less (E7).
 */
double sp_estimator_end_at_zero(double k1, double k2, double k3);

/* What half a step of a lattice of mean step `step_bytes` costs an upper limit
 * that a phantom of period_bytes > 0 smooths already (delta of E8). */
double sp_estimator_lattice(double step_bytes, double period_bytes);

/* An interval of these limits, moved out to the value where rounding, or
 * limits that do not know the weights, leave it outside. */
struct sp_interval sp_interval_around(double value, double lo, double hi);

/*
 * All intervals are at `confidence` in (0, 1), for example 0.95, and always lo
 * <= value <= hi.  Those below are valid for any subset of the allocations that
 * was chosen without looking at the samples: the upper limit allows for objects
 * that were not sampled at all.
 */

/* Bytes allocated by the subset that `acc` stands for: the weighted
 * (Horvitz-Thompson) estimate with three-cumulant limits (E8, E9). */
struct sp_interval sp_estimate_bytes_p3(const struct sp_acc *acc,
					double confidence);

/* Their lower limits alone: the truth is below with probability `prob` at most,
 * 0 < prob < 1.  Not moved to the value. */
double sp_lower_bytes_p3(const struct sp_acc *acc, double prob);
double sp_lower_objects_p3(const struct sp_acc *acc, double prob);

/* What nobody saw of B bytes are at most B / bytes + more objects (E48). */
struct sp_smallest {
	uint64_t bytes; /* >= 1 */
	double more;
};

/* Where nothing is known of sizes: no claim is made about objects of less than
 * 16 bytes (E11). */
#define SP_SMALLEST_UNKNOWN ((struct sp_smallest){16, 0})

/* Number of objects: weighted estimate, three-cumulant limits with a phantom
 * object of that size (E11). */
struct sp_interval sp_estimate_objects_p3(const struct sp_acc *acc,
					  struct sp_smallest smallest,
					  double confidence);

/* Of objects that are smaller than bound_bytes, and all of which are known to
 * be `objects` and `bytes` together: the bound, if the upper limit is less with
 * it than with *best. */
void sp_smallest_improve(struct sp_smallest *best, uint64_t bound_bytes,
			 double objects, double bytes, uint64_t period_bytes);

/* Share of the subset in the bytes of the subset and `rest` together, whose
 * total is not known (E12); in [0, 1], value 0 if there are no samples. */
struct sp_interval sp_estimate_share(const struct sp_acc *acc,
				     const struct sp_acc *rest,
				     double confidence);

/* The confidence at which each of n intervals has to be taken so that all of
 * them together are right with `confidence` (E19); n = 0 is as 1. */
double sp_confidence_of_each(double confidence, uint64_t n);
