/* SPDX-License-Identifier: MIT */
/*
 * From samples to estimates with intervals; (E<n>) are the equations of
 * docs/statistics.md.
 *
 * Whatever was sampled is certain, so that every interval is one for the
 * unseen part: a sampled object of inclusion probability pi stands for a
 * geometric number of missed siblings, whose cumulants are plain sums over the
 * samples.  Upper limits add a phantom: the sample that was about to come.
 * The normal approximation is no alternative: its 95 % intervals cover 9 % of
 * the time in the worst case.
 */
#include "stats/estimator.h"

#include <math.h>
#include <stdbool.h>

#include "base/saturate.h"
#include "format/layout.h"
#include "stats/special.h"

void sp_acc_init(struct sp_acc *acc, uint64_t period_bytes)
{
	*acc = (struct sp_acc){
		.period_bytes = period_bytes,
		.period_min_bytes = period_bytes,
	};
}

/* (E2) */
double sp_inclusion_probability(uint64_t size_bytes, uint64_t period_bytes)
{
	if (period_bytes == 1)
		return 1;
	return -expm1(-(double)size_bytes / (double)period_bytes);
}

/* x = z / R of an object that is left to chance (E15). */
static double object_exposure(const struct sp_law_used *law,
			      uint64_t size_bytes, uint64_t period_bytes)
{
	const double z = (double)size_bytes, r = (double)period_bytes;

	return law->is_dotnet ? -z * log1p(-1 / r) : z / r;
}

/* Period 1 records everything; of a period beyond any file's nothing is sure.
 */
static bool is_sure(const struct sp_law_used *law, uint64_t size_bytes,
		    uint64_t period_bytes)
{
	if (period_bytes == 1)
		return true;
	return law->always_large && period_bytes <= SP_FORMAT_PERIOD_MAX &&
	       size_bytes >= sp_format_always_bytes(period_bytes);
}

static void widen_periods(struct sp_acc *acc, uint64_t min, uint64_t max)
{
	if (max > acc->period_bytes)
		acc->period_bytes = max;
	if (min < acc->period_min_bytes)
		acc->period_min_bytes = min;
}

/* n objects of z bytes each. */
static void add_chance(struct sp_acc *acc, double z, double x, double n)
{
	const double pi = -expm1(-x), q = exp(-x);
	const double w = z / pi, each = 1 / pi;

	acc->est_bytes += n * w;
	acc->k2 += n * (w * w * q);
	acc->k3 += n * (w * w * w * q * (1 + q));
	acc->kz += n * (w * w * q * z);
	acc->est_count += n * each;
	acc->c2 += n * (each * each * q);
	acc->c3 += n * (each * each * each * q * (1 + q));
}

/* (E3, E4, E15, E16) */
void sp_acc_add_many(struct sp_acc *acc, const struct sp_law_used *law,
		     uint64_t size_bytes, uint64_t n, uint64_t tail_bytes,
		     uint64_t period_bytes)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(size_bytes, n, &bytes))
		bytes = UINT64_MAX;
	acc->samples += n;
	acc->dotnet_samples += law->is_dotnet ? n : 0;
	sp_sat_add(&acc->size_bytes, bytes);
	if (is_sure(law, size_bytes, period_bytes)) {
		acc->sure_samples += n;
		sp_sat_add(&acc->sure_bytes, bytes);
		acc->est_bytes += (double)size_bytes * (double)n;
		acc->est_count += (double)n;
	} else {
		sp_sat_add(&acc->tail_bytes, tail_bytes);
		add_chance(acc, (double)size_bytes,
			   object_exposure(law, size_bytes, period_bytes),
			   (double)n);
	}
	widen_periods(acc, period_bytes, period_bytes);
}

void sp_acc_add(struct sp_acc *acc, const struct sp_law_used *law,
		uint64_t size_bytes, uint64_t offset_bytes,
		uint64_t period_bytes)
{
	sp_acc_add_many(acc, law, size_bytes, 1, size_bytes - offset_bytes,
			period_bytes);
}

/*
 * (E22) Of the objects that did not choose, those that measure are a sample
 * with the inclusion probability f pi / (1 - (1 - f) pi), f the share of the
 * samples that measure.
 */
