/* SPDX-License-Identifier: MIT */
#include "lab/other_estimators.h"

#include <math.h>

#include "lab/negbinom.h"
#include "stats/special.h"

/* A value in a subset is known to lie at or above `floor`. */
static struct sp_interval raised_interval(double value, double lo, double hi,
					  double floor)
{
	return sp_interval_around(value, fmax(lo, floor), hi);
}

struct sp_interval sp_other_weighted(const struct sp_acc *acc,
				     double confidence)
{
	const double t = sp_special_normal_quantile((1 + confidence) / 2) *
			 sqrt(acc->k2);

	return raised_interval(acc->est_bytes, acc->est_bytes - t,
			       acc->est_bytes + t, 0);
}

/* Bytes that were left to chance and hit once: trials up to the hit, the rest
 * of the object certain. */
struct trials {
	double p;     /* probability of a hit, each byte; 0: no single one */
	double hits;  /* samples */
	double tail;  /* bytes that were no failed trials */
	double floor; /* sampled bytes */
};

static struct trials trials_of(const struct sp_acc *acc)
{
	const uint64_t r = acc->period_bytes;
	struct trials t = {
		.hits = (double)(acc->samples - acc->sure_samples),
		.tail = (double)acc->tail_bytes + (double)acc->sure_bytes,
		.floor = (double)acc->size_bytes,
	};

	if (r == 1 || r != acc->period_min_bytes)
		return t;
	if (acc->dotnet_samples == 0)
		t.p = sp_inclusion_probability(1, r);
	else if (acc->dotnet_samples == acc->samples)
		t.p = 1 / (double)r;
	return t;
}

/* (E6) The smallest k whose probability reaches `prob`. */
static double trials_quantile(double hits, double p, double prob)
{
	return hits > 0 ? sp_negbinom_below(hits, p, prob) + 1 : 0;
}

static struct sp_interval compensated_interval(const struct trials *t,
					       double confidence)
{
	const double half = (1 - confidence) / 2;
	const double value = t->hits * (1 - t->p) / t->p + t->tail;

	return raised_interval(
		value, trials_quantile(t->hits, t->p, half) + t->tail,
		trials_quantile(t->hits + 1, t->p, 1 - half) + t->tail,
		t->floor);
}

/* As published: the integers of the table are the largest with less than the
 * probability, and a set without samples is nothing. */
static struct sp_interval as_written(const struct trials *t, double confidence)
{
	const double half = (1 - confidence) / 2;
	const double value = t->hits * (1 - t->p) / t->p + t->tail;

	if (!(t->hits > 0))
		return (struct sp_interval){value, value, value};
	return sp_interval_around(
		value, sp_negbinom_below(t->hits, t->p, half) + t->tail,
		sp_negbinom_below(t->hits, t->p, 1 - half) + t->tail);
}

struct sp_interval sp_other_negbinom(const struct sp_acc *acc,
				     enum sp_compensation compensation,
				     double confidence)
{
	const struct trials t = trials_of(acc);

	if (!(t.p > 0))
		return sp_estimate_bytes_p3(acc, confidence);
	return compensation == SP_COMPENSATE_NONE
		       ? as_written(&t, confidence)
		       : compensated_interval(&t, confidence);
}
