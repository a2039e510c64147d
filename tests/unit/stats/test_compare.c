/* SPDX-License-Identifier: MIT */
/* E27 to E33: contrasts, noise between runs, false discoveries, what can be
 * detected. */
#include <math.h>

#include "base/rng.h"
#include "lab/random.h"
#include "stats/compare.h"
#include "stats/special.h"
#include "support/close.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define R        4096u

static const struct sp_law_used plain = {0};

/* n samples of objects so small that each stands for R bytes. */
static struct sp_acc small_samples(unsigned int n)
{
	struct sp_acc acc;

	sp_acc_init(&acc, R);
	while (n--)
		sp_acc_add(&acc, &plain, 1, 0, R);
	return acc;
}

static struct sp_runs sampled(unsigned int n)
{
	const struct sp_acc acc = small_samples(n);
	struct sp_runs runs;

	sp_runs_sampled(&runs, &acc, 1, false);
	return runs;
}

static struct sp_runs exact(const double *values, size_t n)
{
	struct sp_runs runs;

	sp_runs_exact(&runs, values, n);
	return runs;
}

TEST(exact_single_runs_are_points)
{
	const double old = 1000, new = 1031;
	const struct sp_runs a = exact(&old, 1), b = exact(&new, 1);
	const struct sp_interval c = sp_contrast(&a, &b, 1, NULL, 0.99);

	assert_true(c.value == 31 && c.lo == 31 && c.hi == 31);
	assert_int_equal(sp_change_up(&a, &b, &(struct sp_allowance){0.03, 0},
				      NULL, 0.99),
			 SP_CHANGE_BEYOND);
	assert_int_equal(sp_change_up(&a, &b, &(struct sp_allowance){0.031, 0},
				      NULL, 0.99),
			 SP_CHANGE_WITHIN);
	/* both have to be exceeded */
	assert_int_equal(sp_change_up(&a, &b, &(struct sp_allowance){0.03, 31},
				      NULL, 0.99),
			 SP_CHANGE_WITHIN);
	assert_int_equal(sp_change_up(&a, &b, &(struct sp_allowance){0.03, 30},
				      NULL, 0.99),
			 SP_CHANGE_BEYOND);
	assert_int_equal(sp_change_down(&b, &a, &(struct sp_allowance){0.03, 0},
					NULL, 0.99),
			 SP_CHANGE_BEYOND);
	assert_int_equal(sp_change_down(&b, &a,
					&(struct sp_allowance){0.031, 0}, NULL,
					0.99),
			 SP_CHANGE_WITHIN);
}

/* Welch's interval of two textbook samples, by hand: means 3 and 7, variances
 * 2.5 and 10, five values each: t at 5.882 degrees of freedom. */
TEST(runs_by_welch)
{
	const double old[] = {1, 2, 3, 4, 5}, new[] = {3, 5, 7, 9, 11};
	const struct sp_runs a = exact(old, 5), b = exact(new, 5);
	const struct sp_interval c = sp_contrast(&a, &b, 1, NULL, 0.95);
	const double freedom = 2.5 * 2.5 / (0.25 / 4 + 4.0 / 4);
	const double t = (c.hi - c.value) / sqrt(2.5);
	double p;

	assert_close(a.var, 2.5, 1e-12);
	assert_close(b.var, 10, 1e-12);
	assert_close(c.value, 4, 1e-12);
	/* P(|T| > t) by the beta distribution is what was asked for */
	p = sp_special_beta_lower(freedom / 2, 0.5,
				  freedom / (freedom + t * t));
	assert_close(p, 0.05, 1e-9);
	/* from a table: t(5, 0.975) = 2.571, t(6, 0.975) = 2.447 */
	assert_between(2.447, t, 2.571);
	assert_close(c.value - c.lo, c.hi - c.value, 1e-12);
}

/* P(|T| > t) of Student's law. */
static double two_sided(double t, double freedom)
{
	return sp_special_beta_lower(freedom / 2, 0.5,
				     freedom / (freedom + t * t));
}

