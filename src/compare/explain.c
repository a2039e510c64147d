/* SPDX-License-Identifier: MIT */
/* Which functions and call paths a change is made of. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "compare/check.h"

/* A row that may explain the finding, and how it came out of its test. */
struct candidate {
	const struct sp_match_row *row;
	double p;
	bool is_certain;
	bool is_comparable;
};

static int add_culprit(const struct sp_checker *checker, struct sp_finding *f,
		       char *name, bool is_path, const struct candidate *of,
		       const struct sp_run_noise *noise)
{
	const struct sp_caveats *caveats = &checker->check->caveats;
	const double level = checker->check->level;
	const struct sp_match_row *row = of->row;
	struct sp_culprit *grown, *c;

	grown = name ? realloc(f->culprits,
			       (f->n_culprits + 1) * sizeof(*grown))
		     : NULL;
	if (!grown) {
		free(name);
		return -ENOMEM;
	}
	f->culprits = grown;
	c = &grown[f->n_culprits++];
	*c = (struct sp_culprit){
		.name = name,
		.is_path = is_path,
		.is_new = !row->old_samples && of->is_comparable,
		.is_gone = !row->new_samples && of->is_comparable,
		.old = sp_runs_mean(&row->old, level),
		.new = sp_runs_mean(&row->new, level),
		.change = sp_caveats_limits(
			caveats, false,
			sp_contrast(&row->old, &row->new, 1, noise, level)),
		.is_certain = of->is_certain,
		.is_comparable = of->is_comparable,
		.p = of->p,
	};
	if (caveats->lacking)
		c->new.hi = INFINITY;
	return 0;
}

static double change_of(const struct sp_match_row *row)
{
	return row->new.mean - row->old.mean;
}

/* Most growth first, ties by number: names have one. */
static int compare_growth(const void *a, const void *b)
{
	const struct candidate *ca = a, *cb = b;
	const double da = change_of(ca->row), db = change_of(cb->row);

	if (da != db)
		return da < db ? 1 : -1;
	return (ca->row->key > cb->row->key) - (ca->row->key < cb->row->key);
}

SP_ORDER(compare_decrease, struct candidate, SP_BY(compare_growth(y, x)));

static void sort_candidates(struct candidate *candidates, size_t n,
			    bool is_down)
{
	if (n)
		qsort(candidates, n, sizeof(*candidates),
		      is_down ? compare_decrease : compare_growth);
}

/* Without an old side every path is new, and its bytes explain a cap. */
static void add_empty_old(struct sp_pair *pair, struct sp_summary *empty,
			  struct sp_summary **run)
{
	*empty = (struct sp_summary){.period_bytes = 1};
	*run = empty;
	pair->old = (struct sp_side){run, 1};
}

/* Is a change of the path one in truth, or is the path inlined on one side?  1,
 * 0 or -ENOMEM. */
static int is_real(const struct sp_checker *c, const struct sp_match_of *of,
		   const struct sp_match_row *row,
		   const struct sp_run_noise *noise)
{
	const struct sp_moved_test test = {.of = of,
					   .is_down = change_of(row) < 0,
					   .noise = noise,
					   .p = 1 - c->check->level};
	const struct sp_path_list changed = {&row->key, 1};

	return c->moved ? sp_moved_is_real(c->moved, &changed, &test) : 1;
}

/* The paths as candidates, to be freed (free()): the largest of many are not
 * certain because each by itself would be (E31). */
static int find_candidates(const struct sp_checker *c,
			   const struct sp_match_of *of,
			   const struct sp_match_row *rows, size_t n,
			   struct sp_run_noise *noise, struct candidate **ret)
{
	const struct sp_match_test test = {.both_ways = true,
					   .rate = 1 - c->check->level};
	double *p = calloc(n + 1, sizeof(*p)), threshold = 0;
	struct candidate *found = calloc(n + 1, sizeof(*found));
	size_t n_tested;
	int r = p && found ? sp_match_noise(c->pair, of, rows, n, noise)
			   : -ENOMEM;

