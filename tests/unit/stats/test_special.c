/* SPDX-License-Identifier: MIT */
/* E13 and E7's ingredients: distribution functions and their quantiles. */
#include <float.h>
#include <math.h>

#include "stats/special.h"
#include "support/close.h"
#include "support/golden.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const double probs[] = {1e-12, 1e-6, 0.005, 0.025, 0.3,      0.5,
			       0.8,   0.95, 0.975, 0.995, 1 - 1e-6, 1 - 1e-9};
static const double shapes[] = {1e-3, 0.05, 0.7,  1,   2.5, 9.99, 10,
				15.9, 16.1, 1000, 5e4, 1e6, 1e7};

TEST(golden_quantiles)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "gamma_quantile"), i, row)
		assert_close(sp_special_gamma_quantile(golden_number(row, "a"),
						       golden_number(row, "p")),
			     golden_number(row, "x"), 1e-11);
	json_array_foreach(golden_rows(golden_root, "beta_quantile"), i, row)
		assert_close(sp_special_beta_quantile(golden_number(row, "a"),
						      golden_number(row, "b"),
						      golden_number(row, "p")),
			     golden_number(row, "x"), 1e-11);
}

/* p-values of "the site has grown": a beta tail, down to 1e-20, whose shapes
 * come from a site of `before` and one of `after` objects of z bytes. */
TEST(golden_growth)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "growth_p"), i, row)
	{
		const double r = golden_number(row, "R");
		const double z = golden_number(row, "z");
		const double rho = golden_number(row, "rho0");
		const double before = golden_number(row, "before");
		const double after = golden_number(row, "after");
		const double w = z / -expm1(-z / r), v = w * w * exp(-z / r);
		const double hb = before * w + r + (before > 0 ? z / 2 : 0);
		const double ha = after * w, f = ha / (ha + hb);
		const double var = ((1 - f) * (1 - f) * after * v +
				    f * f * (before * v + r * r)) /
				   ((ha + hb) * (ha + hb));
		const double n = f * (1 - f) / var;

		assert_close(sp_special_beta_lower(f * n, (1 - f) * n,
						   rho / (1 + rho)),
			     golden_number(row, "p_greater"), 1e-9);
	}
}

/* Sample sizes for a given power, printed with one decimal. */
TEST(golden_power)
{
	const json_t *power = golden_get(golden_root, "power");
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(power, "rows"), i, row)
	{
		const double d = golden_number(row, "growth");
		const double t = sp_special_normal_quantile(
					 golden_number(row, "power")) -
				 sp_special_normal_quantile(
					 golden_number(row, "alpha_one_sided"));
		const double n = golden_number(row, "n");

		assert_between(n - 0.0500001,
			       t * t * (1 + 1 / (1 + d)) / pow(log1p(d), 2),
			       n + 0.0500001);
	}
}

TEST(normal_quantile)
{
	assert_close(sp_special_normal_quantile(0.975), 1.959963984540054235,
		     1e-14);
	for (double p = 1e-300; p < 0.5; p *= 3.7) {
		const double t = sp_special_normal_quantile(p);

		assert_close(erfc(-t / M_SQRT2) / 2, p, 1e-11);
	}
	assert_true(fabs(sp_special_normal_quantile(0.5)) < 1e-15);
	for (double p = 0.001; p < 1; p += 0.001)
		assert_between(-1e-12,
			       sp_special_normal_quantile(p) +
				       sp_special_normal_quantile(1 - p),
			       1e-12);
	assert_true(sp_special_normal_quantile(0) == -INFINITY);
	assert_true(sp_special_normal_quantile(1) == INFINITY);
}

/* Naive: an integer shape is a Poisson sum. */
static double poisson_sum(int n, double x)
{
	double term = exp(-x), sum = 0;

	for (int k = 0; k < n; k++) {
		sum += term;
		term *= x / (k + 1);
	}
	return sum;
}

