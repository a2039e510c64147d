/* SPDX-License-Identifier: MIT */
#include "stats/negbinom.h"

#include <math.h>

#include "stats/special.h"

/* (E5) */
double sp_negbinom_cdf(double successes, double p, double k)
{
	return sp_special_beta_lower(successes, k + 1, p);
}

/* (E14) */
double sp_negbinom_camp_paulson(double successes, double p, double k)
{
	const double a = 1 / (9 * (k + 1)), b = 1 / (9 * successes);
	const double root = cbrt(successes * (1 - p) / ((k + 1) * p));
	const double t = ((1 - b) * root - (1 - a)) / sqrt(b * root * root + a);

	return erfc(t / M_SQRT2) / 2;
}

typedef double cdf_fn(double successes, double p, double k);

/*
 * The discrete law lies within a byte or so of a scaled gamma.  From there
 * gallop until the answer is in [lo, hi), then bisect: the result depends on
 * `cdf` only, whatever the start.
 */
static double quantile_below(cdf_fn *cdf, double successes, double p,
			     double prob)
{
	const double start =
		sp_special_gamma_quantile(successes, prob) / -log1p(-p);
	double lo = fmax(-1, floor(start - successes / 2)), hi, step = 1;

	for (; lo >= 0 && cdf(successes, p, lo) >= prob; step *= 2)
		lo = fmax(-1, lo - step);
	hi = lo + step;
	for (; cdf(successes, p, hi) < prob; step *= 2) {
		lo = hi;
		hi += step;
	}
	for (;;) {
		const double mid = floor(lo + (hi - lo) / 2);

		if (mid <= lo || mid >= hi)
			return lo;
		if (cdf(successes, p, mid) < prob)
			lo = mid;
		else
			hi = mid;
	}
}

double sp_negbinom_below(double successes, double p, double prob)
{
	return quantile_below(sp_negbinom_cdf, successes, p, prob);
}

double sp_negbinom_camp_paulson_below(double successes, double p, double prob)
{
	return quantile_below(sp_negbinom_camp_paulson, successes, p, prob);
}
