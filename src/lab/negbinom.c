/* SPDX-License-Identifier: MIT */
#include "lab/negbinom.h"

#include <math.h>

#include "stats/special.h"

/* (E5) */
double sp_negbinom_cdf(double successes, double p, double k)
{
	return sp_special_beta_lower(successes, k + 1, p);
}

/*
 * The discrete law lies within a byte or so of a scaled gamma.  From there
 * gallop until the answer is in [lo, hi), then bisect: the result depends on
 * the law only, whatever the start.
 */
double sp_negbinom_below(double successes, double p, double prob)
{
	const double start =
		sp_special_gamma_quantile(successes, prob) / -log1p(-p);
	double lo = fmax(-1, floor(start - successes / 2)), hi, step = 1;

	for (; lo >= 0 && sp_negbinom_cdf(successes, p, lo) >= prob; step *= 2)
		lo = fmax(-1, lo - step);
	hi = lo + step;
	for (; sp_negbinom_cdf(successes, p, hi) < prob; step *= 2) {
		lo = hi;
		hi += step;
	}
	for (;;) {
		const double mid = floor(lo + (hi - lo) / 2);

		if (mid <= lo || mid >= hi)
			return lo;
		if (sp_negbinom_cdf(successes, p, mid) < prob)
			lo = mid;
		else
			hi = mid;
	}
}
