/* SPDX-License-Identifier: MIT */
#include "stats/period_model.h"

#include <math.h>
#include <stdbool.h>

#include "stats/special.h"

/* Of a period, as the agent takes it. */
#define PERIOD_MAX 0x1p40

/* Halvings of a logarithm of at most 40 bits: to the last digit. */
#define STEPS 60

double sp_period_model_objects(const struct sp_period_model *model)
{
	double sum = 0;

	for (size_t i = 0; i < model->n; i++)
		sum += model->classes[i].objects;
	return sum;
}

double sp_period_model_bytes(const struct sp_period_model *model)
{
	double sum = 0;

	for (size_t i = 0; i < model->n; i++)
		sum += model->classes[i].objects * model->classes[i].size_bytes;
	return sum;
}

/* Period 1 takes everything: it is no lottery. */
double sp_period_model_samples(const struct sp_period_model *model,
			       double period_bytes)
{
	double sum = 0;

	if (period_bytes <= 1)
		return sp_period_model_objects(model);
	for (size_t i = 0; i < model->n; i++)
		sum -= model->classes[i].objects *
		       expm1(-model->classes[i].size_bytes / period_bytes);
	return sum;
}

/* z^2 q / pi of each object, with q / pi = 1 / expm1(x); z is its size, or 1.
 */
static double variance_of(const struct sp_period_model *model,
			  double period_bytes, bool counts)
{
	double sum = 0;

	if (period_bytes <= 1)
		return 0;
	for (size_t i = 0; i < model->n; i++) {
		const struct sp_period_model_class *c = &model->classes[i];
		const double z = counts ? 1 : c->size_bytes;

		sum += c->objects * z * z / expm1(c->size_bytes / period_bytes);
	}
	return sum;
}

double sp_period_model_variance(const struct sp_period_model *model,
				double period_bytes)
{
	return variance_of(model, period_bytes, false);
}

double sp_period_model_count_variance(const struct sp_period_model *model,
				      double period_bytes)
{
	return variance_of(model, period_bytes, true);
}

double sp_period_model_error(const struct sp_period_model *model,
			     double period_bytes, double confidence)
{
	const double bytes = sp_period_model_bytes(model);

	if (bytes <= 0)
		return 0;
	return sp_special_normal_quantile((1 + confidence) / 2) *
	       sqrt(sp_period_model_variance(model, period_bytes)) / bytes;
}

/*
 * The largest period for which `is_enough` holds, which does for all smaller
 * ones too.
 */
static double largest_period(bool (*is_enough)(const void *arg, double period),
			     const void *arg)
{
	double low = 1, high = PERIOD_MAX;

	if (is_enough(arg, high))
		return high;
	for (int i = 0; i < STEPS; i++) {
		const double middle = sqrt(low * high);

		if (is_enough(arg, middle))
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct wanted {
	const struct sp_period_model *model;
	double amount; /* samples, error or variance */
	double confidence;
};

static bool has_samples(const void *arg, double period)
{
	const struct wanted *w = arg;

	return sp_period_model_samples(w->model, period) >= w->amount;
}

static bool has_error(const void *arg, double period)
{
	const struct wanted *w = arg;

	return sp_period_model_error(w->model, period, w->confidence) <=
	       w->amount;
}

static bool has_variance(const void *arg, double period)
{
	const struct wanted *w = arg;

	return sp_period_model_variance(w->model, period) <= w->amount;
}

double sp_period_model_period_for_samples(const struct sp_period_model *model,
					  double samples)
{
	return largest_period(has_samples, &(struct wanted){model, samples, 0});
}

double sp_period_model_period_for_error(const struct sp_period_model *model,
					double error, double confidence)
{
	return largest_period(has_error,
			      &(struct wanted){model, error, confidence});
}

double sp_period_model_period_for_variance(const struct sp_period_model *model,
					   double variance)
{
	return largest_period(has_variance,
			      &(struct wanted){model, variance, 0});
}

static double best_samples(const struct sp_period_model *model,
			   double threshold)
{
	double sum = 0;

	for (size_t i = 0; i < model->n; i++)
		sum += model->classes[i].objects *
		       fmin(1, model->classes[i].size_bytes / threshold);
	return sum;
}

/* Between the smallest size, where all are taken, and bytes / samples. */
double sp_period_model_best_threshold(const struct sp_period_model *model,
				      double samples)
{
	double low = 1, high = fmax(1, sp_period_model_bytes(model) / samples);

	for (int i = 0; i < STEPS; i++) {
		const double middle = sqrt(low * high);

		if (best_samples(model, middle) >= samples)
			low = middle;
		else
			high = middle;
	}
	return low;
}

double sp_period_model_best_variance(const struct sp_period_model *model,
				     double threshold_bytes)
{
	double sum = 0;

	/* z^2 (1 - p) / p with p = z / threshold */
	for (size_t i = 0; i < model->n; i++) {
		const struct sp_period_model_class *c = &model->classes[i];

		if (c->size_bytes < threshold_bytes)
			sum += c->objects * c->size_bytes *
			       (threshold_bytes - c->size_bytes);
	}
	return sum;
}
