/* SPDX-License-Identifier: MIT */
#include "gate/check.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/amount.h"
#include "gate/figures.h"

const char *sp_verdict_name(enum sp_verdict verdict)
{
	static const char *const names[] = {
		[SP_VERDICT_PASS] = "pass",
		[SP_VERDICT_CANNOT_TELL] = "cannot tell",
		[SP_VERDICT_IMPROVED] = "improved",
		[SP_VERDICT_REGRESSION] = "regression",
	};

	return names[verdict];
}

struct checker {
	struct sp_pair *pair;
	struct sp_check *check;
	bool any_program;
	struct sp_error *err;
};

__attribute__((format(printf, 2, 3))) static void cannot_tell(
	struct sp_finding *f, const char *format, ...)
{
	va_list args;

	f->verdict = SP_VERDICT_CANNOT_TELL;
	va_start(args, format);
	vsnprintf(f->why, sizeof(f->why), format, args);
	va_end(args);
}

/* ---- the verdict ---- */

/* The growth that the allowance has for this old value. */
static double allowed_growth(const struct sp_allowance *allowance, double old)
{
	const double amount = old > 0 ? allowance->amount / old : 0;

	return fmax(allowance->growth, amount);
}

/* Of these runs as they are: what other runs would do is for a baseline. */
static void judge_cap(const struct checker *c, struct sp_finding *f,
		      const struct sp_runs *new)
{
	const struct sp_interval mean = sp_runs_mean(new, c->check->level);

	if (mean.lo > f->limit->cap)
		f->verdict = SP_VERDICT_REGRESSION;
	else if (mean.hi > f->limit->cap)
		cannot_tell(f, "the interval contains the limit");
}

static void judge_change(const struct checker *c, struct sp_finding *f,
			 const struct sp_runs *old, const struct sp_runs *new)
{
	const struct sp_allowance *a = &f->limit->allowance;
	const double level = c->check->level;
	const enum sp_change up = sp_change_up(old, new, a, NULL, level);
	const enum sp_change down =
		f->limit->both_ways ? sp_change_down(old, new, a, NULL, level)
				    : SP_CHANGE_WITHIN;

	if (up == SP_CHANGE_BEYOND)
		f->verdict = SP_VERDICT_REGRESSION;
	else if (down == SP_CHANGE_BEYOND)
		f->verdict = SP_VERDICT_IMPROVED;
	else if (up == SP_CHANGE_MAYBE || down == SP_CHANGE_MAYBE)
		cannot_tell(f, old->mean + new->mean > 0
				       ? "the interval of the change contains "
					 "the limit"
				       : "nothing of it was sampled");
	if (f->verdict == SP_VERDICT_IMPROVED)
		snprintf(f->why, sizeof(f->why),
			 "less than the limit allows: the baseline is stale "
			 "(--update-baseline)");
}

/* What the samples could have shown, and the period that would do. */
static void look_ahead(const struct checker *c, struct sp_finding *f,
		       const struct sp_runs *old, const struct sp_runs *new)
{
	const double level = c->check->level;
	const double allowed = allowed_growth(&f->limit->allowance, old->mean);
	const double a = sp_relative_variance(old, NULL);
	const double b = sp_relative_variance(new, NULL);
	const double needed =
		sp_variance_needed(allowed, level, SP_CHECK_POWER);
	const double period = (double)c->pair->new.run[0]->period_bytes;

	if (!(old->noise + new->noise > 0))
		return;
	f->detectable =
		sp_detectable_growth(a, b, allowed, level, SP_CHECK_POWER);
	if (f->verdict != SP_VERDICT_CANNOT_TELL || !(allowed > 0) ||
	    !isfinite(a + b))
		return;
	f->period_needed =
		(uint64_t)fmax(1, floor(period * needed / fmax(a, b)));
	if (old->n + new->n > 2 &&
	    (old->var > 2 * old->noise || new->var > 2 * new->noise))
		f->period_needed = 0; /* the program's own noise is larger */
}

static void set_figures(const struct checker *c, struct sp_finding *f,
			const struct sp_runs *old, const struct sp_runs *new)
{
	const double level = c->check->level;

	f->has_figures = true;
	f->new = sp_runs_mean(new, level);
	if (!old)
		return;
	f->has_old = true;
	f->old = sp_runs_mean(old, level);
	f->change = sp_contrast(old, new, 1, NULL, level);
}

static int sum_both(const struct checker *c, const struct sp_limit *limit,
		    const struct sp_frame_set *only, struct sp_runs *old,
		    struct sp_runs *new)
{
	const struct sp_pair *pair = c->pair;
	int r = sp_amount_sum(&pair->new, pair->paths, limit->kind,
			      limit->phase, only, new);

	if (!r && pair->old.n && !(limit->phase && limit->is_cap))
		r = sp_amount_sum(&pair->old, pair->paths, limit->kind,
				  limit->phase, only, old);
	return r;
}

