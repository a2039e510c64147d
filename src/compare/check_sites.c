/* SPDX-License-Identifier: MIT */
/* Limits on every function by itself: which ones are beyond, and whether those
 * that were not found would have been. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "compare/check.h"
#include "text/figures.h"

static const struct sp_match_row *largest_row(const struct sp_match_row *rows,
					      size_t n)
{
	const struct sp_match_row *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (!best || rows[i].old.mean > best->old.mean)
			best = &rows[i];
	return best;
}

/* Is it seen that the row is within the limit? */
static bool is_within(const struct sp_checker *c, const struct sp_limit *limit,
		      const struct sp_match_row *row,
		      const struct sp_run_noise *noise)
{
	const struct sp_allowance *a = &limit->allowance;
	const double level = c->check->level;

	return sp_change_up(&row->old, &row->new, a, noise, level) ==
		       SP_CHANGE_WITHIN &&
	       (!limit->both_ways ||
		sp_change_down(&row->old, &row->new, a, noise, level) ==
			SP_CHANGE_WITHIN);
}

/* The period with which the row would be seen to be within the limit; 0 if no
 * period would help. */
static uint64_t period_for(const struct sp_checker *c,
			   const struct sp_limit *limit,
			   const struct sp_match_row *row,
			   const struct sp_run_noise *noise)
{
	const double size = fmax(row->old.mean, row->new.mean);
	const double allowed =
		fmax(limit->allowance.growth, limit->allowance.amount / size);
	const double sampling = (row->old.noise / (double)row->old.n +
				 row->new.noise / (double)row->new.n) /
				2 / (size * size);
	const double period = (double)c->pair->new.run[0]->period_bytes;

	if (sp_runs_own_variance(&row->old, &row->new, noise) * size * size >
	    fmax(row->old.noise, row->new.noise))
		return 0; /* the program's own noise is larger */
	return (uint64_t)fmax(1,
			      floor(period *
				    sp_variance_needed(allowed, c->check->level,
						       SP_CHECK_POWER) /
				    sampling));
}

/* A function without a sample may have some bytes: a limit with an amount must
 * leave room for them. */
static bool would_be_seen(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_summary *first = c->pair->new.run[0];
	const double amount = f->limit->allowance.amount;
	struct sp_acc none;
	struct sp_runs runs;
	double most;

	if (!(amount > 0) || first->period_bytes == 1)
		return true;
	sp_acc_init(&none, first->period_bytes);
	sp_runs_sampled(&runs, &none, 1, false);
	most = sp_runs_mean(&runs, c->check->level).hi / (double)c->pair->new.n;
	if (most <= amount)
		return true;
	f->period_needed = (uint64_t)fmax(
		1, floor((double)first->period_bytes * amount / most));
	sp_check_cannot_tell(f, "a new function of %s can be without a sample",
			     sp_text_bytes(most).text);
	return false;
}

/* If no function was found beyond the limit, that is no answer unless the
 * samples could have shown it: each function must be within the limit. */
static void judge_unfound(const struct sp_checker *c, struct sp_finding *f,
			  const struct sp_match_row *rows, size_t n,
			  const struct sp_run_noise *noise)
{
	double sum = 0, undecided = 0;
	bool is_period = would_be_seen(c, f);
	uint64_t period = f->period_needed;

	for (size_t i = 0; i < n; i++) {
		const double size = rows[i].old.mean + rows[i].new.mean;
		uint64_t needed;

		sum += size;
		if (is_within(c, f->limit, &rows[i], noise))
			continue;
		needed = period_for(c, f->limit, &rows[i], noise);
		period = f->n_undecided++ || !is_period
				 ? (needed < period ? needed : period)
				 : needed;
		undecided += size;
	}
	if (!f->n_undecided)
		return;
	f->undecided_share = undecided / sum;
	f->period_needed = period;
	sp_check_cannot_tell(
		f,
		"%zu of %zu function%s, %s of the bytes, %s too few "
		"samples for this limit",
		f->n_undecided, n, sp_text_plural(n),
		sp_figure_share(f->undecided_share).text,
		f->n_undecided == 1 ? "has" : "have");
}

static void judge_sites(const struct sp_checker *c, struct sp_finding *f,
			const struct sp_match_row *rows, size_t n,
			const struct sp_run_noise *noise)
{
	const struct sp_match_row *best = largest_row(rows, n);
	struct sp_reach reach = {.allowance = f->limit->allowance,
				 .noise = noise,
				 .power = SP_CHECK_POWER};

	if (!best) {
		sp_check_cannot_tell(f, "nothing was sampled");
		return;
	}
	reach.old = &best->old;
	reach.new = &best->new;
	/* the first of many that are rejected */
	reach.p = (1 - c->check->level) / (double)(f->n_tests ? f->n_tests : 1);
	f->new_site_bytes =
		sp_reach_new(&reach, c->pair->new.run[0]->period_bytes);
	f->detectable = best->old.mean > 0 ? sp_reach_growth(&reach) : INFINITY;
	if (!f->n_culprits) {
		judge_unfound(c, f, rows, n, noise);
		if (!f->n_moved)
			return;
		f->period_needed = 0;
		sp_check_cannot_tell(
			f,
			"other inlining or build flags: %zu function%s with "
			"bytes that callers or callees had before",
			f->n_moved, sp_text_plural(f->n_moved));
		return;
	}
	f->verdict = SP_VERDICT_IMPROVED;
	for (size_t i = 0; i < f->n_culprits; i++)
		if (!f->culprits[i].is_path && f->culprits[i].change.value > 0)
			f->verdict = SP_VERDICT_REGRESSION;
}

