/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The negative binomial law: the number of failures before success number
 * `successes` >= 1 in trials that succeed with probability p in (0, 1) (E5).
 * Counts are doubles, exact up to 2^53 and meaningful to a rounding beyond.
 */

/* P(failures <= k), for k >= 0. */
double sp_negbinom_cdf(double successes, double p, double k);

/*
 * The largest k with P(failures <= k) < prob, for prob in (0, 1); -1 if even
 * P(failures <= 0) reaches prob.  The ordinary quantile is one more.
 */
double sp_negbinom_below(double successes, double p, double prob);
