/* SPDX-License-Identifier: MIT */
/*
 * Incomplete gamma and beta functions and their quantiles (E13).
 *
 * Both distributions are looked at along a line u: u = log x for the gamma,
 * u = log(x / (1 - x)) for the beta.  Seen along u, both densities are
 * log-concave, hence so are both tails, and that is all the quantiles need:
 *
 *  N1. Newton on log(lower tail) lands left of the root from wherever it
 *      starts (a tangent lies above a concave curve), and from there climbs
 *      to the root without ever passing it.  No bracket is needed.
 *
 * Tails stay logarithms until the end, so that neither a start far off nor a
 * tiny shape underflows on the way.
 *
 * The power terms x^a e^-x / Gamma(a + 1) and x^a y^b / B(a, b) are products of
 * Poisson probabilities of real order, taken in the saddle-point form of
 * C. Loader, "Fast and accurate computation of binomial probabilities" (2000).
 * Differences of log-gammas lose all digits at the shapes of a long run (10^9);
 * that form loses none.
 */
#include "stats/special.h"

#include <float.h>
#include <math.h>

/* Along u: the logarithms of both tails and of the density. */
struct tails {
	double log_lower;
	double log_upper;
	double log_slope;
};

typedef struct tails tails_fn(double a, double b, double u);

/* log(1 + exp(v)). */
static double log1p_exp(double v)
{
	return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v));
}

/* Rounding may push the logarithm of a tail close to 1 above 0. */
static struct tails tails_from_lower(double log_lower, double log_slope)
{
	log_lower = fmin(log_lower, 0);
	return (struct tails){log_lower, log1p(-exp(log_lower)), log_slope};
}

static struct tails tails_from_upper(double log_upper, double log_slope)
{
	log_upper = fmin(log_upper, 0);
	return (struct tails){log1p(-exp(log_upper)), log_upper, log_slope};
}

/* Below this order the logarithms are small enough to be taken directly. */
#define SADDLE_ORDER 16.0

/* log(k!) minus Stirling's formula, for k >= SADDLE_ORDER. */
static double stirling_rest(double k)
{
	const double r = 1 / (k * k);

	return (1 / 12. -
		r * (1 / 360. -
		     r * (1 / 1260. - r * (1 / 1680. - r * (1 / 1188.))))) /
	       k;
}

/* k log(k / m) + m - k, which is small where k and m are close. */
static double poisson_deviance(double k, double m)
{
	const double d = k - m, v = d / (k + m);
	double term = 2 * k * v, sum = d * v;

	if (fabs(v) > 0.1)
		return k * log(k / m) - d;
	/* log(k / m) = 2 atanh(v), in powers of v */
	for (int i = 3; fabs(term) > DBL_EPSILON * sum; i += 2) {
		term *= v * v;
		sum += term / i;
	}
	return sum;
}

/* log of m^k e^-m / Gamma(k + 1), with log m apart: m may have underflowed. */
static double log_poisson(double k, double m, double log_m)
{
	if (k < SADDLE_ORDER)
		return k * log_m - m - lgamma(k + 1);
	return -stirling_rest(k) - poisson_deviance(k, m) -
	       log(2 * M_PI * k) / 2;
}

/* sum over i of x^i / ((a + 1) ... (a + i)), for x < a + 1. */
static double gamma_series(double a, double x)
{
	double term = 1, sum = 1;

	for (double k = a + 1; term > sum * DBL_EPSILON / 4; k++) {
		term *= x / k;
		sum += term;
	}
	return sum;
}

/*
 * 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...))), for x >= a + 1, by Lentz's
 * method.  There all its denominators are positive: the i-th is at least i + 1.
 */
static double gamma_fraction(double a, double x)
{
	double b = x + 1 - a, c = INFINITY, d = 1 / b, h = d, step = 0;

	for (double i = 1; fabs(step - 1) > DBL_EPSILON; i++) {
		const double num = i * (a - i);

		b += 2;
		d = 1 / (b + num * d);
		c = b + num / c;
		step = c * d;
		h *= step;
	}
	return h;
}

/* The tails of Gamma(a) at x = exp(u). */
static struct tails gamma_tails(double a, double unused, double u)
{
	const double x = exp(u);
	const double log_power = log_poisson(a, x, u);
	const double log_slope = log_power + log(a);

	(void)unused;
	if (x < a + 1)
		return tails_from_lower(log_power + log(gamma_series(a, x)),
					log_slope);
	return tails_from_upper(log_slope + log(gamma_fraction(a, x)),
				log_slope);
}

/*
 * I_x(a, b) B(a, b) / (x^a y^b) as the even part of the continued fraction DLMF
 * 8.17.22, for x < (a + 1) / (a + b + 2).  Written with d = a - (a + b) x,
 * which keeps what 1 - (a + b) x / (a + 1) cancels when one shape dwarfs the
 * other.  The denominators are positive there too, but d + 1 may be rounded to
 * nothing when b is beyond 10^15.
 */