/* ---- what cannot be compared ---- */

/* Rows that are beyond only because of other inlining are not: their p becomes
 * 1. */
static int leave_moved(const struct sp_checker *c, struct sp_finding *f,
		       const struct sp_keys *keys,
		       const struct sp_moved_test *test,
		       const struct sp_match_row *rows, double *p, size_t n,
		       double threshold)
{
	struct sp_key_paths paths;
	int r = sp_key_paths_init(&paths, keys);

	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct sp_path_list changed =
			sp_key_paths_of(&paths, rows[i].key);
		struct sp_moved_test of_row = *test;

		if (p[i] > threshold)
			continue;
		of_row.is_down = rows[i].new.mean < rows[i].old.mean;
		r = sp_moved_is_real(c->moved, &changed, &of_row);
		if (r)
			continue;
		p[i] = 1;
		f->n_moved++;
	}
	sp_key_paths_done(&paths);
	return r < 0 ? r : 0;
}

/* Functions that have names in some runs only go to the end; returns how many
 * are before them. */
static size_t leave_unnamed(const struct sp_checker *c,
			    struct sp_match_row *rows, size_t n)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sp_match_row row = rows[i];

		if (sp_names_is_mixed(&c->check->caveats.names, c->pair->paths,
				      row.key))
			continue;
		rows[i] = rows[n_kept];
		rows[n_kept++] = row;
	}
	return n_kept;
}

/* Functions that were not tested may be beyond the limit. */
static void doubt_unnamed(struct sp_finding *f, const struct sp_match_row *rows,
			  size_t n_kept, size_t n)
{
	double sum = 0, unnamed = 0;

	for (size_t i = 0; i < n; i++) {
		const double size = rows[i].old.mean + rows[i].new.mean;

		sum += size;
		unnamed += i < n_kept ? 0 : size;
	}
	if (n == n_kept || f->verdict == SP_VERDICT_REGRESSION)
		return;
	f->period_needed = 0;
	f->detectable = INFINITY; /* the largest may be among them */
	sp_check_cannot_tell(
		f,
		"%s of the bytes are of functions with names in some runs "
		"only",
		sp_figure_share(unnamed / sum).text);
}

/* ---- all of it ---- */

static int check_rows(const struct sp_checker *c, struct sp_finding *f,
		      const struct sp_match_of *of, const struct sp_keys *keys,
		      const struct sp_match_row *rows, size_t n)
{
	const struct sp_match_test test = {
		f->limit->allowance, f->limit->both_ways, 1 - c->check->level};
	double *p = calloc(n + 1, sizeof(*p)), threshold;
	struct sp_run_noise noise = {0};
	const struct sp_moved_test real = {.of = of,
					   .allowance = test.allowance,
					   .noise = &noise,
					   .p = test.rate};
	int r = p ? sp_match_noise(c->pair, of, rows, n, &noise) : -ENOMEM;

	if (!r)
		r = sp_match_test(rows, n, &test, &noise, p, &threshold,
				  &f->n_tests);
	if (!r && threshold >= 0)
		r = leave_moved(c, f, keys, &real, rows, p, n, threshold);
	if (!r)
		r = sp_explain_sites(c, of, rows, p, n, threshold, &noise, f);
	if (!r)
		judge_sites(c, f, rows, n, &noise);
	free(p);
	return r;
}

/* Only how large it is at most: one function of many is not looked at by
 * itself (E30). */
int sp_check_noise(const struct sp_checker *c, const struct sp_match_of *of,
		   struct sp_run_noise *ret)
{
	struct sp_match_of flat = *of;
	struct sp_match_row *rows;
	struct sp_keys keys;
	size_t n;
	int r = sp_keys_flat(c->pair->paths, NULL, &keys);

	if (r < 0)
		return r;
	flat.is_whole = false;
	r = sp_match_new(c->pair, &flat, &keys, NULL, &rows, &n);
	if (!r) {
		r = sp_match_noise(c->pair, &flat, rows, n, ret);
		ret->freedom = 0;
		free(rows);
	}
	sp_keys_done(&keys);
	return r;
}

int sp_check_sites(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_match_of of = sp_check_samples_of(f->limit);
	struct sp_match_row *rows;
	struct sp_keys keys;
	size_t n, n_kept;
	int r = sp_keys_flat(c->pair->paths, NULL, &keys);

	if (r < 0)
		return r;
	r = sp_match_new(c->pair, &of, &keys, NULL, &rows, &n);
	if (!r) {
		n_kept = leave_unnamed(c, rows, n);
		r = check_rows(c, f, &of, &keys, rows, n_kept);
		doubt_unnamed(f, rows, n_kept, n);
		free(rows);
	}
	sp_keys_done(&keys);
	return r;
}
