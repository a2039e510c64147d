/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stats/estimator.h"

/*
 * Two sides of a comparison, old and new, each one or several runs of a
 * program (docs/statistics.md, "Two sides").  What is compared is the mean over
 * the runs of a side of one amount: bytes or objects.
 */
struct sp_runs {
	size_t n;       /* runs, >= 1 */
	double mean;    /* of their values */
	double var;     /* between them: sum of squares / (n - 1); 0 if n = 1 */
	double log_var; /* of their logarithms, likewise; INFINITY: one is 0 */
	double noise;   /* mean of the sampling variances of the runs' values */
	bool of_acc;    /* sampling noise is that of `acc`, else of `limits` */
	bool is_count;  /* of acc: objects instead of bytes */
	struct sp_acc acc;         /* all runs together */
	struct sp_interval limits; /* of the mean, at `level` */
	double level;              /* in (0, 1); 0: they hold at any */
	double certain;            /* of the mean: it is at least that */
};

/* values[0..n), exact. */
void sp_runs_exact(struct sp_runs *ret, const double *values, size_t n);

/* Estimates of n runs with their intervals at `level`; 0: what is in them is
 * not known, but nothing is left to chance. */
void sp_runs_estimated(struct sp_runs *ret, const struct sp_interval *runs,
		       size_t n, double level);

/* The bytes, or objects, that the samples of n runs stand for. */
void sp_runs_sampled(struct sp_runs *ret, const struct sp_acc *runs, size_t n,
		     bool is_count);

/* The mean with its sampling interval, at `confidence` in (0, 1). */
struct sp_interval sp_runs_mean(const struct sp_runs *runs, double confidence);

/*
 * What the rows of a comparison tell of the program's own noise (E30): between
 * runs, a row of that mean and sampling variance is expected to have `ratio`
 * times the variance noise + spread * mean^2, give or take what `freedom`
 * degrees of freedom mean.  freedom 0: nothing is told, or the rows are not
 * alike, so that none speaks for another; INFINITY: all rows have just that.
 */
struct sp_run_noise {
	double spread;
	double ratio;
	double freedom;
	/* Exact amounts of which all rows are parts: no row's noise between
	 * runs exceeds theirs (E56). */
	bool is_bounded;
	struct sp_runs old_whole;
	struct sp_runs new_whole;
};

/* One row of a comparison, borrowed. */
struct sp_run_pair {
	const struct sp_runs *old;
	const struct sp_runs *new;
};

/* Learn it from n rows, of one number of runs on each side, all with sampling
 * variance on both; fewer than 8 tell nothing. */
struct sp_run_noise sp_run_noise_fit(const struct sp_run_pair *rows, size_t n);

/* For run_noise.c: the variance between runs over the expected one, of both
 * sides, each by its degrees of freedom; 0 if none is expected. */
double sp_run_variance_ratio(const struct sp_runs *old,
			     const struct sp_runs *new, double spread);

/*
 * Learn from n rows whether the noise of the whole bounds theirs, and set it if
 * so (E56): not if rows vary more than samples and the whole explain, as
 * functions do that take turns.
 */
void sp_run_noise_bound(struct sp_run_noise *noise,
			const struct sp_run_pair *rows, size_t n,
			const struct sp_runs *old_whole,
			const struct sp_runs *new_whole);

/* Does the row vary more than sampling and the whole explain? */
bool sp_run_is_wild(const struct sp_runs *old, const struct sp_runs *new,
		    const struct sp_run_noise *noise);

/* Degrees of freedom between the runs of a pair of sides, 0 with one run on
 * each. */
size_t sp_runs_freedom(const struct sp_runs *old, const struct sp_runs *new);

/*
 * new - factor * old, factor >= 0, at `confidence` in (0, 1): the sampling
 * interval (E27), extended to that by the noise between the runs where there
 * are several (E28, E30).  `noise` may be NULL.
 */
struct sp_interval sp_contrast(const struct sp_runs *old,
			       const struct sp_runs *new, double factor,
			       const struct sp_run_noise *noise,
			       double confidence);

/* What a change may be: both have to be exceeded to count as more. */
struct sp_allowance {
	double growth; /* relative to old, >= 0; downwards < 1 */
	double amount; /* >= 0 */
};

/*
 * How far the change is above the allowance: an interval is above it if both of
 * its contrasts are, and within it if one is (E29).
 */
enum sp_change {
	SP_CHANGE_WITHIN, /* the whole interval is within the allowance */
	SP_CHANGE_MAYBE,  /* it reaches beyond */
	SP_CHANGE_BEYOND, /* the whole interval is beyond */
};

enum sp_change sp_change_up(const struct sp_runs *old,
			    const struct sp_runs *new,
			    const struct sp_allowance *allowance,
			    const struct sp_run_noise *noise,
			    double confidence);
enum sp_change sp_change_down(const struct sp_runs *old,
			      const struct sp_runs *new,
			      const struct sp_allowance *allowance,
			      const struct sp_run_noise *noise,
			      double confidence);

/* Is the change seen to be beyond the allowance by a one-sided test at the
 * level p in (0, 0.5] (E29)? */
bool sp_change_is_beyond(const struct sp_runs *old, const struct sp_runs *new,
			 const struct sp_allowance *allowance, bool is_down,
			 const struct sp_run_noise *noise, double p);

/*
 * p-value, one-sided, of "within the allowance" against "beyond" (E29); 1 if
 * it is above `largest`, in (0, 0.5].
 */
double sp_change_p(const struct sp_runs *old, const struct sp_runs *new,
		   const struct sp_allowance *allowance, bool is_down,
		   const struct sp_run_noise *noise, double largest);

/*
 * Benjamini and Hochberg's procedure (E31): the largest p-value that is
 * rejected at the false-discovery rate `rate`, -1 if none is.  -ENOMEM; else 0
 * and *ret.
 */
int sp_false_discovery(const double *p, size_t n, double rate, double *ret);

/*
 * What a one-sided test at the level p in (0, 0.5] would find in a comparison
 * of so many runs as these two sides of a row have, and with their noise:
 * computed by the test itself (E32).
 */
struct sp_reach {
	const struct sp_runs *old;
	const struct sp_runs *new;
	struct sp_allowance allowance;
	const struct sp_run_noise *noise; /* see sp_contrast() */
	double p;
	double power; /* in [0.5, 1): of what is found so often */
};

/* The least relative growth of the row, of mean(old) > 0; INFINITY: none. */
double sp_reach_growth(const struct sp_reach *reach);

/* The least bytes of a new row of small objects in a comparison of sampled
 * bytes; INFINITY: none. */
double sp_reach_new(const struct sp_reach *reach, uint64_t period_bytes);

/* The variance of each mean at which no change is seen to be within `allowed`
 * > 0, with that power: the samples, as 1 / variance, that are needed (E33). */
double sp_variance_needed(double allowed, double confidence, double power);

/*
 * The program's own variance between runs, of one run, relative to the square
 * of the row's mean: what sampling does not explain; where the whole bounds it
 * (E56), that of the whole.  `noise`: see sp_contrast().
 */
double sp_runs_own_variance(const struct sp_runs *old,
			    const struct sp_runs *new,
			    const struct sp_run_noise *noise);
