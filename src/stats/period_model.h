/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * What a sampling law will give, before anything is sampled: from objects whose
 * sizes are known, or estimated, to numbers of samples and to errors
 * (docs/statistics.md, "Choosing a period").
 */
struct sp_period_model_class {
	double objects;    /* how many, >= 0; need not be whole */
	double size_bytes; /* of each, >= 1 */
};

/* Everything a question is about; the classes are borrowed. */
struct sp_period_model {
	const struct sp_period_model_class *classes;
	size_t n;
};

/* Sum of the objects, and of their bytes. */
double sp_period_model_objects(const struct sp_period_model *model);
double sp_period_model_bytes(const struct sp_period_model *model);

/* Samples expected with a period of period_bytes >= 1 (E2). */
double sp_period_model_samples(const struct sp_period_model *model,
			       double period_bytes);

/* Variance of the estimated bytes (E3), in bytes squared: what K2 of (E4) is on
 * average. */
double sp_period_model_variance(const struct sp_period_model *model,
				double period_bytes);

/* Variance of the estimated number of objects. */
double sp_period_model_count_variance(const struct sp_period_model *model,
				      double period_bytes);

/*
 * Half of the width of an interval at `confidence` in (0, 1) of a normal law
 * with that variance, relative to the bytes; 0 if there are none.
 */
double sp_period_model_error(const struct sp_period_model *model,
			     double period_bytes, double confidence);

/* The largest period, 1 to 2^40, that expects at least so many samples, whose
 * error is at most error > 0, and whose variance is at most that; 1 if only
 * that one does. */
double sp_period_model_period_for_samples(const struct sp_period_model *model,
					  double samples);
double sp_period_model_period_for_error(const struct sp_period_model *model,
					double error, double confidence);
double sp_period_model_period_for_variance(const struct sp_period_model *model,
					   double variance);

/*
 * The law that estimates the bytes of the whole model with the least variance
 * of all that take each object with a probability that depends on its size, and
 * expect so many samples: min(1, size / threshold) (E38).  `samples` is more
 * than 0 and not more than there are objects.
 */
double sp_period_model_best_threshold(const struct sp_period_model *model,
				      double samples);

/* Variance of the estimated bytes under it. */
double sp_period_model_best_variance(const struct sp_period_model *model,
				     double threshold_bytes);