static double beta_fraction(double a, double b, double x, double d)
{
	const double n = a + b;
	double even = a * fmax(d + 1, DBL_EPSILON) / (a + 1);
	double c = INFINITY, inverse = 1 / even;
	double h = inverse, step = 0;

	for (double m = 1; fabs(step - 1) > DBL_EPSILON; m++) {
		const double k = a + 2 * m - 1, mbx = m * (b - m) * x;
		const double odd =
			(a + m - 1) * (n + m - 1) * mbx * x / (k * k);

		even = m + mbx / k + (a + m) * (d + 1 + m * (2 - x)) / (k + 2);
		inverse = 1 / (even + odd * inverse);
		c = even + odd / c;
		step = c * inverse;
		h *= step;
	}
	return h;
}

/* The tails of Beta(a, b) at x = 1 / (1 + exp(-u)). */
static struct tails beta_tails(double a, double b, double u)
{
	const double log_x = -log1p_exp(-u), log_y = -log1p_exp(u);
	const double x = exp(log_x), y = exp(log_y);
	const double n = a + b, log_n = log(n);
	const double d = x < y ? a - n * x : n * y - b;
	const double log_power = log_poisson(a, n * x, log_n + log_x) +
				 log_poisson(b, n * y, log_n + log_y) -
				 log_poisson(n, n, log_n);
	const double log_slope = log_power + log(a) + log(b) - log_n;

	if (x < (a + 1) / (n + 2))
		return tails_from_lower(
			log_slope + log(beta_fraction(a, b, x, d)), log_slope);
	return tails_from_upper(log_slope + log(beta_fraction(b, a, y, -d)),
				log_slope);
}

/* Newton's error after a step of s is of the order sqrt(shape) s^2. */
#define STEP_ENOUGH(u) (1e-12 * fmax(1, fabs(u)))
#define STEPS_MAX      400

/* The u whose lower tail is p, from any start `u` (N1). */
static double solve_tail(tails_fn *at, double a, double b, double p, double u)
{
	const double log_p = log(p);
	double step = INFINITY;

	for (int i = 0; i < STEPS_MAX && fabs(step) > STEP_ENOUGH(u); i++) {
		const struct tails t = at(a, b, u);

		step = (log_p - t.log_lower) * exp(t.log_lower - t.log_slope);
		u += step;
	}
	return u;
}

double sp_special_normal_quantile(double p)
{
	double t, step = INFINITY;

	if (p > 0.5)
		return -sp_special_normal_quantile(1 - p);
	if (p <= 0)
		return -INFINITY;
	/* Phi(-t) <= exp(-t^2 / 2) / 2: this start is left of the root, and
	 * log Phi is concave too (N1). */
	t = -sqrt(-2 * log(2 * p));
	for (int i = 0; i < STEPS_MAX && fabs(step) > STEP_ENOUGH(t); i++) {
		const double tail = erfc(-t / M_SQRT2) / 2;

		step = log(p / tail) * tail * sqrt(2 * M_PI) * exp(t * t / 2);
		t += step;
	}
	return t;
}

double sp_special_gamma_lower(double a, double x)
{
	if (!(x > 0))
		return 0;
	return isinf(x) ? 1 : exp(gamma_tails(a, 0, log(x)).log_lower);
}

double sp_special_gamma_upper(double a, double x)
{
	if (!(x > 0))
		return 1;
	return isinf(x) ? 0 : exp(gamma_tails(a, 0, log(x)).log_upper);
}

double sp_special_gamma_quantile(double a, double p)
{
	if (p <= 0 || !(a > 0))
		return 0;
	if (p >= 1)
		return INFINITY;
	return exp(solve_tail(gamma_tails, a, 0, p, log(a)));
}

double sp_special_beta_lower(double a, double b, double x)
{
	if (!(x > 0))
		return 0;
	if (x >= 1)
		return 1;
	return exp(beta_tails(a, b, log(x) - log1p(-x)).log_lower);
}

/* From shapes of this size on, log(B / (1 - B)) is normal to 1e-10, and the
 * continued fraction would take for ever. */
#define NORMAL_SHAPE 1e10

double sp_special_beta_quantile(double a, double b, double p)
{
	double u;

	if (p <= 0)
		return 0;
	if (p >= 1)
		return 1;
	if (fmin(a, b) >= NORMAL_SHAPE)
		u = log(a / b) +
		    sp_special_normal_quantile(p) * sqrt(1 / a + 1 / b);
	else
		u = solve_tail(beta_tails, a, b, p, log(a / b));
	return 1 / (1 + exp(-u));
}
