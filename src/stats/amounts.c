/* SPDX-License-Identifier: MIT */
/*
 * Sums over objects of what is not their size.  An object is in the sample with
 * a probability that its size alone decides, so y / pi is without bias whatever
 * y is (E70).  What is uncertain is not bounded by the size either: an object
 * of a few bytes may lie beside a large hole.  So upper limits allow for
 * another object like the most extreme one that was seen.
 */
#include "stats/amounts.h"

#include <math.h>

#include "stats/special.h"

/* Fewer samples than that say nothing about what was not seen. */
#define ROW_SAMPLES 6
/* Halvings, until the limit of a row is found. */
#define HALVINGS 48

void sp_amounts_init(struct sp_amounts *a, uint64_t period_bytes)
{
	*a = (struct sp_amounts){.period_bytes = (double)period_bytes,
				 .least_bytes = INFINITY};
}

/* 1 / pi, and the probability q that it is not sampled. */
static double weight_of(const struct sp_law_used *law, uint64_t size_bytes,
			uint64_t period_bytes, double *ret_q)
{
	struct sp_acc one;

	sp_acc_init(&one, period_bytes);
	sp_acc_add(&one, law, size_bytes, 0, period_bytes);
	*ret_q = one.c2 / (one.est_count * one.est_count);
	return one.est_count;
}

void sp_amounts_add(struct sp_amounts *a, const struct sp_law_used *law,
		    uint64_t size_bytes, uint64_t period_bytes, double y,
		    double x)
{
	double q;
	const double w = weight_of(law, size_bytes, period_bytes, &q);
	const double two = q * w * w, three = q * (1 + q) * w * w * w;

	if (!(y > 0) && !(x > 0))
		return;
	a->samples++;
	a->least_bytes = fmin(a->least_bytes, (double)size_bytes);
	a->period_bytes = fmax(a->period_bytes, (double)period_bytes);
	a->seen += y;
	a->value += y * w;
	a->most = fmax(a->most, y);
	a->other_value += x * w;
	a->other_most = fmax(a->other_most, x);
	a->k2[0] += two * y * y;
	a->k2[1] += two * y * x;
	a->k2[2] += two * x * x;
	a->k3[0] += three * y * y * y;
	a->k3[1] += three * y * y * x;
	a->k3[2] += three * y * x * x;
	a->k3[3] += three * x * x * x;
}

void sp_amounts_merge(struct sp_amounts *dst, const struct sp_amounts *src)
{
	dst->samples += src->samples;
	dst->period_bytes = fmax(dst->period_bytes, src->period_bytes);
	dst->least_bytes = fmin(dst->least_bytes, src->least_bytes);
	dst->seen += src->seen;
	dst->value += src->value;
	dst->most = fmax(dst->most, src->most);
	dst->other_value += src->other_value;
	dst->other_most = fmax(dst->other_most, src->other_most);
	for (unsigned int i = 0; i < 3; i++)
		dst->k2[i] += src->k2[i];
	for (unsigned int i = 0; i < 4; i++)
		dst->k3[i] += src->k3[i];
}

/* ---- limits ---- */

/* What a row is estimated by: a constant and a sum over all samples of y, in
 * the row, less b x. */
struct held {
	double b;
	double k1, k2, k3; /* of that; k1 with the constant */
};

/* The b that makes the variance least (E71); 0 without anything known. */
static struct held hold_amount(const struct sp_amounts *part,
			       const struct sp_amounts *all, bool is_held,
			       double known)
{
	struct held h = {
		.k1 = part->value, .k2 = part->k2[0], .k3 = part->k3[0]};

	if (!is_held || !(all->k2[2] > 0))
		return h;
	h.b = part->k2[1] / all->k2[2];
	h.k1 += h.b * (known - all->other_value);
	h.k2 = fmax(0, h.k2 - h.b * part->k2[1]);
	h.k3 += h.b *
		(-3 * part->k3[1] + h.b * (3 * part->k3[2] - h.b * all->k3[3]));
	return h;
}

/* One more object of each, like the most extreme one. */
static void add_phantom(struct sp_amounts *a, double y, double x)
{
	a->value += y;
	a->other_value += x;
	a->k2[0] += y * y;
	a->k2[1] += y * x;
	a->k2[2] += x * x;
	a->k3[0] += 2 * y * y * y;
	a->k3[1] += 2 * y * y * x;
	a->k3[2] += 2 * y * x * x;
	a->k3[3] += 2 * x * x * x;
}

static double phantom_of(const struct sp_amounts *a, double most)
{
	return a->period_bytes > 1 ? most * a->period_bytes / a->least_bytes
				   : 0;
}

/* b and the variance come from the same samples (E17), of which few may have
 * most of the weight. */
static double few_samples_factor(const struct sp_amounts *part,
				 const struct sp_amounts *all)
{
	const double n = (double)part->samples;
	const double x = all->other_value;

	return (n > 1 ? n / (n - 1) : 2) *
	       (1 + (x > 0 ? 3 * (all->k2[2] / x / x) : 0));
}

/* How much of the known sum is not known. */
static double room_of(struct sp_amounts_known known)
{
	return (known.hi - known.lo) / 2;
}

static double middle_of(struct sp_amounts_known known)
{
	return (known.hi + known.lo) / 2;
}

struct question {
	const struct sp_amounts *part, *all;
	struct sp_amounts_known known;
	bool is_held;
};