struct sp_acc sp_acc_measured(struct sp_acc one)
{
	const double f = 1 - 1.0 / SP_PEAK_CHOOSES;
	const double q = one.c2 / (one.est_count * one.est_count);
	const double z = (double)one.size_bytes;
	const double d = f + (1 - f) * q, miss = q / d;
	const double w = one.est_bytes * d / f;
	const double each = one.est_count * d / f;

	one.est_bytes = w;
	one.k2 = w * w * miss;
	one.k3 = w * w * w * miss * (1 + miss);
	one.kz = w * w * miss * z;
	one.est_count = each;
	one.c2 = each * each * miss;
	one.c3 = each * each * each * miss * (1 + miss);
	return one;
}

void sp_acc_share(struct sp_acc *acc, double share)
{
	const double squared = share * share;

	acc->size_bytes = (uint64_t)((double)acc->size_bytes * share);
	acc->sure_bytes = (uint64_t)((double)acc->sure_bytes * share);
	acc->tail_bytes = (uint64_t)((double)acc->tail_bytes * share);
	acc->est_bytes *= share;
	acc->k2 *= squared;
	acc->k3 *= squared * share;
	acc->kz *= squared;
}

uint64_t sp_acc_measured_period(uint64_t period_bytes)
{
	const uint64_t n = SP_PEAK_CHOOSES, more = period_bytes / (n - 1);

	/* rounded up; 1 says that everything was recorded */
	if (period_bytes == 1 || period_bytes > UINT64_MAX / 2)
		return period_bytes;
	return period_bytes + more + (period_bytes % (n - 1) != 0);
}

void sp_acc_add_measured(struct sp_acc *acc, const struct sp_law_used *law,
			 uint64_t size_bytes, uint64_t n, uint64_t tail_bytes,
			 uint64_t period_bytes, bool chose)
{
	struct sp_acc one, sum;

	sp_acc_init(&one, period_bytes);
	sp_acc_add_many(&one, law, size_bytes, 1, 0, period_bytes);
	sp_acc_init(&sum, period_bytes);
	sp_acc_add_many(&sum, law, size_bytes, n, tail_bytes, period_bytes);
	if (chose) {
		sum.sure_samples = sum.samples;
		sum.sure_bytes = sum.size_bytes;
		sum.tail_bytes = 0;
		sum.est_bytes = (double)sum.size_bytes;
		sum.est_count = (double)sum.samples;
		sum.k2 = sum.k3 = sum.kz = sum.c2 = sum.c3 = 0;
	} else {
		const struct sp_acc part = sp_acc_measured(one);
		const double m = (double)n;

		sum.est_bytes = m * part.est_bytes;
		sum.k2 = m * part.k2;
		sum.k3 = m * part.k3;
		sum.kz = m * part.kz;
		sum.est_count = m * part.est_count;
		sum.c2 = m * part.c2;
		sum.c3 = m * part.c3;
	}
	sum.period_bytes = sp_acc_measured_period(sum.period_bytes);
	sp_acc_merge(acc, &sum);
}

void sp_acc_merge(struct sp_acc *dst, const struct sp_acc *src)
{
	dst->samples += src->samples;
	sp_sat_add(&dst->size_bytes, src->size_bytes);
	dst->sure_samples += src->sure_samples;
	sp_sat_add(&dst->sure_bytes, src->sure_bytes);
	dst->dotnet_samples += src->dotnet_samples;
	sp_sat_add(&dst->tail_bytes, src->tail_bytes);
	dst->est_bytes += src->est_bytes;
	dst->k2 += src->k2;
	dst->k3 += src->k3;
	dst->kz += src->kz;
	dst->est_count += src->est_count;
	dst->c2 += src->c2;
	dst->c3 += src->c3;
	widen_periods(dst, src->period_min_bytes, src->period_bytes);
}