/* One new run against several: it is as noisy as they are. */
TEST(one_run_borrows_the_noise)
{
	const double old[] = {98, 99, 100, 101, 102}, new = 104;
	const struct sp_runs a = exact(old, 5), b = exact(&new, 1);
	const struct sp_interval c = sp_contrast(&a, &b, 1, NULL, 0.95);
	double mean = 0, squares = 0, t;

	/* wider than t(4, 0.975) = 2.776 would make it */
	assert_true(c.hi - c.value > 2.7764451 * sqrt(2.5 * (1 + 0.2)));
	/* logarithms decide, with 0.42 of 4 degrees of freedom */
	for (int i = 0; i < 5; i++)
		mean += log(old[i]) / 5;
	for (int i = 0; i < 5; i++)
		squares += pow(log(old[i]) - mean, 2);
	t = -log((new - (c.value - c.lo)) / new) / sqrt(squares / 4 * 1.2);
	assert_close(two_sided(t, 0.42 * 4), 0.05, 1e-6);
	assert_close((new + (c.hi - c.value)) / new,
		     new / (new - (c.value - c.lo)), 1e-9);
}

/* A value of 0 has no logarithm: the values decide. */
TEST(one_run_against_nothing)
{
	const double old[] = {0, 1, 2, 1, 1}, new = 5;
	const struct sp_runs a = exact(old, 5), b = exact(&new, 1);
	const struct sp_interval c = sp_contrast(&a, &b, 1, NULL, 0.95);
	const double t = (c.hi - c.value) / sqrt(0.5 * 1.2);

	assert_close(two_sided(t, 0.42 * 4), 0.05, 1e-6);
	assert_close(c.hi - c.value, c.value - c.lo, 1e-12);
}

/* More old runs do not show the tail of a single new one. */
TEST(one_run_against_many)
{
	const double old[] = {0, 1, 2, 1, 1, 1, 1, 1}, new = 5;
	const struct sp_runs a = exact(old, 8), b = exact(&new, 1);
	const struct sp_interval c = sp_contrast(&a, &b, 1, NULL, 0.95);
	const double t = (c.hi - c.value) / sqrt(2.0 / 7 * (1 + 1.0 / 8));

	assert_close(two_sided(t, 2), 0.05, 1e-6);
}

/* Of the variance between old runs the sampling of the new one explains
 * nothing, whose period is longer. */
TEST(sampling_of_the_same_runs)
{
	static const struct sp_interval new = {300, 240, 360};
	struct sp_interval old[5];
	struct sp_interval c;
	struct sp_runs a, b;
	double explained, t;

	for (int i = 0; i < 5; i++) {
		const double value = 80 + 10 * i;

		old[i] = (struct sp_interval){value, value - 2, value + 2};
	}
	sp_runs_estimated(&a, old, 5, 0.95);
	sp_runs_estimated(&b, &new, 1, 0.95);
	c = sp_contrast(&a, &b, 1, NULL, 0.95);
	explained = pow(2 / 1.9599640, 2) / pow(100, 2);
	t = -log1p((c.lo - c.value) / 300) /
	    sqrt((a.log_var - explained) * 1.2);
	assert_close(two_sided(t, 0.42 * 4), 0.05, 1e-6);
}

/* Old runs that agree: what is left is sampling, twice. */
TEST(runs_that_agree)
{
	static const struct sp_interval all[] = {
		{100, 80, 120}, {100, 80, 120}, {100, 80, 120}, {100, 80, 120},
		{100, 80, 120}, {100, 80, 120}, {100, 80, 120}, {100, 80, 120},
	};
	struct sp_interval c;
	struct sp_runs a, b;

	sp_runs_estimated(&a, all, 8, 0.95);
	sp_runs_estimated(&b, all, 1, 0.95);
	c = sp_contrast(&a, &b, 1, NULL, 0.95);
	assert_close(log1p((c.hi - c.value) / 100), 0.4 * sqrt(1 + 1.0 / 8),
		     1e-6);
}

static double poisson(double mean, unsigned int k)
{
	return exp(-mean + k * log(mean) - lgamma(k + 1.0));
}

/*
 * Without random numbers: both sides expect `mean` samples of small objects.
 * How often "more than before" is said at one-sided alpha, exactly.
 */
