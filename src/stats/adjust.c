/* SPDX-License-Identifier: MIT */
#include "stats/adjust.h"

#include <math.h>

/* (E40) What was not seen of a class, `unseen` of `seen` and that, becomes so
 * many times as much. */
static struct sp_gain gain_of(double by_k2, double seen, double unseen,
			      double variance)
{
	const double small = unseen > 0 ? unseen / (seen + unseen) : 0;
	const double times =
		unseen > 0 ? fmax(1 + by_k2 * variance / unseen, 0) : 1;

	return (struct sp_gain){
		.by_k2 = by_k2,
		.k2 = 1 - small + small * times * times,
		.k3 = 1 - small + small * times * times * times,
	};
}

/*
 * (E49) Where counts of a stratum are alone, those of each of its classes add
 * up to the class's own total.  Objects of 1 to 16 bytes do not unless they
 * seem to be more: unseen small ones are not the others'.
 */
static double gain_of_class(const struct sp_population *population,
			    const struct sp_class_sums_class *c)
{
	const double slack = (double)population->slack_bytes;
	const double total = (double)population->low[c->class].objects;
	const double less = c->class ? fmax(total - c->acc.est_count, 0) : 0;
	const double more = fmax(c->acc.est_count - total - slack, 0);

	return c->acc.c2 > 0 ? (less - more) / c->acc.c2 : 0;
}

void sp_adjust_init(struct sp_population *population)
{
	const double slack_bytes = (double)population->slack_bytes;
	struct sp_stratum strata[SP_STRATA_MAX];
	double bytes[SP_STRATA_MAX] = {0}, objects[SP_STRATA_MAX] = {0};
	bool is_alone[SP_STRATA_MAX] = {0};
	const uint32_t n =
		population->has_totals
			? sp_population_strata(population, &population->all,
					       strata)
			: 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct sp_stratum *s = &strata[i];

		if (!s->part.samples)
			continue;
		bytes[s->number] = sp_stratum_bytes_gain(s, slack_bytes);
		objects[s->number] = sp_stratum_objects_gain(s, slack_bytes);
		is_alone[s->number] = s->objects_alone;
	}
	for (uint32_t i = 0; i < population->all.n_classes; i++) {
		const struct sp_class_sums_class *c =
			&population->all.classes[i];
		const uint8_t number = population->stratum[c->class];
		const struct sp_acc *acc = &c->acc;

		population->bytes_gain[c->class] = gain_of(
			bytes[number], (double)acc->size_bytes,
			acc->est_bytes - (double)acc->size_bytes, acc->k2);
		population->objects_gain[c->class] =
			gain_of(is_alone[number] ? gain_of_class(population, c)
						 : objects[number],
				(double)acc->samples,
				acc->est_count - (double)acc->samples, acc->c2);
	}
}

void sp_adjust(const struct sp_estimation *how, uint32_t class,
	       struct sp_acc *acc)
{
	const struct sp_gain *bytes, *objects;

	if (how->method != SP_METHOD_P3T || !how->population ||
	    !how->population->has_totals)
		return;
	bytes = &how->population->bytes_gain[class];
	objects = &how->population->objects_gain[class];
	acc->est_bytes = fmax(acc->est_bytes + bytes->by_k2 * acc->k2,
			      (double)acc->size_bytes);
	acc->k2 *= bytes->k2;
	acc->kz *= bytes->k2;
	acc->k3 *= bytes->k3;
	acc->est_count = fmax(acc->est_count + objects->by_k2 * acc->c2,
			      (double)acc->samples);
	acc->c2 *= objects->k2;
	acc->c3 *= objects->k3;
}

struct sp_acc sp_adjusted(const struct sp_estimation *how,
			  const struct sp_class_sums *sums)
{
	struct sp_acc sum;

	if (sums->is_measured)
		return sums->all;
	sp_acc_init(&sum, sums->all.period_bytes);
	for (uint32_t i = 0; i < sums->n_classes; i++) {
		struct sp_acc one = sums->classes[i].acc;

		sp_adjust(how, sums->classes[i].class, &one);
		sp_acc_merge(&sum, &one);
	}
	return sum;
}
