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
#include "profile/estimator.h"

#include <math.h>
#include <stdbool.h>

#include "profile/negbinom.h"
#include "profile/special.h"

/* The smallest object that the upper limit of a count allows for, in bytes. */
#define SMALLEST_OBJECT_BYTES 16

void sp_acc_init(struct sp_acc *acc, uint64_t period_bytes)
{
	*acc = (struct sp_acc){
		.period_bytes = period_bytes,
		.period_min_bytes = period_bytes,
	};
}

/* Probability that no byte of the object is hit. */
static double miss_probability(uint64_t size_bytes, uint64_t period_bytes)
{
	if (period_bytes == 1)
		return 0;
	return exp(-(double)size_bytes / (double)period_bytes);
}

/* (E2) */
double sp_inclusion_probability(uint64_t size_bytes, uint64_t period_bytes)
{
	if (period_bytes == 1)
		return 1;
	return -expm1(-(double)size_bytes / (double)period_bytes);
}

/* Sizes of a hostile file may add up to more than 64 bits. */
static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void widen_periods(struct sp_acc *acc, uint64_t min, uint64_t max)
{
	if (max > acc->period_bytes)
		acc->period_bytes = max;
	if (min < acc->period_min_bytes)
		acc->period_min_bytes = min;
}

/* (E3, E4) */
void sp_acc_add(struct sp_acc *acc, uint64_t size_bytes, uint64_t offset_bytes,
		uint64_t period_bytes)
{
	const double pi = sp_inclusion_probability(size_bytes, period_bytes);
	const double q = miss_probability(size_bytes, period_bytes);
	const double z = (double)size_bytes, w = z / pi, n = 1 / pi;

	acc->samples++;
	acc->size_bytes = saturating_add(acc->size_bytes, size_bytes);
	acc->tail_bytes =
		saturating_add(acc->tail_bytes, size_bytes - offset_bytes);
	acc->est_bytes += w;
	acc->k2 += w * w * q;
	acc->k3 += w * w * w * q * (1 + q);
	acc->kz += w * w * q * z;
	acc->est_count += n;
	acc->c2 += n * n * q;
	acc->c3 += n * n * n * q * (1 + q);
	widen_periods(acc, period_bytes, period_bytes);
}