static double false_alarms(double mean, double growth, double alpha)
{
	const unsigned int most =
		(unsigned int)(mean * (1 + growth) + 12 * sqrt(mean) + 20);
	const struct sp_allowance allowance = {.growth = growth};
	double sum = 0;

	for (unsigned int a = 0; a <= most; a++) {
		const struct sp_runs old = sampled(a);

		/* the least count that is too much, by bisection */
		unsigned int lo = 0, hi = most + 1;

		while (lo < hi) {
			const unsigned int mid = (lo + hi) / 2;
			const struct sp_runs new = sampled(mid);

			if (sp_change_up(&old, &new, &allowance, NULL,
					 1 - 2 * alpha) == SP_CHANGE_BEYOND)
				hi = mid;
			else
				lo = mid + 1;
		}
		for (unsigned int b = lo; b <= most; b++)
			sum += poisson(mean, a) *
			       poisson(mean * (1 + growth), b);
	}
	return sum;
}

TEST(exact_false_alarms)
{
	static const double means[] = {0.5, 1, 3, 10, 30, 100};
	static const double alphas[] = {0.025, 0.005, 0.0005};

	for (size_t i = 0; i < N(means); i++)
		for (size_t k = 0; k < N(alphas); k++) {
			assert_between(0, false_alarms(means[i], 0, alphas[k]),
				       1.05 * alphas[k]);
			assert_between(0,
				       false_alarms(means[i], 0.1, alphas[k]),
				       1.05 * alphas[k]);
		}
	/* it is not asleep either */
	assert_true(false_alarms(100, 0, 0.025) > 0.012);
}

TEST(p_value_is_where_the_interval_ends)
{
	const struct sp_runs a = sampled(40), b = sampled(90);
	const struct sp_allowance allowance = {.growth = 0.1};
	const double p = sp_change_p(&a, &b, &allowance, false, NULL, 0.4);

	assert_between(1e-6, p, 0.01);
	assert_int_equal(
		sp_change_up(&a, &b, &allowance, NULL, 1 - 2 * p * 1.001),
		SP_CHANGE_BEYOND);
	assert_int_equal(
		sp_change_up(&a, &b, &allowance, NULL, 1 - 2 * p * 0.999),
		SP_CHANGE_MAYBE);
	assert_true(sp_change_p(&a, &b, &allowance, false, NULL, p * 0.9) == 1);
	assert_true(sp_change_p(&b, &a, &allowance, false, NULL, 0.4) == 1);
	/* both have to be exceeded, here too: 50 R more is not 60 R more */
	assert_true(sp_change_p(&a, &b,
				&(struct sp_allowance){.growth = 0.1,
						       .amount = 60 * R},
				false, NULL, 0.4) == 1);
	assert_between(p,
		       sp_change_p(&a, &b,
				   &(struct sp_allowance){.growth = 0.1,
							  .amount = 20 * R},
				   false, NULL, 0.4),
		       0.05);
}

/* Benjamini and Hochberg's own example has 15 values; at 0.05 four of them are
 * rejected. */