static double lower_at(const struct question *q, double prob)
{
	const struct sp_amounts *part = q->part;
	struct sp_amounts all = *q->all;
	struct held h;
	double k1, factor;

	if (q->is_held)
		add_phantom(&all, 0, phantom_of(&all, all.other_most));
	h = hold_amount(part, &all, q->is_held, q->known.lo);
	k1 = h.k1 - part->seen;
	/* The sum moves the samples' spread as well as their value (E40). */
	factor = part->value > part->seen
			 ? fmax(0, k1 / (part->value - part->seen))
			 : 1;
	if (q->is_held) {
		h.k2 *= few_samples_factor(part, q->all) * factor * factor;
		h.k3 *= few_samples_factor(part, q->all) * factor * factor *
			factor;
	}
	return part->seen +
	       fmax(0, sp_estimator_p3_quantile(
			       k1, h.k2,
			       sp_estimator_end_at_zero(k1, h.k2, h.k3), prob));
}

/*
 * (E41) The row is there because it has a sample: of the runs in which it has,
 * the limit may be too high in a share `prob`.
 */
static double lower_shown(const struct question *q, double prob)
{
	const double scale = phantom_of(q->part, q->part->most);
	double low = q->part->seen, high = lower_at(q, prob);

	for (unsigned int i = 0; i < HALVINGS && high - low > 0.5; i++) {
		const double middle = (low + high) / 2;
		const double chance = -expm1(-middle / scale);

		if (middle < lower_at(q, fmax(prob * chance, 1e-12)))
			low = middle;
		else
			high = middle;
	}
	return low;
}

static double upper_at(const struct question *q, double prob)
{
	struct sp_amounts part = *q->part, all = *q->all;
	const bool is_few = part.samples < ROW_SAMPLES;
	const double y = phantom_of(&part, is_few ? all.most : part.most);
	const double x = phantom_of(&part, part.other_most);
	struct held h;

	add_phantom(&part, y, x);
	add_phantom(&all, y, x);
	h = hold_amount(&part, &all, q->is_held, q->known.hi);
	if (q->is_held) {
		const double t =
			q->part->value > 0 ? h.k1 / (q->part->value + y) : 1;

		h.k2 *= few_samples_factor(q->part, q->all) * fmax(1, t - 2);
		h.k3 *= few_samples_factor(q->part, q->all) * fmax(1, t - 2);
	}
	return sp_estimator_p3_quantile(h.k1, h.k2, h.k3, prob);
}

bool sp_amounts_can_hold(const struct sp_amounts *all,
			 struct sp_amounts_known known)
{
	return known.is_known && all->samples >= SP_AMOUNTS_SAMPLES &&
	       all->k2[2] > 0 && known.lo > 0 &&
	       room_of(known) < 0.2 * middle_of(known);
}

struct sp_interval sp_amounts_estimate(const struct sp_amounts *part,
				       const struct sp_amounts *all,
				       struct sp_amounts_known known,
				       double confidence)
{
	const struct question q = {part, all, known,
				   sp_amounts_can_hold(all, known)};
	const double half = (1 - confidence) / 2;
	double value, hi;

	if (!(all->period_bytes > 1))
		return (struct sp_interval){part->value, part->value,
					    part->value};
	if (!part->samples)
		return (struct sp_interval){
			0, 0, known.is_known ? known.hi : INFINITY};
	value = fmax(part->seen,
		     hold_amount(part, all, q.is_held, middle_of(known)).k1);
	if (known.is_known)
		value = fmin(value, fmax(known.hi, part->seen));
	hi = upper_at(&q, 1 - half);
	if (known.is_known &&
	    (all->samples < SP_AMOUNTS_SAMPLES || hi > known.hi))
		hi = fmax(known.hi, part->seen);
	return sp_interval_around(value, lower_shown(&q, half), hi);
}

double sp_amounts_share(const struct sp_amounts *all,
			struct sp_amounts_known known,
			const struct sp_law_used *law, uint64_t size_bytes,
			uint64_t period_bytes, double y, double x)
{
	double q;
	const double w = weight_of(law, size_bytes, period_bytes, &q);

	if (!sp_amounts_can_hold(all, known))
		return y * w;
	return y * w + y * x * q * w * w *
			       (middle_of(known) - all->other_value) /
			       all->k2[2];
}

/* ---- which period ---- */

uint64_t sp_amounts_period_for(const struct sp_amounts_object *objects,
			       uint64_t n, const struct sp_law_used *law,
			       double error, double confidence,
			       uint64_t longest)
{
	const double t = sp_special_normal_quantile((1 + confidence) / 2);
	uint64_t period = 1;
	double sum = 0, q;

	for (uint64_t i = 0; i < n; i++)
		sum += objects[i].y * weight_of(law, objects[i].size_bytes,
						objects[i].period_bytes, &q);
	if (!(sum > 0))
		return 0;
	while (period * 2 <= longest) {
		double variance = 0;

		for (uint64_t i = 0; i < n; i++) {
			const struct sp_amounts_object *o = &objects[i];
			const double many = weight_of(law, o->size_bytes,
						      o->period_bytes, &q);
			const double w =
				weight_of(law, o->size_bytes, period * 2, &q);

			variance += many * o->y * o->y * q * w;
		}
		if (t * sqrt(variance) > error * sum)
			break;
		period *= 2;
	}
	return period;
}
