/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The distribution functions behind the intervals, with libm only.  Shapes are
 * positive reals, not just integers.  Relative error at most 1e-10 for shapes
 * from 1e-3 to 1e7 and probabilities from 1e-12 to 1 - 1e-12, where the result
 * itself does not underflow (docs/statistics.md, "Numerics").  The time grows
 * as the square root of the shape, of the smaller one for the beta.
 */

/* t with Phi(t) = p, for p in [0, 1]; -INFINITY at 0, INFINITY at 1. */
double sp_special_normal_quantile(double p);

/* P(G <= x) and P(G > x) for G ~ Gamma(a, scale 1), a > 0, x >= 0. */
double sp_special_gamma_lower(double a, double x);
double sp_special_gamma_upper(double a, double x);

/* x with P(G <= x) = p, for p in [0, 1]; INFINITY at 1.  0 for shape 0, the
 * limit of tiny shapes. */
double sp_special_gamma_quantile(double a, double p);

/* P(B <= x) for B ~ Beta(a, b), a > 0, b > 0, x in [0, 1]. */
double sp_special_beta_lower(double a, double b, double x);

/* x with P(B <= x) = p, for p in [0, 1].  Any shapes: it is bounded in time. */
double sp_special_beta_quantile(double a, double b, double p);
