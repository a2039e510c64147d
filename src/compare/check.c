/* SPDX-License-Identifier: MIT */
#include "compare/check.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/amount.h"
#include "text/figures.h"

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

void sp_check_cannot_tell(struct sp_finding *f, const char *format, ...)
{
	va_list args;

	f->verdict = SP_VERDICT_CANNOT_TELL;
	va_start(args, format);
	vsnprintf(f->why, sizeof(f->why), format, args);
	va_end(args);
}

struct sp_match_of sp_check_samples_of(const struct sp_limit *limit)
{
	return (struct sp_match_of){.table = sp_amount_view(limit->kind),
				    .phase = limit->phase,
				    .is_count = !sp_limit_is_bytes(limit),
				    .is_whole = limit->pattern != NULL};
}

/* ---- the verdict ---- */

/* The growth that the allowance has for this old value. */
static double allowed_growth(const struct sp_allowance *allowance, double old)
{
	const double amount = old > 0 ? allowance->amount / old : 0;

	return fmax(allowance->growth, amount);
}

/* A statement about these runs; a baseline of several is about other runs. */
static void judge_cap(const struct sp_checker *c, struct sp_finding *f,
		      const struct sp_runs *new)
{
	const struct sp_interval mean = sp_runs_mean(new, c->check->level);

	if (mean.lo > f->limit->cap)
		f->verdict = SP_VERDICT_REGRESSION;
	else if (mean.hi > f->limit->cap)
		sp_check_cannot_tell(f, "the interval contains the limit");
}

static void judge_change(const struct sp_checker *c, struct sp_finding *f,
			 const struct sp_runs *old, const struct sp_runs *new,
			 const struct sp_run_noise *noise)
{
	const struct sp_allowance *a = &f->limit->allowance;
	const double level = c->check->level;
	const enum sp_change up = sp_change_up(old, new, a, noise, level);
	const enum sp_change down =
		f->limit->both_ways ? sp_change_down(old, new, a, noise, level)
				    : SP_CHANGE_WITHIN;

	if (up == SP_CHANGE_BEYOND)
		f->verdict = SP_VERDICT_REGRESSION;
	else if (down == SP_CHANGE_BEYOND)
		f->verdict = SP_VERDICT_IMPROVED;
	else if (up == SP_CHANGE_MAYBE || down == SP_CHANGE_MAYBE)
		sp_check_cannot_tell(
			f, old->mean + new->mean > 0
				   ? "the interval of the change contains "
				     "the limit"
				   : "nothing of it was sampled");
	if (f->verdict == SP_VERDICT_IMPROVED)
		snprintf(f->why, sizeof(f->why),
			 "less than the limit allows: the baseline is stale "
			 "(--update-baseline)");
}

/* The growth that the samples could have shown, and the period that would. */
static void look_ahead(const struct sp_checker *c, struct sp_finding *f,
		       const struct sp_runs *old, const struct sp_runs *new,
		       const struct sp_run_noise *noise)
{
	const double level = c->check->level;
	const struct sp_reach reach = {
		old,           new, f->limit->allowance, noise, (1 - level) / 2,
		SP_CHECK_POWER};
	const double allowed = allowed_growth(&f->limit->allowance, old->mean);
	const double mean = fmax(old->mean, new->mean);
	const double sampling =
		fmax(old->noise / (double)old->n, new->noise / (double)new->n);
	const double needed =
		sp_variance_needed(allowed, level, SP_CHECK_POWER);
	const double period = (double)c->pair->new.run[0]->period_bytes;

	if (!(old->noise + new->noise > 0))
		return;
	f->detectable = old->mean > 0 ? sp_reach_growth(&reach) : INFINITY;
	if (f->verdict != SP_VERDICT_CANNOT_TELL || !(allowed > 0) ||
	    !(old->mean > 0) || !(new->mean > 0))
		return;
	f->period_needed = (uint64_t)fmax(
		1, floor(period * needed * mean * mean / sampling));
	if (sp_runs_own_variance(old, new, noise) * mean * mean >
	    fmax(old->noise, new->noise))
		f->period_needed = 0; /* the program's own noise is larger */
	if ((double)f->period_needed >= period)
		f->period_needed = 0; /* this period decides most times */
}