void sp_acc_subtract(struct sp_acc *dst, const struct sp_acc *src)
{
	const struct sp_acc before = *dst;

	*dst = (struct sp_acc){
		.period_bytes = before.period_bytes,
		.period_min_bytes = before.period_min_bytes,
	};
	if (before.samples <= src->samples)
		return;
	dst->samples = before.samples - src->samples;
	dst->size_bytes = sp_sat_sub(before.size_bytes, src->size_bytes);
	dst->sure_samples = sp_sat_sub(before.sure_samples, src->sure_samples);
	dst->sure_bytes = sp_sat_sub(before.sure_bytes, src->sure_bytes);
	dst->tail_bytes = sp_sat_sub(before.tail_bytes, src->tail_bytes);
	dst->dotnet_samples =
		sp_sat_sub(before.dotnet_samples, src->dotnet_samples);
	dst->est_bytes = fmax(before.est_bytes - src->est_bytes, 0);
	dst->est_count = fmax(before.est_count - src->est_count, 0);
	/* all that is left is sure: the rest is rounding */
	if (dst->samples == dst->sure_samples)
		return;
	dst->k2 = fmax(before.k2 - src->k2, 0);
	dst->k3 = fmax(before.k3 - src->k3, 0);
	dst->kz = fmax(before.kz - src->kz, 0);
	dst->c2 = fmax(before.c2 - src->c2, 0);
	dst->c3 = fmax(before.c3 - src->c3, 0);
}

/*
 * (E7) Divisions are ordered so that the powers of tiny cumulants (objects of
 * many periods) do not underflow.
 */
double sp_estimator_p3_quantile(double k1, double k2, double k3, double prob)
{
	double scale, skewness;

	if (!(k2 > 0))
		return k1;
	scale = k3 / k2 / 2;
	skewness = 2 * scale / sqrt(k2);
	if (fabs(skewness) < 0.01) {
		const double t = sp_special_normal_quantile(prob);
		const double h = skewness / 6, t2 = t * t;

		return k1 +
		       sqrt(k2) * (t + (t2 - 1) * h + t * (t2 - 6) * h * h / 3 -
				   (t2 - 1) * h * h * h);
	}
	if (skewness < 0)
		return 2 * k1 - sp_estimator_p3_quantile(k1, k2, -k3, 1 - prob);
	return k1 - k2 / scale +
	       scale * sp_special_gamma_quantile(4 / (skewness * skewness),
						 prob);
}

/* (E7) Divisions first, for the sake of tiny cumulants. */
double sp_estimator_end_at_zero(double k1, double k2, double k3)
{
	return k1 > 0 && k2 > 0 ? fmin(k3, 2 * k2 * (k2 / k1)) : k3;
}

struct sp_interval sp_interval_around(double value, double lo, double hi)
{
	return (struct sp_interval){value, fmin(lo, value), fmax(hi, value)};
}

/* The bytes that were not sampled, as a distribution of given cumulants. */
struct unseen {
	double k1;
	double k2;
	double k3;
	double step;   /* mean object size, where it makes a lattice */
	double period; /* of the phantom; 0 if everything was recorded */
};

static struct unseen unseen_bytes(const struct sp_acc *acc)
{
	return (struct unseen){
		.k1 = acc->est_bytes - (double)acc->size_bytes,
		.k2 = acc->k2,
		.k3 = acc->k3,
		.step = acc->k2 > 0 ? acc->kz / acc->k2 : 0,
		.period =
			acc->period_bytes == 1 ? 0 : (double)acc->period_bytes,
	};
}

/* The phantom is an object of size -> 0 and weight R: no sample in B bytes has
 * probability exp(-B / R) whatever the sizes. */
static struct unseen with_phantom(struct unseen m)
{
	const double r = m.period;

	m.k1 += r;
	m.k2 += r * r;
	m.k3 += 2 * r * r * r;
	return m;
}

double sp_estimator_lattice(double step_bytes, double period_bytes)
{
	const double h = step_bytes / (2 * period_bytes);

	return step_bytes > 0 ? period_bytes * (h / tanh(h) - 1) : 0;
}

/* The phantom's own part has no steps. */
static double upper_lattice(struct unseen m)
{
	if (!(m.period > 0))
		return 0;
	return sp_estimator_lattice(m.step, m.period) * m.k2 /
	       (m.k2 + m.period * m.period);
}

static double p3_of(struct unseen m, double prob)
{
	return sp_estimator_p3_quantile(m.k1, m.k2, m.k3, prob);
}

/* What is unseen: at least that much. */
static double p3_at_least(double k1, double k2, double k3, double prob)
{
	return sp_estimator_p3_quantile(
		k1, k2, sp_estimator_end_at_zero(k1, k2, k3), prob);
}

