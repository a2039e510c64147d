/* SPDX-License-Identifier: MIT */
#include "stats/bounds.h"

#include <math.h>

/* (E44) Totals that cannot hold a subset against its rest, since samples are
 * missing, still bound it. */
static void bound_all(struct sp_population *population,
		      const struct sp_profile *profile)
{
	double bytes = (double)population->slack_bytes, objects = bytes;

	population->most_bytes = population->most_objects = INFINITY;
	if (!profile->has_classes || sp_whole_of(profile).is_damaged ||
	    profile->missing_bytes_max == UINT64_MAX)
		return;
	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++) {
		bytes += (double)population->low[i].bytes;
		objects += (double)population->low[i].objects;
	}
	population->most_bytes = bytes;
	population->most_objects = objects;
}

/*
 * (E48) `below`: what is known of the classes before this one.  Objects of 1 to
 * 16 bytes are of 16 as far as their sums allow; what came in the slack is of
 * 16 at least.
 */
void sp_bounds_add_smallest(struct sp_smallest *best, uint32_t class,
			    const struct sp_class_total *total,
			    struct sp_class_total below, double slack_bytes,
			    uint64_t period_bytes)
{
	const bool is_tiny = class == 0 && total->bytes / 16 < total->objects;
	const double n = (double)below.objects + slack_bytes / 16;
	const double bytes = (double)below.bytes + slack_bytes;
	const uint64_t z = class ? sp_format_class_max(class - 1) + 1 : 16;

	if (best->bytes == UINT64_MAX)
		*best = is_tiny ? (struct sp_smallest){1, 0}
				: (struct sp_smallest){slack_bytes > 0 ? 16 : z,
						       0};
	if (is_tiny)
		sp_smallest_improve(best, z, (double)total->objects + n,
				    (double)total->bytes + bytes, period_bytes);
	else
		sp_smallest_improve(best, z, n, bytes, period_bytes);
}

static bool has_class(const struct sp_class_sums *sums, uint32_t class)
{
	for (uint32_t i = 0; i < sums->n_classes; i++)
		if (sums->classes[i].class == class)
			return true;
	return false;
}

/* Of all classes but those of the sums, which may be NULL; `bytes` is
 * UINT64_MAX if nothing was allocated in them. */
static struct sp_smallest smallest_but(const struct sp_population *population,
				       const struct sp_class_sums *sums)
{
	const uint64_t period = population->all.all.period_bytes;
	struct sp_smallest best = {.bytes = UINT64_MAX};
	struct sp_class_total below = {0};

	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++) {
		const struct sp_class_total *total = &population->low[i];

		if ((!total->objects && !population->slack_bytes) ||
		    (sums && has_class(sums, i)))
			continue;
		sp_bounds_add_smallest(&best, i, total, below,
				       (double)population->slack_bytes, period);
		below.objects += total->objects;
		below.bytes += total->bytes;
	}
	return best;
}

void sp_bounds_init(struct sp_population *population,
		    const struct sp_profile *profile)
{
	population->smallest = SP_SMALLEST_UNKNOWN;
	bound_all(population, profile);
	if (isinf(population->most_bytes))
		return;
	population->smallest = smallest_but(population, NULL);
	if (population->smallest.bytes == UINT64_MAX)
		population->smallest = SP_SMALLEST_UNKNOWN;
}

/* What was allocated in the classes of the sums. */
static double objects_of_classes(const struct sp_population *population,
				 const struct sp_class_sums *sums)
{
	double objects = (double)population->slack_bytes;

	for (uint32_t i = 0; i < sums->n_classes; i++)
		objects +=
			(double)population->low[sums->classes[i].class].objects;
	return objects;
}

/* (E49) Each class with samples counts as one hit, so that what the others have
 * together is no more than what is unseen behind so many. */
double sp_bounds_objects(const struct sp_population *population,
			 const struct sp_class_sums *sums, double confidence)
{
	const double r = (double)population->all.all.period_bytes;
	const double hits = sums->n_classes + 1.;
	const struct sp_smallest others = smallest_but(population, sums);
	const double most = objects_of_classes(population, sums);

	if (others.bytes == UINT64_MAX)
		return most;
	return most + others.more +
	       sp_estimator_p3_quantile(hits * r, hits * r * r,
					2 * hits * r * r * r,
					(1 + confidence) / 2) /
		       (double)others.bytes;
}

double sp_bounds_objects_value(const struct sp_population *population,
			       const struct sp_class_sums *sums, double value)
{
	return sums->n_classes == 1
		       ? fmin(value, objects_of_classes(population, sums))
		       : value;
}