TEST(false_discovery)
{
	static const double p[] = {0.0459, 0.0001, 0.0298, 0.0019, 0.0095,
				   0.0201, 0.0278, 0.0004, 0.0344, 0.3240,
				   0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
	double threshold;

	assert_int_equal(sp_false_discovery(p, N(p), 0.05, &threshold), 0);
	assert_true(threshold == 0.0095);
	assert_int_equal(sp_false_discovery(p, N(p), 1e-9, &threshold), 0);
	assert_true(threshold < 0);
	assert_int_equal(sp_false_discovery(NULL, 0, 0.05, &threshold), 0);
	assert_true(threshold < 0);
}

/* A step up: a value is rejected because a larger one is. */
TEST(false_discovery_steps_up)
{
	static const double p[] = {0.04, 0.04, 0.04};
	double threshold;

	assert_int_equal(sp_false_discovery(p, 3, 0.05, &threshold), 0);
	assert_true(threshold == 0.04);
}

static double growth_found(unsigned int samples, double allowed, double p,
			   double power)
{
	const struct sp_runs side = sampled(samples);

	return sp_reach_growth(&(struct sp_reach){
		&side, &side, {.growth = allowed}, NULL, p, power});
}

/* The published numbers of samples (95 % power): growth d at one-sided alpha
 * needs n in each; so n samples detect d. */
TEST(detectable_growth)
{
	static const struct {
		double samples, alpha, growth;
	} rows[] = {{8880, 0.05, 0.05},
		    {2730, 0.025, 0.1},
		    {982, 0.005, 0.2},
		    {247, 0.0005, 0.5},
		    {34, 0.05, 1}};

	for (size_t i = 0; i < N(rows); i++)
		assert_close(growth_found((unsigned int)rows[i].samples, 0,
					  rows[i].alpha, 0.95),
			     rows[i].growth, 0.12);
	/* the allowance comes first */
	assert_close(1 + growth_found(8880, 0.5, 0.05, 0.95),
		     1.5 * (1 + growth_found(8880, 0, 0.05, 0.95)), 0.01);
}

/* With the variance that is "needed", the growth that is detected without an
 * allowance is the allowance, but for the higher noise of what has grown. */
TEST(variance_needed)
{
	const double v = sp_variance_needed(0.05, 0.99, 0.95);

	assert_close(growth_found((unsigned int)(1 / v), 0, 0.005, 0.95), 0.05,
		     0.05);
}

/* Chi-square with 4 degrees of freedom. */
static double chi_square(struct sp_rng *rng)
{
	return -2 * log(sp_lab_uniform(rng)) - 2 * log(sp_lab_uniform(rng));
}

#define ROWS 4000

/*
 * Rows of three runs on each side, that is of 4 degrees of freedom, with 10 to
 * 1000 samples a run; their variance between runs has the law that the fit
 * assumes: spread, and a ratio that varies itself or not.
 */
static struct sp_run_noise fitted(size_t n, double spread, double ratio,
				  bool varies, uint64_t seed)
{
	static struct sp_runs runs[ROWS];
	static struct sp_run_pair rows[ROWS];
	struct sp_rng rng;

	sp_rng_init(&rng, seed, 0);
	for (size_t i = 0; i < n; i++) {
		const double samples = 10 * pow(100, sp_lab_uniform(&rng));
		const double own = ratio * (varies ? 4 / chi_square(&rng) : 1);

		runs[i] = (struct sp_runs){.n = 3, .mean = samples * R};
		runs[i].noise = samples * R * R;
		/* the same on both sides, so that they have 4 together */
		runs[i].var =
			own * chi_square(&rng) / 4 *
			(runs[i].noise + spread * runs[i].mean * runs[i].mean);
		rows[i] = (struct sp_run_pair){&runs[i], &runs[i]};
	}
	return sp_run_noise_fit(rows, n);
}

TEST(noise_of_all_rows)
{
	struct sp_run_noise noise = fitted(ROWS, 0.01, 1, false, 1);

	/* 4000 logarithms of standard deviation 0.8: 1.3 % */
	assert_close(noise.ratio, 1, 0.05);
	assert_close(noise.spread, 0.01, 0.1);
	assert_true(noise.freedom > 50);
	noise = fitted(ROWS, 0, 1, false, 2);
	assert_close(noise.ratio, 1, 0.05);
	assert_between(0, noise.spread, 0.0003);
	/* the ratio itself is 4 / chi^2(4): none speaks for another */
	assert_true(fitted(ROWS, 0, 1, true, 3).freedom == 0);
	assert_true(fitted(60, 0, 1, true, 5).freedom == 0);
	assert_true(fitted(7, 0, 1, false, 4).freedom == 0);
}

/* Whatever the runs say, an interval is never narrower than the sampling. */
TEST(runs_only_widen)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 3, 4);
	for (int i = 0; i < 300; i++) {
		struct sp_acc old[3], new[3], all;
		struct sp_run_noise noise = {.spread = 0.1 * (i % 3),
					     .ratio = 1 + i % 5,
					     .freedom = 1 + i % 7};
		struct sp_interval c, pooled;
		struct sp_runs a, b, pa, pb;

		for (int k = 0; k < 3; k++) {
			old[k] = small_samples(
				(unsigned int)(sp_rng_next(&rng) % 60));
			new[k] = small_samples(
				(unsigned int)(sp_rng_next(&rng) % 60));
		}
		sp_runs_sampled(&a, old, 3, false);
		sp_runs_sampled(&b, new, 3, false);
		all = old[0];
		sp_acc_merge(&all, &old[1]);
		sp_acc_merge(&all, &old[2]);
		sp_runs_sampled(&pa, &all, 1, false);
		all = new[0];
		sp_acc_merge(&all, &new[1]);
		sp_acc_merge(&all, &new[2]);
		sp_runs_sampled(&pb, &all, 1, false);
		pooled = sp_contrast(&pa, &pb, 1, NULL, 0.95);
		for (int with = 0; with < 2; with++) {
			c = sp_contrast(&a, &b, 1, with ? &noise : NULL, 0.95);
			assert_between(-1e-6, 3 * c.value - pooled.value, 1e-6);
			assert_true(3 * c.lo <= pooled.lo + 1e-6);
			assert_true(3 * c.hi >= pooled.hi - 1e-6);
		}
	}
}

