/* SPDX-License-Identifier: MIT */
#include "stats/other_estimators.h"

#include <math.h>
#include <stdbool.h>

#include "stats/negbinom.h"
#include "stats/special.h"

/* A value in a subset is known to lie at or above `floor`. */
static struct sp_interval raised(double value, double lo, double hi,
				 double floor)
{
	return sp_interval_around(value, fmax(lo, floor), hi);
}

struct sp_interval sp_other_weighted(const struct sp_acc *acc,
				     double confidence)
{
	const double t = sp_special_normal_quantile((1 + confidence) / 2) *
			 sqrt(acc->k2);

	return raised(acc->est_bytes, acc->est_bytes - t, acc->est_bytes + t,
		      0);
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

typedef double below_fn(double successes, double p, double prob);

/* The smallest k whose probability reaches `prob`. */
static double quantile(below_fn *below, double hits, double p, double prob)
{
	return hits > 0 ? below(hits, p, prob) + 1 : 0;
}

static struct sp_interval of_trials(const struct trials *t, below_fn *below,
				    bool is_open_below, double confidence)
{
	const double half = (1 - confidence) / 2;
	const double value = t->hits * (1 - t->p) / t->p + t->tail;
	const double first = is_open_below ? fmax(t->hits - 1, 0) : t->hits;

	return raised(value, quantile(below, first, t->p, half) + t->tail,
		      quantile(below, t->hits + 1, t->p, 1 - half) + t->tail,
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
	if (compensation == SP_COMPENSATE_NONE)
		return as_written(&t, confidence);
	return of_trials(&t, sp_negbinom_below,
			 compensation == SP_COMPENSATE_BOTH, confidence);
}

struct sp_interval sp_other_camp_paulson(const struct sp_acc *acc,
					 double confidence)
{
	const struct trials t = trials_of(acc);

	if (!(t.p > 0))
		return sp_estimate_bytes_p3(acc, confidence);
	return of_trials(&t, sp_negbinom_camp_paulson_below, false, confidence);
}

/*
 * Of an object's hits only the first was recorded.  The bytes behind it had
 * their own chance, independent of it: `rest / R` more hits on average, and
 * their average stands for them.  Drawing them would add noise, not truth.
 */
struct sp_interval sp_other_heapprofd(const struct sp_acc *acc,
				      double confidence)
{
	const double half = (1 - confidence) / 2;
	const struct trials t = trials_of(acc);
	const double r = (double)acc->period_bytes;
	const double sure = (double)acc->sure_bytes;
	const double rest = t.tail - sure - t.hits;
	const double hits = t.hits + rest / r;
	double lo;

	if (!(t.p > 0))
		return sp_estimate_bytes_p3(acc, confidence);
	lo = t.hits > 0 ? r * sp_special_gamma_quantile(hits, half) : 0;
	return raised(sure + r * hits, sure + lo,
		      sure + r * sp_special_gamma_quantile(hits + 1, 1 - half),
		      t.floor);
}