/* Naive: Simpson's rule on the density of log G. */
static double gamma_integral(double a, double x)
{
	const int steps = 40000;
	const double to = log(x), from = to - 60 / a - 5,
		     h = (to - from) / steps;
	double sum = 0;

	for (int i = 0; i <= steps; i++) {
		const double u = from + h * i;
		const int weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;

		sum += weight * exp(a * u - exp(u) - lgamma(a));
	}
	return sum * h / 3;
}

TEST(gamma_naive)
{
	for (int n = 1; n <= 60; n++)
		for (double x = 0.01; x < 200; x *= 1.3) {
			assert_close(sp_special_gamma_upper(n, x),
				     poisson_sum(n, x), 1e-12);
			assert_close(sp_special_gamma_lower(n, x) +
					     sp_special_gamma_upper(n, x),
				     1, 1e-14);
		}
	for (double a = 0.3; a < 40; a *= 1.7)
		for (double x = a / 4; x < 4 * a; x *= 1.5)
			assert_close(sp_special_gamma_lower(a, x),
				     gamma_integral(a, x), 1e-9);
}

/* Naive: integer shapes are a binomial sum. */
static double binomial_sum(int a, int b, double x)
{
	const int n = a + b - 1;
	double sum = 0;

	for (int k = a; k <= n; k++)
		sum += exp(lgamma(n + 1.) - lgamma(k + 1.) -
			   lgamma(n - k + 1.) + k * log(x) +
			   (n - k) * log1p(-x));
	return sum;
}

TEST(beta_naive)
{
	for (int a = 1; a < 40; a += 3)
		for (int b = 1; b < 60; b += 4)
			for (double x = 0.02; x < 1; x += 0.06) {
				const double lower =
					sp_special_beta_lower(a, b, x);

				assert_close(lower, binomial_sum(a, b, x),
					     1e-11);
				assert_between(-1e-13,
					       1 - lower -
						       sp_special_beta_lower(
							       b, a, 1 - x),
					       1e-13);
			}
	/* arcsine law */
	for (double x = 0.01; x < 1; x += 0.01)
		assert_close(sp_special_beta_lower(0.5, 0.5, x),
			     asin(sqrt(x)) * M_2_PI, 1e-13);
}

/* Quantile then probability is the identity at all shapes, to the accuracy that
 * special.h promises; except that a quantile may underflow, and that close to 1
 * a double cannot hold x well enough to tell. */
static void round_trip_gamma(double a, double p)
{
	const double x = sp_special_gamma_quantile(a, p);

	if (sp_special_gamma_lower(a, DBL_MIN) > p)
		assert_true(x < DBL_MIN);
	else if (p <= 0.5)
		assert_close(sp_special_gamma_lower(a, x), p, 1e-10);
	else
		assert_close(sp_special_gamma_upper(a, x), 1 - p, 1e-10);
}

static void round_trip_beta(double a, double b, double p)
{
	const double x = sp_special_beta_quantile(a, b, p);

	if (sp_special_beta_lower(a, b, DBL_MIN) > p)
		assert_true(x < DBL_MIN);
	else if (sp_special_beta_lower(a, b, 0.99) < p)
		assert_between(0.99, x, 1);
	else if (p <= 0.5 || x < 0.01)
		assert_close(sp_special_beta_lower(a, b, x), p, 1e-10);
	else
		assert_close(sp_special_beta_lower(b, a, 1 - x), 1 - p, 1e-10);
}

TEST(round_trips)
{
	for (size_t i = 0; i < N(shapes); i++)
		for (size_t j = 0; j < N(probs); j++) {
			round_trip_gamma(shapes[i], probs[j]);
			for (size_t k = 0; k < N(shapes); k++)
				round_trip_beta(shapes[i], shapes[k], probs[j]);
		}
}

/* Values computed once with 40 digits, where the easy formulas lose theirs:
 * large shapes, shapes of very different size, tiny shapes. */