/* The samples that a limit is about. */
static struct sp_match_of samples_of(const struct sp_limit *limit)
{
	return (struct sp_match_of){.table = sp_amount_view(limit->kind),
				    .phase = limit->phase,
				    .is_count = !sp_limit_is_bytes(limit)};
}

/* A pattern that matches nothing is a slip of the pen, or about what is no
 * more; where samples are missing it may be their fault. */
static int check_pattern(const struct checker *c, const struct sp_limit *limit,
			 const struct sp_frame_set *only)
{
	const struct sp_comparable *can = &c->check->comparable;
	const size_t n = c->pair->paths->frames.n_entries;
	char line[32] = "";

	if (!limit->pattern || !n || can->doubtful || can->old_incomplete ||
	    can->new_incomplete)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (only->has[i])
			return 0;
	if (limit->file)
		snprintf(line, sizeof(line), "line %u: ", limit->line);
	return sp_error_set(c->err, -EINVAL, limit->file,
			    "%sthe pattern of %.80s matches no %s of either "
			    "side",
			    line, limit->text,
			    limit->kind == SP_LIMIT_SITE ? "function"
							 : "module");
}

static int check_amount(struct checker *c, struct sp_finding *f)
{
	const struct sp_limit *limit = f->limit;
	const struct sp_match_of of = samples_of(limit);
	struct sp_frame_set only = {0};
	struct sp_runs old, new;
	int r = sp_amount_frames(c->pair->paths, limit, &only, c->err);

	if (!r)
		r = check_pattern(c, limit, &only);
	if (!r)
		r = sum_both(c, limit, &only, &old, &new);
	if (r < 0)
		goto out;
	set_figures(c, f,
		    c->pair->old.n && !(limit->phase && limit->is_cap) ? &old
								       : NULL,
		    &new);
	if (limit->is_cap) {
		judge_cap(c, f, &new);
	} else {
		judge_change(c, f, &old, &new);
		look_ahead(c, f, &old, &new);
	}
	if (f->verdict != SP_VERDICT_PASS)
		r = sp_explain(c->pair, &of, only.has ? &only : NULL,
			       f->verdict == SP_VERDICT_IMPROVED,
			       c->check->level, f);
out:
	free(only.has);
	return r;
}

/* ---- every function by itself ---- */

