/* SPDX-License-Identifier: MIT */
/* Limits on every function by itself: which ones are beyond, and whether those
 * that were not found would have been. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gate/check.h"
#include "gate/figures.h"

/* Bytes of a new function that would have been found among n. */
static double new_site_bytes(const struct sp_checker *c,
			     const struct sp_allowance *allowance, size_t n,
			     double rate)
{
	const struct sp_allowance growth = {.growth = allowance->growth};
	const uint64_t period = c->pair->new.run[0]->period_bytes;
	const double p_largest = rate / (double)(n ? n : 1);
	const struct sp_law_used plain = {0};
	struct sp_acc none, some;
	struct sp_runs old, new;

	if (period == 1)
		return allowance->amount + 1;
	sp_acc_init(&none, period);
	sp_acc_init(&some, period);
	sp_runs_sampled(&old, &none, 1, false);
	old.n = c->pair->old.n;
	do {
		sp_acc_add(&some, &plain, 1, 0, period);
		sp_runs_sampled(&new, &some, 1, false);
		new.n = c->pair->new.n;
		new.mean /= (double)new.n;
	} while (some.samples < 1000 &&
		 sp_change_p(&old, &new, &growth, false, NULL, p_largest) == 1);
	/* so many are expected that fewer are seen once in twenty times */
	return pow(sqrt((double)some.samples) + 0.83, 2) * (double)period /
		       (double)new.n +
	       allowance->amount;
}

static const struct sp_match_row *largest(const struct sp_match_row *rows,
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
			   const struct sp_match_row *row)
{
	const double size = fmax(row->old.mean, row->new.mean);
	const double allowed =
		fmax(limit->allowance.growth, limit->allowance.amount / size);
	const double sampling = (row->old.noise / (double)row->old.n +
				 row->new.noise / (double)row->new.n) /
				2 / (size * size);
	const double period = (double)c->pair->new.run[0]->period_bytes;

	if (row->old.var > 2 * row->old.noise ||
	    row->new.var > 2 * row->new.noise)
		return 0; /* the program's own noise is larger */
	return (uint64_t)fmax(1,
			      floor(period *
				    sp_variance_needed(allowed, c->check->level,
						       SP_CHECK_POWER) /
				    sampling));
}

/* What a function without a sample may have: the limit has to leave room for
 * it, if it speaks of an amount. */
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

/* That no function was found to be beyond the limit is no answer where the
 * samples would not have shown it: each has to be seen to be within. */
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
		needed = period_for(c, f->limit, &rows[i]);
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
		"%zu of %zu functions, %s of the bytes, have too few "
		"samples for this limit",
		f->n_undecided, n, sp_figure_share(f->undecided_share).text);
}

static void judge_sites(const struct sp_checker *c, struct sp_finding *f,
			const struct sp_match_row *rows, size_t n,
			const struct sp_run_noise *noise)
{
	const struct sp_match_row *best = largest(rows, n);
	const double rate = 1 - c->check->level;

	f->new_site_bytes =
		new_site_bytes(c, &f->limit->allowance, f->n_tests, rate);
	if (!best) {
		sp_check_cannot_tell(f, "nothing was sampled");
		return;
	}
	f->detectable = sp_detectable_growth(
		sp_relative_variance(&best->old, noise),
		sp_relative_variance(&best->old, noise),
		f->limit->allowance.growth, 1 - 2 * rate, SP_CHECK_POWER);
	if (!f->n_culprits) {
		judge_unfound(c, f, rows, n, noise);
		if (!f->n_moved)
			return;
		f->period_needed = 0;
		sp_check_cannot_tell(
			f,
			"other inlining or build flags: %zu function%s with "
			"what callers or callees had before",
			f->n_moved, sp_text_plural(f->n_moved));
		return;
	}
	f->verdict = SP_VERDICT_IMPROVED;
	for (size_t i = 0; i < f->n_culprits; i++)
		if (!f->culprits[i].is_path && f->culprits[i].change.value > 0)
			f->verdict = SP_VERDICT_REGRESSION;
}

/* ---- other inlining ---- */

/*
 * A function that is inlined has no frame, unless debug information tells: with
 * other flags of a build it appears, or goes, and its bytes are its caller's.
 * So what is beyond is looked at once more with frames that one side lacks
 * left out, inside out and within a module: it is beyond only if there, too,
 * something is.
 */
struct boundary {
	size_t *depth; /* of each path: of the first frame of both sides */
	bool *beyond;  /* of each frame, looked at so: [0] grew, [1] shrank */
	size_t n_frames;
};