/* The noise of a whole whose runs have these values. */
static struct sp_run_noise bound_of(const double old[3], double new,
				    const struct sp_run_pair *row)
{
	const struct sp_runs a = exact(old, 3), b = exact(&new, 1);
	struct sp_run_noise noise = {0};

	sp_run_noise_bound(&noise, row, 1, &a, &b);
	return noise;
}

/* Three runs against one that differ by nothing but samples, of a program of
 * which each run allocates the same: what one run would find is found; a whole
 * that differs widens each row by its own limits (E56). */
TEST(whole_bounds_the_noise)
{
	const struct sp_acc old[] = {small_samples(90), small_samples(110),
				     small_samples(106)};
	static const double same[] = {1e9, 1e9, 1e9};
	static const double differs[] = {1e9, 1e9 + 4 * R, 1e9 - 4 * R};
	const struct sp_runs all = sampled(306), b = sampled(180);
	struct sp_interval alone, bounded, sampling, wider, whole;
	struct sp_run_noise noise;
	struct sp_runs a;

	sp_runs_sampled(&a, old, 3, false);
	noise = bound_of(same, 1e9, &(struct sp_run_pair){&a, &b});
	assert_true(noise.is_bounded);
	alone = sp_contrast(&a, &b, 1, NULL, 0.9999);
	bounded = sp_contrast(&a, &b, 1, &noise, 0.9999);
	assert_close(bounded.value, 78 * R, 1e-3);
	assert_true(alone.lo < 0);
	/* what the samples say if all of old are of one run */
	sampling = sp_contrast(&all, &b, 1.0 / 3, NULL, 0.9999);
	assert_close(bounded.lo, sampling.lo, 1e-9);
	assert_close(bounded.hi, sampling.hi, 1e-9);
	noise = bound_of(differs, 1e9, &(struct sp_run_pair){&a, &b});
	wider = sp_contrast(&a, &b, 1, &noise, 0.9999);
	whole = sp_contrast(&noise.old_whole, &noise.new_whole, 1, NULL, 0.99);
	assert_close(bounded.lo - wider.lo, whole.value - whole.lo, 1e-6);
	assert_true(whole.value - whole.lo > 4 * R);
}

/* Runs of a row that differ by more than samples explain, in a whole that does
 * not: functions take turns, and the whole bounds nothing. */
TEST(rows_that_take_turns)
{
	const struct sp_acc old[] = {small_samples(60), small_samples(140),
				     small_samples(106)};
	static const double same[] = {1e9, 1e9, 1e9};
	const struct sp_runs b = sampled(180), calm = sampled(100);
	struct sp_run_noise noise;
	struct sp_interval wild, alone;
	struct sp_runs a;

	sp_runs_sampled(&a, old, 3, false);
	assert_false(
		bound_of(same, 1e9, &(struct sp_run_pair){&a, &b}).is_bounded);
	/* one row of many is by itself */
	noise = bound_of(same, 1e9, &(struct sp_run_pair){&calm, &calm});
	assert_true(noise.is_bounded);
	wild = sp_contrast(&a, &b, 1, &noise, 0.99);
	alone = sp_contrast(&a, &b, 1, NULL, 0.99);
	assert_true(wild.lo == alone.lo && wild.hi == alone.hi);
}

/* A mean of estimates: limits at another level than theirs stay on their
 * side. */
TEST(estimated_runs)
{
	const struct sp_interval runs[] = {{100, 90, 130}, {110, 95, 140}};
	struct sp_interval i;
	struct sp_runs r;

	sp_runs_estimated(&r, runs, 2, 0.95);
	i = sp_runs_mean(&r, 0.95);
	assert_close(i.value, 105, 1e-12);
	assert_close(i.value - i.lo, sqrt(100 + 225.0) / 2, 1e-12);
	assert_close(i.hi - i.value, sqrt(900 + 900.0) / 2, 1e-12);
	i = sp_runs_mean(&r, 0.99);
	assert_close(i.hi - i.value, 30 / sqrt(2) * 2.5758293 / 1.9599640,
		     1e-6);
}

TEST_MAIN(NULL, NULL)
