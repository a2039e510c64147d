/* SPDX-License-Identifier: MIT */
/* The noise of all rows of a comparison (compare.h). */
#include <math.h>

#include "stats/compare.h"
#include "stats/special.h"

static double square_of(double x)
{
	return x * x;
}

/* psi(x) and its derivative: recurrence up to 10, then the asymptotic series.
 */
static double digamma(double x)
{
	double sum = 0, y;

	for (; x < 10; x++)
		sum -= 1 / x;
	y = 1 / (x * x);
	return sum + log(x) - 1 / (2 * x) -
	       y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

static double trigamma(double x)
{
	double sum = 0, y;

	for (; x < 10; x++)
		sum += 1 / (x * x);
	y = 1 / (x * x);
	return sum + 1 / x + y / 2 +
	       y / x * (1.0 / 6 - y * (1.0 / 30 - y / 42));
}

/* The third derivative, of which likewise. */
static double pentagamma(double x)
{
	double sum = 0, y;

	for (; x < 10; x++)
		sum += 6 / (x * x * x * x);
	y = 1 / (x * x);
	return sum + y / x * (2 + 3 / x + y * (2 - y * (1 - y * 4.0 / 3)));
}

/* x with trigamma(x) = y > 0; trigamma falls. */
static double trigamma_inverse(double y)
{
	double lo = log(1e-6), hi = log(1e9);

	for (int i = 0; i < 60; i++) {
		const double mid = (lo + hi) / 2;

		if (trigamma(exp(mid)) > y)
			lo = mid;
		else
			hi = mid;
	}
	return exp(lo);
}

#define ROWS_MIN 8
/* Degrees of freedom of each row with which alike can be told from unlike. */
#define FREEDOM_MIN 4

/* Squared mean over the sampling variance: how many samples it is like. */
static double samples_like(const struct sp_run_pair *row)
{
	return (square_of(row->old->mean) + square_of(row->new->mean)) /
	       (row->old->noise + row->new->noise);
}

/* Relative variance between runs that is not sampling: a ratio is 1 + spread *
 * samples on average, with a standard deviation as large.  Weights need the
 * result; a few rounds settle it. */
static double fit_spread(const struct sp_run_pair *rows, size_t n)
{
	double spread = 0;

	for (int round = 0; round < 20; round++) {
		double sum = 0, weights = 0;

		for (size_t i = 0; i < n; i++) {
			const double s = samples_like(&rows[i]);
			const double weight = s / square_of(1 + spread * s);
			const double ratio = sp_run_variance_ratio(
				rows[i].old, rows[i].new, 0);

			sum += weight * (ratio - 1);
			weights += weight * s;
		}
		spread = weights > 0 ? fmax(sum / weights, 0) : 0;
	}
	return spread;
}

/* The logarithms of what is left. */
struct ratios {
	size_t n;
	double mean, squares, largest;
};

/* Equal values in all runs, of which there is no logarithm, are left out. */
static struct ratios look_at_ratios(const struct sp_run_pair *rows, size_t n,
				    double spread)
{
	struct ratios r = {.largest = -INFINITY};

	for (size_t i = 0; i < n; i++) {
		const double ratio =
			sp_run_variance_ratio(rows[i].old, rows[i].new, spread);
		double from_mean;

		if (!(ratio > 0))
			continue;
		from_mean = log(ratio) - r.mean;
		r.mean += from_mean / (double)++r.n;
		r.squares += from_mean * (log(ratio) - r.mean);
		r.largest = fmax(r.largest, log(ratio));
	}
	return r;
}

/* Levels at which rows are not taken to be alike: of their variance, and of the
 * largest of them.  One row that is taken for another is a false alarm, one
 * that is not borrows nothing. */
#define ALIKE_LEVEL 0.9

/*
 * Do the rows have one law of noise?  Then the ratios are as those of chi
 * squares, of which the variance of the logarithms, the variance of an estimate
 * of that, and the largest of n are known.
 */
static bool are_alike(const struct ratios *r, double half)
{
	const double n = (double)r->n, var = trigamma(half);
	const double error = sqrt((pentagamma(half) + 2 * square_of(var)) / n);
	const double z = sp_special_normal_quantile(ALIKE_LEVEL);
	const double each = pow(ALIKE_LEVEL, 1 / n);
	const double largest =
		log(sp_special_gamma_quantile(half, each)) - digamma(half);

	return r->squares / (n - 1) < var + z * error &&
	       r->largest - r->mean < largest;
}

/* (E30) Ratios that are distributed as ratio * F(each, freedom): their
 * logarithms tell both. */
static void fit_ratio(const struct ratios *r, double half,
		      struct sp_run_noise *noise)
{
	double mean = r->mean - (digamma(half) - log(half));
	const double excess = r->squares / (double)(r->n - 1) - trigamma(half);

	noise->freedom = excess > 0 ? 2 * trigamma_inverse(excess) : INFINITY;
	if (excess > 0)
		mean += digamma(noise->freedom / 2) - log(noise->freedom / 2);
	noise->ratio = exp(mean);
}

struct sp_run_noise sp_run_noise_fit(const struct sp_run_pair *rows, size_t n)
{
	struct sp_run_noise noise = {0};
	struct ratios ratios;
	double half;

	if (n < ROWS_MIN ||
	    sp_runs_freedom(rows[0].old, rows[0].new) < FREEDOM_MIN)
		return noise;
	half = (double)sp_runs_freedom(rows[0].old, rows[0].new) / 2;
	noise.spread = fit_spread(rows, n);
	ratios = look_at_ratios(rows, n, noise.spread);
	if (ratios.n >= ROWS_MIN && are_alike(&ratios, half))
		fit_ratio(&ratios, half, &noise);
	return noise;
}

/* Samples and the noise of the whole explain more with this probability. */
#define WILD_LEVEL 0.99

/* Of the runs of one side: squares between them over the variance that samples
 * and the whole explain, which is as chi squares at most; and how many. */
static void add_dispersion(const struct sp_runs *runs,
			   const struct sp_runs *whole, double *sum,
			   double *freedom)
{
	const double explained = runs->noise + whole->var;
	const double d = (double)(runs->n - 1);

	if (!(d > 0) || !(runs->var > 0))
		return;
	*sum += d * runs->var / explained;
	*freedom += d;
}

static bool is_too_much(double sum, double freedom)
{
	/* the quantile is above the mean */
	return sum > freedom &&
	       sum > 2 * sp_special_gamma_quantile(freedom / 2, WILD_LEVEL);
}

bool sp_run_is_wild(const struct sp_runs *old, const struct sp_runs *new,
		    const struct sp_run_noise *noise)
{
	double sum = 0, freedom = 0;

	add_dispersion(old, &noise->old_whole, &sum, &freedom);
	add_dispersion(new, &noise->new_whole, &sum, &freedom);
	return is_too_much(sum, freedom);
}

/* (E56) */
void sp_run_noise_bound(struct sp_run_noise *noise,
			const struct sp_run_pair *rows, size_t n,
			const struct sp_runs *old_whole,
			const struct sp_runs *new_whole)
{
	double sum = 0, freedom = 0;

	for (size_t i = 0; i < n; i++) {
		add_dispersion(rows[i].old, old_whole, &sum, &freedom);
		add_dispersion(rows[i].new, new_whole, &sum, &freedom);
	}
	noise->is_bounded = !is_too_much(sum, freedom);
	noise->old_whole = *old_whole;
	noise->new_whole = *new_whole;
}