TEST(hard_values)
{
	static const struct {
		double a, b, x, lower;
	} betas[] = {
		{683, 960000000.0, 7.4e-07, 0.85255700997053597},
		{10000.0, 1000000000.0, 1.02e-05, 0.97676860067494227},
		{0.01, 12, 0.3, 0.99996619411774342},
		{15, 0.0125, 0.95, 0.004342239096379849},
		{1000000.0, 2000000.0, 0.3328, 0.024999124270724395},
		{3, 1000000000000000.0, 2e-15, 0.32332358381693767},
		{1000000000.0, 700, 0.9999993, 0.49496637811975117},
	};
	static const struct {
		double a, b, p, x;
	} beta_quantiles[] = {
		{9e9, 9.5e9, 0.975, 0.48649368882681805},
		{2e10, 3e10, 0.975, 0.40000429406973347},
		{2e10, 9e13, 0.025, 0.00022216977172822255},
		{1.5e10, 1.2e10, 0.3, 0.55555396973719576},
	};
	static const struct {
		double a, x, lower, upper;
	} gammas[] = {
		{10000000.0, 10002000.0, 0.73647602984870515,
		 0.26352397015129485},
		{1000000.0, 997000.0, 0.0013381041673135997,
		 0.9986618958326864},
		{0.001, 1e-05, 0.98912304469578267, 0.010876955304217331},
		{0.001, 2.0, 0.99995102308216902, 4.897691783098148e-5},
		{0.05, 1e-40, 0.010272168652716761, 0.98972783134728324},
		{30.0, 90.0, 0.99999999999993607, 6.3926569911374996e-14},
		{30.0, 5.0, 2.8175176155779226e-14, 0.99999999999997182},
	};

	for (size_t i = 0; i < N(betas); i++)
		assert_close(sp_special_beta_lower(betas[i].a, betas[i].b,
						   betas[i].x),
			     betas[i].lower, 1e-10);
	for (size_t i = 0; i < N(beta_quantiles); i++)
		assert_close(sp_special_beta_quantile(beta_quantiles[i].a,
						      beta_quantiles[i].b,
						      beta_quantiles[i].p),
			     beta_quantiles[i].x, 1e-10);
	/* where the first denominator is rounded to 0; the limit is a gamma */
	assert_close(sp_special_beta_lower(16, 77793712695771072,
					   2.1852665737245535e-16),
		     sp_special_gamma_lower(16, 77793712695771072 *
							2.1852665737245535e-16),
		     1e-10);
	/* as a hostile file may ask for */
	assert_close(sp_special_beta_quantile(1e31, 1e31, 0.975), 0.5, 1e-15);
	for (size_t i = 0; i < N(gammas); i++) {
		assert_close(sp_special_gamma_lower(gammas[i].a, gammas[i].x),
			     gammas[i].lower, 1e-10);
		assert_close(sp_special_gamma_upper(gammas[i].a, gammas[i].x),
			     gammas[i].upper, 1e-10);
	}
}

TEST(ends)
{
	assert_true(sp_special_gamma_lower(2, 0) == 0);
	assert_true(sp_special_gamma_upper(2, 0) == 1);
	assert_true(sp_special_gamma_lower(2, INFINITY) == 1);
	assert_true(sp_special_gamma_upper(2, INFINITY) == 0);
	assert_true(sp_special_gamma_quantile(2, 0) == 0);
	assert_true(sp_special_gamma_quantile(2, 1) == INFINITY);
	assert_true(sp_special_beta_lower(2, 3, 0) == 0);
	assert_true(sp_special_beta_lower(2, 3, 1) == 1);
	assert_true(sp_special_beta_quantile(2, 3, 0) == 0);
	assert_true(sp_special_beta_quantile(2, 3, 1) == 1);
	/* rounding does not carry a probability past 1, nor its complement past
	 * 0 */
	assert_between(1 - 1e-15,
		       sp_special_gamma_lower(1.4335919500674908e-18,
					      0.043995045016726637),
		       1);
	assert_between(0,
		       sp_special_gamma_upper(1.4335919500674908e-18,
					      0.043995045016726637),
		       1e-15);
	/* the quantile itself underflows, or so does the shape */
	assert_true(sp_special_gamma_quantile(0, 0.975) == 0);
	assert_true(sp_special_gamma_quantile(1e-44, 0.975) == 0);
	assert_true(sp_special_beta_quantile(1e-5, 1, 0.5) == 0);
}

TEST_MAIN(golden_load, golden_drop)
