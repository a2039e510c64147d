/* SPDX-License-Identifier: MIT */
/* Which functions and call paths a change is made of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/check.h"

static int add_culprit(struct sp_finding *f, char *name, bool is_path,
		       const struct sp_match_row *row, double p,
		       const struct sp_run_noise *noise, double level)
{
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
		.is_new = !row->old_samples,
		.is_gone = !row->new_samples,
		.old = sp_runs_mean(&row->old, level),
		.new = sp_runs_mean(&row->new, level),
		.change = sp_contrast(&row->old, &row->new, 1, noise, level),
		.p = p,
	};
	c->is_certain = c->change.lo > 0 || c->change.hi < 0;
	return 0;
}

static bool last_is_certain(const struct sp_finding *f)
{
	return f->culprits[f->n_culprits - 1].is_certain;
}

static void drop_last(struct sp_finding *f)
{
	free(f->culprits[--f->n_culprits].name);
}

static double change_of(const struct sp_match_row *row)
{
	return row->new.mean - row->old.mean;
}

/* Most growth first, ties by number: names have one. */
static int compare_growth(const void *a, const void *b)
{
	const struct sp_match_row *ra = a, *rb = b;
	const double da = change_of(ra), db = change_of(rb);

	if (da != db)
		return da < db ? 1 : -1;
	return (ra->key > rb->key) - (ra->key < rb->key);
}

static int compare_decrease(const void *a, const void *b)
{
	return compare_growth(b, a);
}

/* Without an old side every path is new: what it has explains a cap. */
static void add_empty_old(struct sp_pair *pair, struct sp_summary *empty,
			  struct sp_summary **run)
{
	*empty = (struct sp_summary){.period_bytes = 1};
	*run = empty;
	pair->old = (struct sp_side){run, 1};
}

int sp_explain(const struct sp_pair *given, enum sp_view view, bool is_count,
	       const struct sp_frame_set *only, bool is_down, double level,
	       struct sp_finding *finding)
{
	struct sp_pair pair = *given;
	struct sp_summary empty, *run;
	bool has_certain = false;
	struct sp_match_row *rows;
	size_t n;
	int r;

	if (!pair.old.n)
		add_empty_old(&pair, &empty, &run);
	r = sp_match_new(&pair, view, SP_MATCH_PATHS, is_count, only, &rows,
			 &n);
	if (r < 0)
		return r;
	if (n)
		qsort(rows, n, sizeof(*rows),
		      is_down ? compare_decrease : compare_growth);
	for (size_t i = 0; !r && i < n && i < SP_CHECK_PATHS; i++) {
		const double change = change_of(&rows[i]);

		if (is_down ? change >= 0 : change <= 0)
			break;
		r = add_culprit(finding, sp_paths_text(pair.paths, rows[i].key),
				true, &rows[i], 0, NULL, level);
		has_certain |= !r && last_is_certain(finding);
		/* beside what is certain, noise explains nothing */
		if (!r && has_certain && !last_is_certain(finding))
			drop_last(finding);
	}
	free(rows);
	return r;
}

static int explain_site(const struct sp_pair *pair,
			const struct sp_match_row *row, double p,
			const struct sp_run_noise *noise, double level,
			struct sp_finding *finding)
{
	const size_t n_frames = pair->paths->frames.n_entries;
	struct sp_frame_set only = {calloc(n_frames + 1, sizeof(bool)), true};
	char *name = strdup(sp_paths_name(pair->paths, row->key));
	int r = add_culprit(finding, name, false, row, p, noise, level);

	if (!only.has)
		r = -ENOMEM;
	if (!r) {
		only.has[row->key] = true;
		r = sp_explain(pair, SP_VIEW_ALLOC, false, &only,
			       change_of(row) < 0, level, finding);
	}
	free(only.has);
	return r;
}

struct rejected {
	const struct sp_match_row *row;
	double p;
};

static int compare_rejected(const void *a, const void *b)
{
	const struct rejected *ra = a, *rb = b;

	return compare_growth(ra->row, rb->row);
}

int sp_explain_sites(const struct sp_pair *pair,
		     const struct sp_match_row *rows, const double *p, size_t n,
		     double threshold, const struct sp_run_noise *noise,
		     double level, struct sp_finding *finding)
{
	struct rejected *rejected = calloc(n + 1, sizeof(*rejected));
	size_t n_rejected = 0;
	int r = rejected ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++)
		if (p[i] <= threshold)
			rejected[n_rejected++] =
				(struct rejected){&rows[i], p[i]};
	if (n_rejected)
		qsort(rejected, n_rejected, sizeof(*rejected),
		      compare_rejected);
	finding->n_rejected = n_rejected;
	for (size_t i = 0; !r && i < n_rejected && i < SP_CHECK_FUNCTIONS; i++)
		r = explain_site(pair, rejected[i].row, rejected[i].p, noise,
				 level, finding);
	free(rejected);
	return r;
}