/* (E8) */
double sp_lower_bytes_p3(const struct sp_acc *acc, double prob)
{
	const struct unseen m = unseen_bytes(acc);
	const double least = p3_at_least(m.k1, m.k2, m.k3, prob);

	if (!acc->samples)
		return 0;
	return (double)acc->size_bytes + fmax(0, least - m.step / 2);
}

/* (E8) */
struct sp_interval sp_estimate_bytes_p3(const struct sp_acc *acc,
					double confidence)
{
	const double half = (1 - confidence) / 2;
	const struct unseen m = unseen_bytes(acc);
	const double seen = (double)acc->size_bytes;
	const double hi =
		seen + p3_of(with_phantom(m), 1 - half) + upper_lattice(m);

	return sp_interval_around(acc->est_bytes, sp_lower_bytes_p3(acc, half),
				  hi);
}

/* Quantile of the share of `a`, by a beta law of the same mean and variance. */
static double share_quantile(double a, double var_a, double b, double var_b,
			     double prob)
{
	const double f = a / (a + b), g = b / (a + b);
	const double sum = a + b;
	const double var = (g * g * var_a + f * f * var_b) / (sum * sum);
	const double n = f * g / var;

	if (!isfinite(n))
		return f;
	return sp_special_beta_quantile(f * n, g * n, prob);
}

/* (E12) The phantom goes to the rest for the lower limit, to the subset for
 * the upper one. */
struct sp_interval sp_estimate_share(const struct sp_acc *acc,
				     const struct sp_acc *rest,
				     double confidence)
{
	const double half = (1 - confidence) / 2;
	const struct unseen a = unseen_bytes(acc), b = unseen_bytes(rest);
	const double ha = acc->est_bytes, hb = rest->est_bytes;
	double lo = 0, hi = 1;

	if (acc->samples)
		lo = share_quantile(ha, a.k2, hb + b.period + b.step / 2,
				    b.k2 + b.period * b.period, half);
	if (rest->samples)
		hi = share_quantile(ha + a.period + a.step / 2,
				    a.k2 + a.period * a.period, hb, b.k2,
				    1 - half);
	return sp_interval_around(ha > 0 ? ha / (ha + hb) : 0, lo, hi);
}

/* (E11) */
double sp_lower_objects_p3(const struct sp_acc *acc, double prob)
{
	const double s = (double)acc->samples;
	const double least =
		p3_at_least(acc->est_count - s, acc->c2, acc->c3, prob);

	return acc->samples ? s + fmax(0, least - 0.5) : 0;
}

/* (E11) */
struct sp_interval sp_estimate_objects_p3(const struct sp_acc *acc,
					  struct sp_smallest smallest,
					  double confidence)
{
	const uint64_t z = smallest.bytes, r = acc->period_bytes;
	const double half = (1 - confidence) / 2;
	const double n = 1 / sp_inclusion_probability(z, r);
	const double q = exp(-(double)z / (double)r);
	const double s = (double)acc->samples, unseen = acc->est_count - s;
	double hi;

	if (r == 1)
		return (struct sp_interval){acc->est_count, acc->est_count,
					    acc->est_count};
	hi = s + 0.5 + smallest.more +
	     sp_estimator_p3_quantile(unseen + q * n, acc->c2 + q * n * n,
				      acc->c3 + q * (1 + q) * n * n * n,
				      1 - half);
	return sp_interval_around(acc->est_count,
				  sp_lower_objects_p3(acc, half), hi);
}

/* Bytes of nothing sampled at 95 %, in periods: what the choice is made for.
 * Any choice is valid at any level. */
#define UNSEEN_PERIODS 3.7

/* (E48) */
void sp_smallest_improve(struct sp_smallest *best, uint64_t bound_bytes,
			 double objects, double bytes, uint64_t period_bytes)
{
	const double unseen = UNSEEN_PERIODS * (double)period_bytes;
	const double z = (double)bound_bytes;
	const double more = fmax(objects - bytes / z, 0);

	if (unseen / z + more < unseen / (double)best->bytes + best->more)
		*best = (struct sp_smallest){bound_bytes, more};
}

/* (E19) */
double sp_confidence_of_each(double confidence, uint64_t n)
{
	return n > 1 ? 1 - (1 - confidence) / (double)n : confidence;
}