static int find_depths(const struct sp_pair *pair, struct boundary *b)
{
	const struct sp_paths *paths = pair->paths;
	const size_t n_paths = paths->paths.n_entries;
	bool *old = calloc(b->n_frames + 1, sizeof(*old));
	bool *new = calloc(b->n_frames + 1, sizeof(*new));
	const bool is_fine = old && new;

	if (is_fine) {
		sp_match_mark(pair, &pair->old, old);
		sp_match_mark(pair, &pair->new, new);
	}
	for (uint32_t i = 0; is_fine && i < n_paths; i++) {
		const size_t n = sp_paths_depth(paths, i);

		for (size_t d = 0; d < n; d++) {
			const uint32_t frame = sp_paths_frame(paths, i, d);

			if (!sp_match_same_module(paths, frame,
						  sp_paths_frame(paths, i, 0)))
				break;
			if (!old[frame] || !new[frame])
				continue;
			b->depth[i] = d;
			break;
		}
	}
	free(old);
	free(new);
	return is_fine ? 0 : -ENOMEM;
}

static int find_beyond(const struct sp_checker *c, const struct sp_match_of *of,
		       const struct sp_match_test *test, struct boundary *b)
{
	struct sp_run_noise noise = {0};
	struct sp_match_row *rows = NULL;
	double *p = NULL, threshold;
	struct sp_keys keys;
	size_t n = 0, n_tests;
	int r = sp_keys_at(c->pair->paths, b->depth, &keys);

	if (r < 0)
		return r;
	r = sp_match_new(c->pair, of, &keys, NULL, &rows, &n);
	if (!r) {
		p = calloc(n + 1, sizeof(*p));
		r = p ? sp_match_noise(rows, n, &noise) : -ENOMEM;
	}
	if (!r)
		r = sp_match_test(rows, n, test, &noise, p, &threshold,
				  &n_tests);
	for (size_t i = 0; !r && i < n; i++)
		if (p[i] <= threshold)
			b->beyond[2 * rows[i].key +
				  (rows[i].new.mean < rows[i].old.mean)] = true;
	free(p);
	free(rows);
	sp_keys_done(&keys);
	return r;
}

/* Is something of what the function allocates itself beyond, looked at so? */
static bool stays_beyond(const struct sp_paths *paths, const struct boundary *b,
			 const struct sp_match_row *row)
{
	const bool is_down = row->new.mean < row->old.mean;

	for (uint32_t i = 0; i < paths->paths.n_entries; i++)
		if (sp_paths_depth(paths, i) &&
		    sp_paths_frame(paths, i, 0) == row->key &&
		    b->beyond[2 * sp_paths_frame(paths, i, b->depth[i]) +
			      is_down])
			return true;
	return false;
}

/* Rows that are beyond for that reason alone are not: their p becomes 1. */
static int leave_moved(const struct sp_checker *c, struct sp_finding *f,
		       const struct sp_match_of *of,
		       const struct sp_match_test *test,
		       const struct sp_match_row *rows, double *p, size_t n,
		       double threshold)
{
	const struct sp_paths *paths = c->pair->paths;
	struct boundary b = {.n_frames = paths->frames.n_entries};
	int r = -ENOMEM;

	b.depth = calloc(paths->paths.n_entries + 1, sizeof(*b.depth));
	b.beyond = calloc(2 * b.n_frames + 2, sizeof(*b.beyond));
	if (b.depth && b.beyond)
		r = find_depths(c->pair, &b);
	if (!r)
		r = find_beyond(c, of, test, &b);
	for (size_t i = 0; !r && i < n; i++) {
		if (p[i] > threshold || stays_beyond(paths, &b, &rows[i]))
			continue;
		p[i] = 1;
		f->n_moved++;
	}
	free(b.depth);
	free(b.beyond);
	return r;
}

/* ---- all of it ---- */

static int check_rows(const struct sp_checker *c, struct sp_finding *f,
		      const struct sp_match_of *of,
		      const struct sp_match_row *rows, size_t n)
{
	const struct sp_match_test test = {
		f->limit->allowance, f->limit->both_ways, 1 - c->check->level};
	double *p = calloc(n + 1, sizeof(*p)), threshold;
	struct sp_run_noise noise = {0};
	int r = p ? sp_match_noise(rows, n, &noise) : -ENOMEM;

	if (!r)
		r = sp_match_test(rows, n, &test, &noise, p, &threshold,
				  &f->n_tests);
	if (!r && threshold >= 0)
		r = leave_moved(c, f, of, &test, rows, p, n, threshold);
	if (!r)
		r = sp_explain_sites(c->pair, of, rows, p, n, threshold, &noise,
				     c->check->level, f);
	if (!r)
		judge_sites(c, f, rows, n, &noise);
	free(p);
	return r;
}

int sp_check_sites(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_match_of of = sp_check_samples_of(f->limit);
	struct sp_match_row *rows;
	struct sp_keys keys;
	size_t n;
	int r = sp_keys_flat(c->pair->paths, NULL, &keys);

	if (r < 0)
		return r;
	r = sp_match_new(c->pair, &of, &keys, NULL, &rows, &n);
	if (!r) {
		r = check_rows(c, f, &of, rows, n);
		free(rows);
	}
	sp_keys_done(&keys);
	return r;
}
