/* SPDX-License-Identifier: MIT */
#ifndef SP_PROFILE_ESTIMATOR_H
#define SP_PROFILE_ESTIMATOR_H

#include <stdint.h>

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
	uint64_t tail_bytes; /* sum of (size - offset of the hit byte) */
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
	 * (E9). */
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
 * (0-based, < size_bytes) was hit under period_bytes >= 1.
 */
void sp_acc_add(struct sp_acc *acc, uint64_t size_bytes, uint64_t offset_bytes,
		uint64_t period_bytes);

/* dst += src.  Both were initialised.  Commutative and associative up to
 * rounding. */
void sp_acc_merge(struct sp_acc *dst, const struct sp_acc *src);

/* Inclusion probability pi = -expm1(-z / R) of an object of size_bytes; 1 for
 * period 1 (E2). */
double sp_inclusion_probability(uint64_t size_bytes, uint64_t period_bytes);

/*
 * The quantile at probability `prob` in (0, 1) of the shifted gamma
 * distribution with the cumulants k1, k2 >= 0 and k3 (E7).
 */
double sp_estimator_p3_quantile(double k1, double k2, double k3, double prob);

/*
 * All intervals below are at `confidence` in (0, 1), for example 0.95, and
 * always lo <= value <= hi.  They are valid for any subset of the allocations
 * that was chosen without looking at the samples: the upper limit allows for
 * objects that were not sampled at all.
 */

/* Bytes allocated by the subset that `acc` stands for: the weighted
 * (Horvitz-Thompson) estimate with negative binomial limits (E6); with
 * sp_estimate_bytes_p3's limits if the periods differ (E9). */
struct sp_interval sp_estimate_bytes(const struct sp_acc *acc,
				     double confidence);

/* The same value with three-cumulant limits (E8): as wide for small objects,
 * much narrower for objects of the order of the period and above. */
struct sp_interval sp_estimate_bytes_p3(const struct sp_acc *acc,
					double confidence);

/*
 * Bytes of the subset when the exact number of bytes `total_bytes` of the
 * subset and `rest` together is known (E10).  The values of a subset and of
 * its rest add up to the total.  A total below the sampled bytes cannot be the
 * total of these two: the result is then that of sp_estimate_bytes_p3.
 */
struct sp_interval sp_estimate_bytes_of_total(const struct sp_acc *acc,
					      const struct sp_acc *rest,
					      uint64_t total_bytes,
					      double confidence);

/* Share of the subset in the bytes of the subset and `rest` together, whose
 * total is not known (E12); in [0, 1], value 0 if there are no samples. */
struct sp_interval sp_estimate_share(const struct sp_acc *acc,
				     const struct sp_acc *rest,
				     double confidence);

/* Number of objects: weighted estimate, three-cumulant limits with a phantom
 * object of 16 bytes (E11). */
struct sp_interval sp_estimate_objects(const struct sp_acc *acc,
				       double confidence);

#endif
