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

/*
 * The same probability as sp_negbinom_cdf by Camp and Paulson's normal
 * approximation (E14), for k >= 0.  Its absolute error is 0.012 at 1 success,
 * 0.0013 at 5 and falls as 1 / successes; too coarse for a 95 % limit up to 5.
 */
double sp_negbinom_camp_paulson(double successes, double p, double k);

/* sp_negbinom_below() with that approximation in place of the probability. */
double sp_negbinom_camp_paulson_below(double successes, double p, double prob);