static void set_figures(const struct sp_checker *c, struct sp_finding *f,
			const struct sp_runs *old, const struct sp_runs *new,
			const struct sp_run_noise *noise)
{
	const struct sp_caveats *can = &c->check->caveats;
	const bool is_exact = sp_limit_is_exact(f->limit);
	const double level = c->check->level;

	f->has_figures = true;
	f->new = sp_runs_mean(new, level);
	if (is_exact ? can->new_is_least : can->lacking)
		f->new.hi = INFINITY;
	if (is_exact)
		f->new_missing = can->new_missing_max;
	if (!old)
		return;
	if (is_exact)
		f->old_missing = can->old_missing_max;
	f->has_old = true;
	f->old = sp_runs_mean(old, level);
	f->change = sp_caveats_limits(can, is_exact,
				      sp_contrast(old, new, 1, noise, level));
}

static int sum_both(const struct sp_checker *c, const struct sp_limit *limit,
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

static bool matches_none(const struct sp_checker *c,
			 const struct sp_limit *limit,
			 const struct sp_frame_set *only)
{
	const size_t n = c->pair->paths->frames.n_entries;

	for (size_t i = 0; limit->pattern && i < n; i++)
		if (only->has[i])
			return false;
	return limit->pattern;
}

/* A pattern that matches nothing is a typing error, or its functions are gone;
 * if samples are missing, it may be due to that.  A maximum is kept by what
 * does not allocate. */
static int check_pattern(const struct sp_checker *c,
			 const struct sp_limit *limit,
			 const struct sp_frame_set *only)
{
	const struct sp_caveats *can = &c->check->caveats;
	char line[32] = "";

	if (limit->is_cap || !matches_none(c, limit, only) ||
	    !c->pair->paths->frames.n_entries || can->doubtful ||
	    can->old_incomplete || can->new_incomplete ||
	    can->names.are_missing)
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

/* A function of the pattern may be inlined on one side; its bytes are then its
 * callers'.  If the new side has none of the functions and the old side had
 * some, it is unknown whether they are gone. */
static int doubt_moved(const struct sp_checker *c, struct sp_finding *f,
		       const struct sp_match_of *of,
		       const struct sp_frame_set *only,
		       const struct sp_runs *old, const struct sp_runs *new,
		       const struct sp_run_noise *noise)
{
	const struct sp_moved_test test = {.of = of,
					   .noise = noise,
					   .allowance = f->limit->allowance,
					   .is_down = f->verdict ==
						      SP_VERDICT_IMPROVED,
					   .p = (1 - c->check->level) / 2};
	/* of n samples alike on both sides all are old by chance in 2^-n */
	const bool is_gone = f->verdict == SP_VERDICT_PASS &&
			     old->acc.samples >= 12 && !new->acc.samples;
	struct sp_path_list changed = {0};
	uint32_t *paths;
	int r;

	if (!c->moved || f->limit->kind != SP_LIMIT_SITE ||
	    (f->verdict != SP_VERDICT_REGRESSION &&
	     f->verdict != SP_VERDICT_IMPROVED && !is_gone))
		return 0;
	paths = calloc(c->moved->n_paths + 1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	changed.at = paths;
	for (uint32_t i = 0; i < c->moved->n_paths; i++)
		if (sp_frame_set_has(only, c->pair->paths, i))
			paths[changed.n++] = i;
	r = is_gone ? sp_moved_is_alone(c->moved, &changed)
		    : sp_moved_is_real(c->moved, &changed, &test);
	free(paths);
	if (r)
		return r < 0 ? r : 0;
	f->n_moved = 1;
	sp_check_cannot_tell(f, "other inlining or build flags: its callers or "
				"callees had these bytes before");
	return 0;
}

/* Functions without names are in no pattern. */
static bool doubt_names(const struct sp_checker *c, struct sp_finding *f,
			const struct sp_frame_set *only)
{
	const struct sp_names *names = &c->check->caveats.names;
	const struct sp_paths *paths = c->pair->paths;
	bool is_any = false, is_mixed = false;

	if (f->limit->kind != SP_LIMIT_SITE || !names->are_missing)
		return false;
	for (uint32_t i = 0; i < paths->frames.n_entries; i++) {
		is_any |= only->has[i];
		is_mixed |= only->has[i] && sp_names_is_mixed(names, paths, i);
	}
	if (is_any && !is_mixed)
		return false;
	f->has_figures = false;
	f->period_needed = 0;
	sp_check_cannot_tell(f, is_any ? "its functions have names in some "
					 "runs only"
				       : "no function matches, but names are "
					 "missing");
	return true;
}

/* Has a function no name, so that it may be the one that is meant?  Those of
 * the system's own libraries have none without their debug files, such as what
 * takes a pool at the start of each C++ program. */
static bool has_unnamed(const struct sp_checker *c)
{
	static const char *const systems[] = {"libc.so",   "ld-",
					      "libc.musl", "libstdc++.so",
					      "libc++.so", "libgcc_s.so"};
	const struct sp_paths *paths = c->pair->paths;

	for (uint32_t i = 0; i < paths->frames.n_entries; i++) {
		const char *name = sp_paths_name(paths, i);
		bool is_system = false;
		size_t bytes;

		if (strcmp(sp_paths_function(name, &bytes), SP_PATHS_UNKNOWN) !=
		    0)
			continue;
		for (size_t k = 0; k < sizeof(systems) / sizeof(*systems); k++)
			is_system |= bytes && strncmp(name, systems[k],
						      strlen(systems[k])) == 0;
		if (!is_system)
			return true;
	}
	return false;
}

/* It may be misspelt, too. */
static void explain_none(const struct sp_checker *c, struct sp_finding *f)
{
	const char *what =
		f->limit->kind == SP_LIMIT_SITE ? "function" : "module";

	if (f->limit->kind == SP_LIMIT_SITE && has_unnamed(c))
		sp_check_cannot_tell(f, "no function matches, but some have no "
					"names");
	else if (f->verdict == SP_VERDICT_PASS)
		snprintf(f->why, sizeof(f->why),
			 "no %s on a recorded call path matches the pattern",
			 what);
	else
		sp_check_cannot_tell(f,
				     "no %s on a sampled call path matches: a "
				     "smaller period may show some",
				     what);
}

static int check_amount(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_limit *limit = f->limit;
	const struct sp_match_of of = sp_check_samples_of(limit);
	struct sp_frame_set only = {0};
	struct sp_runs old = {.mean = 0}, new = {.mean = 0};
	struct sp_run_noise noise = {0};
	int r = sp_amount_frames(c->pair->paths, limit, &only, c->err);

	if (!r)
		r = check_pattern(c, limit, &only);
	if (!r)
		r = sum_both(c, limit, &only, &old, &new);
	if (!r && limit->pattern && c->pair->old.n)
		r = sp_check_noise(c, &of, &noise);
	if (r < 0)
		goto out;
	set_figures(c, f,
		    c->pair->old.n && !(limit->phase && limit->is_cap) ? &old
								       : NULL,
		    &new, &noise);
	if (limit->is_cap) {
		judge_cap(c, f, &new);
		if (matches_none(c, limit, &only))
			explain_none(c, f);
	} else {
		judge_change(c, f, &old, &new, &noise);
		look_ahead(c, f, &old, &new, &noise);
		r = doubt_moved(c, f, &of, &only, &old, &new, &noise);
	}
	if (r < 0 || doubt_names(c, f, &only))
		goto out;
	if (f->verdict != SP_VERDICT_PASS)
		r = sp_explain(c, &of, only.has ? &only : NULL,
			       f->verdict == SP_VERDICT_IMPROVED, f);
out:
	free(only.has);
	return r;
}

/* ---- what cannot be said ---- */

/* Why the side lacks the limit's phase; NULL: it has it. */
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
static bool is_answerable(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_caveats *can = &c->check->caveats;
	const struct sp_limit *limit = f->limit;

	const char *new_lacks =
		limit->phase ? lack_of_phase(&c->pair->new, limit) : NULL;
	const char *old_lacks = limit->phase && !limit->is_cap
					? lack_of_phase(&c->pair->old, limit)
					: NULL;

	if (new_lacks)
		sp_check_cannot_tell(f, "a new profile has %s", new_lacks);
	else if (old_lacks)
		sp_check_cannot_tell(f, "the baseline has %s", old_lacks);
	else if (!limit->is_cap && !c->pair->old.n)
		sp_check_cannot_tell(f, "there is no baseline");
	else if (!limit->is_cap && can->other_program && !c->any_program)
		sp_check_cannot_tell(
			f, "the programs differ (--any-program compares "
			   "them nevertheless)");
	else if (sp_amount_view(limit->kind) != SP_VIEW_ALLOC &&
		 (!can->new_has_frees ||
		  (!limit->is_cap && !can->old_has_frees)))
		sp_check_cannot_tell(f, "a profile has no frees "
					"(SAMPLEPROF_FREES=off)");
	return f->verdict == SP_VERDICT_PASS;
}

/* Allocations while sampling was off, or whose samples were discarded, are in
 * no estimate: the side's first run with some, or NULL. */
static const struct sp_summary *find_unsampled(const struct sp_side *side,
					       const char *phase)
{
	for (size_t i = 0; i < side->n; i++)
		if (sp_summary_unsampled(side->run[i], phase) > 0)
			return side->run[i];
	return NULL;
}

static bool doubt_unsampled(const struct sp_checker *c, struct sp_finding *f)
{
	const char *phase = f->limit->phase;
	const struct sp_summary *new = find_unsampled(&c->pair->new, phase);
	const struct sp_summary *old =
		f->limit->is_cap ? NULL : find_unsampled(&c->pair->old, phase);
	const struct sp_summary *run = new ? new : old;

	/* more than a cap is more with the rest, too */
	if (!run || sp_limit_is_exact(f->limit) ||
	    (f->limit->is_cap && f->verdict == SP_VERDICT_REGRESSION))
		return false;
	sp_check_cannot_tell(
		f, "%s: no samples cover %s of what was allocated",
		new ? "new" : "old",
		sp_figure_share(sp_summary_unsampled(run, phase)).text);
	return true;
}

/* Figures may be too low; a figure above the limit remains above it. */
static bool doubt_incomplete(const struct sp_checker *c, struct sp_finding *f)
{
	const struct sp_caveats *can = &c->check->caveats;
	const bool is_exact = sp_limit_is_exact(f->limit);
	const bool is_low = is_exact ? can->new_is_least
				     : can->new_incomplete || can->doubtful;

	if (!f->limit->is_cap &&
	    (is_exact ? can->old_is_least : can->old_incomplete))
		sp_check_cannot_tell(f,
				     "a profile of the baseline is not whole");
	else if (is_low && f->verdict != SP_VERDICT_REGRESSION)
		sp_check_cannot_tell(f, "a new profile is not whole");
	else if (can->doubtful && !f->limit->is_cap && !is_exact)
		sp_check_cannot_tell(f, "too many samples were lost");
	else
		return false;
	return true;
}

static int check_limit(const struct sp_checker *c, struct sp_finding *f)
{
	int r;

	if (!is_answerable(c, f))
		return 0;
	if (f->limit->kind == SP_LIMIT_LEAK_RATE)
		r = sp_check_leaks(c, f);
	else
		r = f->limit->kind == SP_LIMIT_SITES ? sp_check_sites(c, f)
						     : check_amount(c, f);
	/* another period would not help then, nor is any growth sure to show */
	if (!r && (doubt_unsampled(c, f) || doubt_incomplete(c, f))) {
		f->period_needed = 0;
		f->detectable = INFINITY;
		f->new_site_bytes = 0;
	}
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

		t->old = strdup(sp_paths_label(pair->paths, renamed[i].old));
		t->new = strdup(sp_paths_label(pair->paths, renamed[i].new));
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
	struct sp_checker c = {.pair = pair,
			       .check = check,
			       .any_program = any_program,
			       .err = err};
	struct sp_moved moved = {0};
	int r = -ENOMEM;

	if (!check)
		goto out;
	check->level = SP_SUMMARY_LEVEL;
	check->findings = calloc(limits->n + 1, sizeof(*check->findings));
	if (!check->findings || sp_caveats_init(&check->caveats, pair) < 0)
		goto out;
	r = sp_match_homes(pair);
	if (!r && pair->old.n)
		r = sp_caveats_lambdas(&check->caveats, pair);
	if (!r && pair->old.n)
		r = rename_old(pair, check);
	if (!r)
		r = sp_paths_set_labels(pair->paths);
	if (!r && pair->old.n) {
		r = sp_moved_init(&moved, pair);
		c.moved = &moved;
	}
	for (size_t i = 0; !r && i < limits->n; i++) {
		struct sp_finding *f = &check->findings[check->n_findings++];

		f->limit = &limits->at[i];
		r = check_limit(&c, f);
		if (f->verdict > check->verdict)
			check->verdict = f->verdict;
	}
out:
	sp_moved_done(&moved);
	if (r < 0) {
		sp_check_free(check);
		/* any other error has its sentence already */
		return r == -ENOMEM ? sp_error_memory(err, NULL) : r;
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
	sp_caveats_done(&check->caveats);
	free(check->findings);
	free(check->renamed);
	free(check);
}