	if (!r)
		r = sp_match_test(rows, n, &test, noise, p, &threshold,
				  &n_tested);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const bool has_names = !sp_names_is_mixed_path(
			&c->check->caveats.names, c->pair->paths, rows[i].key);

		r = has_names && p[i] <= threshold
			    ? is_real(c, of, &rows[i], noise)
			    : has_names;
		found[i] = (struct candidate){
			&rows[i], p[i], p[i] <= threshold && r > 0, r > 0};
	}
	free(p);
	if (r < 0)
		free(found);
	else
		*ret = found;
	return r < 0 ? r : 0;
}

/* If some changes are certain, the others explain nothing. */
static int add_paths(const struct sp_checker *checker,
		     const struct candidate *candidates, size_t n, bool is_down,
		     const struct sp_run_noise *noise,
		     struct sp_finding *finding)
{
	bool has_certain = false;
	int r = 0;

	for (size_t i = 0; !r && i < n && i < SP_CHECK_PATHS; i++) {
		const struct candidate *c = &candidates[i];
		const double change = change_of(c->row);

		if (is_down ? change >= 0 : change <= 0)
			break;
		if (has_certain && !c->is_certain)
			continue;
		has_certain |= c->is_certain;
		r = add_culprit(
			checker, finding,
			sp_paths_text(checker->pair->paths, c->row->key), true,
			c, noise);
	}
	return r;
}

int sp_explain(const struct sp_checker *c, const struct sp_match_of *of,
	       const struct sp_frame_set *only, bool is_down,
	       struct sp_finding *finding)
{
	struct sp_pair pair = *c->pair;
	struct sp_run_noise noise = {0};
	struct sp_summary empty, *run;
	struct candidate *candidates;
	struct sp_match_row *rows;
	size_t n;
	int r;

	if (!pair.old.n)
		add_empty_old(&pair, &empty, &run);
	r = sp_match_paths(&pair, of, only, &rows, &n);
	if (r < 0)
		return r;
	r = find_candidates(c, of, rows, n, &noise, &candidates);
	if (!r) {
		sort_candidates(candidates, n, is_down);
		r = add_paths(c, candidates, n, is_down, &noise, finding);
		free(candidates);
	}
	free(rows);
	return r;
}

static int explain_site(const struct sp_checker *c,
			const struct sp_match_of *of,
			const struct candidate *site,
			const struct sp_run_noise *noise,
			struct sp_finding *finding)
{
	const struct sp_paths *paths = c->pair->paths;
	const size_t n_frames = paths->frames.n_entries;
	struct sp_frame_set only = {.has = calloc(n_frames + 1, sizeof(bool)),
				    .innermost = true};
	char *name = strdup(sp_paths_label(paths, site->row->key));
	int r = add_culprit(c, finding, name, false, site, noise);

	if (!only.has)
		r = -ENOMEM;
	if (!r) {
		only.has[site->row->key] = true;
		r = sp_explain(c, of, &only, change_of(site->row) < 0, finding);
	}
	free(only.has);
	return r;
}

int sp_explain_sites(const struct sp_checker *c, const struct sp_match_of *of,
		     const struct sp_match_row *rows, const double *p, size_t n,
		     double threshold, const struct sp_run_noise *noise,
		     struct sp_finding *finding)
{
	struct candidate *rejected = calloc(n + 1, sizeof(*rejected));
	size_t n_rejected = 0;
	int r = rejected ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++)
		if (p[i] <= threshold)
			rejected[n_rejected++] =
				(struct candidate){&rows[i], p[i], true, true};
	sort_candidates(rejected, n_rejected, false);
	finding->n_rejected = n_rejected;
	for (size_t i = 0; !r && i < n_rejected && i < SP_CHECK_FUNCTIONS; i++)
		r = explain_site(c, of, &rejected[i], noise, finding);
	free(rejected);
	return r;
}