/* Bytes of a new function that would have been found among n. */
static double new_site_bytes(const struct checker *c,
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
static bool is_within(const struct checker *c, const struct sp_limit *limit,
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
static uint64_t period_for(const struct checker *c,
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
static bool would_be_seen(const struct checker *c, struct sp_finding *f)
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
	cannot_tell(f, "a new function of %s can be without a sample",
		    sp_text_bytes(most).text);
	return false;
}

/* That no function was found to be beyond the limit is no answer where the
 * samples would not have shown it: each has to be seen to be within. */
static void judge_unfound(const struct checker *c, struct sp_finding *f,
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
	cannot_tell(f,
		    "%zu of %zu functions, %s of the bytes, have too few "
		    "samples for this limit",
		    f->n_undecided, n,
		    sp_figure_share(f->undecided_share).text);
}

static void judge_sites(const struct checker *c, struct sp_finding *f,
			const struct sp_match_row *rows, size_t n,
			const struct sp_run_noise *noise)
{
	const struct sp_match_row *best = largest(rows, n);
	const double rate = 1 - c->check->level;

	f->new_site_bytes =
		new_site_bytes(c, &f->limit->allowance, f->n_tests, rate);
	if (!best) {
		cannot_tell(f, "nothing was sampled");
		return;
	}
	f->detectable = sp_detectable_growth(
		sp_relative_variance(&best->old, noise),
		sp_relative_variance(&best->old, noise),
		f->limit->allowance.growth, 1 - 2 * rate, SP_CHECK_POWER);
	if (!f->n_culprits) {
		judge_unfound(c, f, rows, n, noise);
		return;
	}
	f->verdict = SP_VERDICT_IMPROVED;
	for (size_t i = 0; i < f->n_culprits; i++)
		if (!f->culprits[i].is_path && f->culprits[i].change.value > 0)
			f->verdict = SP_VERDICT_REGRESSION;
}

static int check_rows(struct checker *c, struct sp_finding *f,
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
	if (!r)
		r = sp_explain_sites(c->pair, of, rows, p, n, threshold, &noise,
				     c->check->level, f);
	if (!r)
		judge_sites(c, f, rows, n, &noise);
	free(p);
	return r;
}

static int check_sites(struct checker *c, struct sp_finding *f)
{
	const struct sp_match_of of = samples_of(f->limit);
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

/* ---- what cannot be said ---- */

/* What the side lacks of the phase that the limit speaks of; NULL: nothing. */
static const char *lack_of_phase(const struct sp_side *side,
				 const struct sp_limit *limit)
{
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_phase_sum *phase =
			sp_summary_phase(side->run[i], limit->phase);

		if (!phase)
			return "no phase of that name";
		if (!phase->has_rows && !sp_limit_is_exact(limit))
			return "no call paths of that phase "
			       "(--update-baseline writes them)";
	}
	return NULL;
}

/* Is there anything to look at?  If not, the finding says why. */
static bool is_answerable(const struct checker *c, struct sp_finding *f)
{
	const struct sp_comparable *can = &c->check->comparable;
	const struct sp_limit *limit = f->limit;

	const char *new_lacks =
		limit->phase ? lack_of_phase(&c->pair->new, limit) : NULL;
	const char *old_lacks = limit->phase && !limit->is_cap
					? lack_of_phase(&c->pair->old, limit)
					: NULL;

	if (new_lacks)
		cannot_tell(f, "a new profile has %s", new_lacks);
	else if (old_lacks)
		cannot_tell(f, "the baseline has %s", old_lacks);
	else if (!limit->is_cap && !c->pair->old.n)
		cannot_tell(f, "there is no baseline");
	else if (!limit->is_cap && can->other_program && !c->any_program)
		cannot_tell(f, "the programs differ (--any-program compares "
			       "them nevertheless)");
	else if (sp_amount_view(limit->kind) != SP_VIEW_ALLOC &&
		 (!can->new_has_frees ||
		  (!limit->is_cap && !can->old_has_frees)))
		cannot_tell(f, "a profile has no frees "
			       "(SAMPLEPROF_FREES=off)");
	return f->verdict == SP_VERDICT_PASS;
}

/* Figures that may be too low: what is too much as it is stays too much. */
static void doubt(const struct checker *c, struct sp_finding *f)
{
	const struct sp_comparable *can = &c->check->comparable;
	const bool is_low = can->new_incomplete ||
			    (can->doubtful && !sp_limit_is_exact(f->limit));

	if (f->verdict == SP_VERDICT_CANNOT_TELL)
		return;
	if (!f->limit->is_cap && can->old_incomplete)
		cannot_tell(f, "a profile of the baseline is not whole");
	else if (is_low && f->verdict != SP_VERDICT_REGRESSION)
		cannot_tell(f, "a new profile is not whole");
	else if (can->doubtful && !f->limit->is_cap &&
		 !sp_limit_is_exact(f->limit))
		cannot_tell(f, "too many samples were lost");
}

static int check_limit(struct checker *c, struct sp_finding *f)
{
	int r;

	if (!is_answerable(c, f))
		return 0;
	r = f->limit->kind == SP_LIMIT_SITES ? check_sites(c, f)
					     : check_amount(c, f);
	if (!r)
		doubt(c, f);
	return r;
}

/* Before anything is compared: names on the new side are as they are. */
static int rename_old(const struct sp_pair *pair, struct sp_check *check)
{
	struct sp_renamed *renamed;
	size_t n;
	int r = sp_match_renamed(pair, &renamed, &n);

	if (r < 0)
		return r;
	check->renamed = calloc(n + 1, sizeof(*check->renamed));
	for (size_t i = 0; check->renamed && i < n; i++) {
		struct sp_renamed_text *t = &check->renamed[i];

		t->old = strdup(sp_paths_name(pair->paths, renamed[i].old));
		t->new = strdup(sp_paths_name(pair->paths, renamed[i].new));
		check->n_renamed++;
		if (!t->old || !t->new)
			r = -ENOMEM;
	}
	free(renamed);
	return check->renamed ? r : -ENOMEM;
}

int sp_check_new(struct sp_pair *pair, const struct sp_limits *limits,
		 bool any_program, struct sp_check **ret_check,
		 struct sp_error *err)
{
	struct sp_check *check = calloc(1, sizeof(*check));
	struct checker c = {pair, check, any_program, err};
	int r = -ENOMEM;

	if (!check)
		goto out;
	check->level = SP_SUMMARY_LEVEL;
	sp_comparable_init(&check->comparable, pair);
	check->findings = calloc(limits->n + 1, sizeof(*check->findings));
	if (!check->findings)
		goto out;
	r = pair->old.n ? rename_old(pair, check) : 0;
	for (size_t i = 0; !r && i < limits->n; i++) {
		struct sp_finding *f = &check->findings[check->n_findings++];

		f->limit = &limits->at[i];
		r = check_limit(&c, f);
		if (f->verdict > check->verdict)
			check->verdict = f->verdict;
	}
out:
	if (r < 0) {
		sp_check_free(check);
		/* any other error has its sentence already */
		return r == -ENOMEM ? sp_error_set(err, r, NULL,
						   "not enough memory to "
						   "compare")
				    : r;
	}
	*ret_check = check;
	return 0;
}

void sp_check_free(struct sp_check *check)
{
	if (!check)
		return;
	for (size_t i = 0; i < check->n_findings; i++) {
		struct sp_finding *f = &check->findings[i];

		for (size_t k = 0; k < f->n_culprits; k++)
			free(f->culprits[k].name);
		free(f->culprits);
	}
	for (size_t i = 0; i < check->n_renamed; i++) {
		free(check->renamed[i].old);
		free(check->renamed[i].new);
	}
	free(check->findings);
	free(check->renamed);
	free(check);
}