void sp_acc_merge(struct sp_acc *dst, const struct sp_acc *src)
{
	dst->samples += src->samples;
	dst->size_bytes = saturating_add(dst->size_bytes, src->size_bytes);
	dst->tail_bytes = saturating_add(dst->tail_bytes, src->tail_bytes);
	dst->est_bytes += src->est_bytes;
	dst->k2 += src->k2;
	dst->k3 += src->k3;
	dst->kz += src->kz;
	dst->est_count += src->est_count;
	dst->c2 += src->c2;
	dst->c3 += src->c3;
	widen_periods(dst, src->period_min_bytes, src->period_bytes);
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

/* Rounding, and limits that do not know the weights, must not leave the value
 * outside; widening keeps the coverage. */
static struct sp_interval interval_around(double value, double lo, double hi)
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

/* What half a step of the lattice costs the upper limit, where the phantom
 * already smooths it. */
static double upper_lattice(struct unseen m)
{
	const double r = m.period, h = m.step / (2 * r);

	if (!(m.step > 0 && r > 0))
		return 0;
	return r * (h / tanh(h) - 1) * m.k2 / (m.k2 + r * r);
}

static double p3_of(struct unseen m, double prob)
{
	return sp_estimator_p3_quantile(m.k1, m.k2, m.k3, prob);
}

/* (E8) */
struct sp_interval sp_estimate_bytes_p3(const struct sp_acc *acc,
					double confidence)
{
	const double half = (1 - confidence) / 2;
	const struct unseen m = unseen_bytes(acc);
	const double seen = (double)acc->size_bytes;
	double lo = 0, hi;

	if (acc->samples)
		lo = seen + fmax(0, p3_of(m, half) - m.step / 2);
	hi = seen + p3_of(with_phantom(m), 1 - half) + upper_lattice(m);
	return interval_around(acc->est_bytes, lo, hi);
}

/*
 * (E6) The limits count failed trials; tail_bytes, the rest of each object from
 * its hit byte on, were no trials.  Sampled bytes are a lower bound that no
 * luck can undercut.  A mixture of periods has no negative binomial law (E9),
 * and period 1 has no failures.
 */
struct sp_interval sp_estimate_bytes(const struct sp_acc *acc,
				     double confidence)
{
	const double half = (1 - confidence) / 2;
	const double s = (double)acc->samples, u = (double)acc->tail_bytes;
	double p, lo = 0, hi;

	if (acc->period_bytes == 1 ||
	    acc->period_bytes != acc->period_min_bytes)
		return sp_estimate_bytes_p3(acc, confidence);
	p = sp_inclusion_probability(1, acc->period_bytes);
	if (acc->samples)
		lo = fmax(sp_negbinom_below(s, p, half) + 1 + u,
			  (double)acc->size_bytes);
	hi = sp_negbinom_below(s + 1, p, 1 - half) + 1 + u;
	return interval_around(acc->est_bytes, lo, hi);
}

/*
 * (E10) Quantile of the unseen bytes of `a` when those of `a` and `b` together
 * are exactly `both`: a's own estimate and both minus b's are independent, and
 * are weighted by their variances.  *ret_k is the weight of the second.
 */
static double side_quantile(struct unseen a, struct unseen b, double both,
			    double prob, double *ret_k)
{
	const double t = a.k2 + b.k2, k = t > 0 ? a.k2 / t : 0.5, l = 1 - k;

	*ret_k = k;
	/* all was recorded, yet some is missing: it may be anyone's */
	if (!(t > 0))
		return prob < 0.5 ? 0 : both;
	return sp_estimator_p3_quantile(
		a.k1 + k * (both - a.k1 - b.k1), k * b.k2,
		l * l * l * a.k3 - k * k * k * b.k3, prob);
}

static double clamp(double v, double lo, double hi)
{
	return fmin(fmax(v, lo), hi);
}

/* (E10) The phantom goes to the subset for the upper limit, to the rest for
 * the lower one. */
struct sp_interval sp_estimate_bytes_of_total(const struct sp_acc *acc,
					      const struct sp_acc *rest,
					      uint64_t total_bytes,
					      double confidence)
{
	const double half = (1 - confidence) / 2;
	const struct unseen a = unseen_bytes(acc), b = unseen_bytes(rest);
	const double seen = (double)acc->size_bytes;
	const double both =
		(double)total_bytes - seen - (double)rest->size_bytes;
	const double t = a.k2 + b.k2, weight = t > 0 ? a.k2 / t : 0.5;
	const double value = a.k1 + weight * (both - a.k1 - b.k1);
	double k, lo = 0, hi;

	if (both < 0)
		return sp_estimate_bytes_p3(acc, confidence);
	if (acc->samples) {
		lo = side_quantile(a, with_phantom(b), both, half, &k);
		lo -= (1 - k) * a.step / 2 + k * upper_lattice(b);
		lo = seen + clamp(lo, 0, both);
	}
	hi = side_quantile(with_phantom(a), b, both, 1 - half, &k);
	hi += (1 - k) * upper_lattice(a) + k * b.step / 2;
	hi = seen + clamp(hi, 0, both);
	return interval_around(seen + clamp(value, 0, both), lo, hi);
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
	return interval_around(ha > 0 ? ha / (ha + hb) : 0, lo, hi);
}

/* (E11) */
struct sp_interval sp_estimate_objects(const struct sp_acc *acc,
				       double confidence)
{
	const uint64_t z = SMALLEST_OBJECT_BYTES, r = acc->period_bytes;
	const double half = (1 - confidence) / 2;
	const double n = 1 / sp_inclusion_probability(z, r);
	const double q = miss_probability(z, r);
	const double s = (double)acc->samples, unseen = acc->est_count - s;
	double lo = 0, hi;

	if (r == 1)
		return (struct sp_interval){s, s, s};
	if (acc->samples)
		lo = s + fmax(0, sp_estimator_p3_quantile(unseen, acc->c2,
							  acc->c3, half) -
					 0.5);
	hi = s + 0.5 +
	     sp_estimator_p3_quantile(unseen + q * n, acc->c2 + q * n * n,
				      acc->c3 + q * (1 + q) * n * n * n,
				      1 - half);
	return interval_around(acc->est_count, lo, hi);
}
