/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "stats/estimator.h"

/* With fewer samples in all rows together they say next to nothing. */
#define SP_AMOUNTS_SAMPLES 12

/*
 * Sums of an amount that belongs to each object and is not its size, such as
 * the free memory beside it, from the objects that were sampled (E70 to E72 of
 * docs/statistics.md).
 *
 * Each object also has a second amount whose sum over all objects may be known
 * by other means: estimates are then held against that sum.
 */
struct sp_amounts {
	uint64_t samples; /* of which there is some of either amount */
	double period_bytes;
	double least_bytes; /* size of the smallest; INFINITY: none */
	/* Of the first amount, y. */
	double seen;  /* sum over the samples */
	double value; /* sum of y / pi */
	double most;  /* the largest */
	/* Of the second, x. */
	double other_value; /* sum of x / pi */
	double other_most;  /* the largest */
	/* Sums of q / pi^2 times y y, y x, x x; and of q (1 + q) / pi^3 times
	 * y y y, y y x, y x x, x x x. */
	double k2[3];
	double k3[4];
};

void sp_amounts_init(struct sp_amounts *amounts, uint64_t period_bytes);

/* Add a sampled object, y >= 0 and x >= 0. */
void sp_amounts_add(struct sp_amounts *amounts, const struct sp_law_used *law,
		    uint64_t size_bytes, uint64_t period_bytes, double y,
		    double x);

/* dst += src, of other samples. */
void sp_amounts_merge(struct sp_amounts *dst, const struct sp_amounts *src);

/* What is known of the sum of x over all objects: it is within these. */
struct sp_amounts_known {
	bool is_known;
	double lo, hi;
};

/*
 * The sum of y over the objects of a row, of which `part` are the samples, at
 * `confidence` in (0, 1): for rows that are shown because they have a sample.
 * `all` are the samples of all rows, `known` the sum of x over all of them.
 * lo <= value <= hi; a point if everything was recorded.  Without a sample hi
 * is what is known, or INFINITY.
 */
struct sp_interval sp_amounts_estimate(const struct sp_amounts *part,
				       const struct sp_amounts *all,
				       struct sp_amounts_known known,
				       double confidence);

/* What a sample of a row adds to its value, which is the sum of these. */
double sp_amounts_share(const struct sp_amounts *all,
			struct sp_amounts_known known,
			const struct sp_law_used *law, uint64_t size_bytes,
			uint64_t period_bytes, double y, double x);

/* Are the sums good enough to be held against what is known? */
bool sp_amounts_can_hold(const struct sp_amounts *all,
			 struct sp_amounts_known known);

/* ---- which period ---- */

/* One object that was sampled, of as many as 1 / pi. */
struct sp_amounts_object {
	uint64_t size_bytes;
	uint64_t period_bytes;
	double y;
};

/* The longest period, a power of two, at most `longest`, at which half of an
 * interval would be `error` of the sum; 1 if only that one is short enough.  0:
 * there are no objects with an amount (E72). */
uint64_t sp_amounts_period_for(const struct sp_amounts_object *objects,
			       uint64_t n, const struct sp_law_used *law,
			       double error, double confidence,
			       uint64_t longest);
