/* SPDX-License-Identifier: MIT */
#include "compare/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "compare/amount.h"

/* ---- totals ---- */

static bool has_amount(const struct sp_caveats *can, enum sp_view view)
{
	return view == SP_VIEW_ALLOC ||
	       (can->old_has_frees && can->new_has_frees);
}

/* A side has it if the view was taken of its runs. */
static bool has_view(const struct sp_pair *pair, enum sp_view view)
{
	return view == SP_VIEW_ALLOC || (pair->old.run[0]->has_rows[view] &&
					 pair->new.run[0]->has_rows[view]);
}

static int add_totals(struct sp_diff *d, const struct sp_pair *pair)
{
	static const struct {
		const char *name;
		enum sp_limit_kind kind;
	} kinds[] = {
		{"alloc_bytes", SP_LIMIT_ALLOC_BYTES},
		{"alloc_objects", SP_LIMIT_ALLOC_OBJECTS},
		{"peak_bytes", SP_LIMIT_PEAK_BYTES},
		{"live_bytes", SP_LIMIT_LIVE_BYTES},
		{"temporary_bytes", SP_LIMIT_TEMPORARY_BYTES},
	};
	const struct sp_caveats *c = &d->caveats;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const enum sp_view view = sp_amount_view(kinds[i].kind);
		struct sp_diff_total *t = &d->totals[d->n_totals];
		struct sp_runs old, new;

		if (!has_amount(c, view) || !has_view(pair, view))
			continue;
		if (sp_amount_sum(&pair->old, pair->paths, kinds[i].kind, NULL,
				  NULL, &old) < 0 ||
		    sp_amount_sum(&pair->new, pair->paths, kinds[i].kind, NULL,
				  NULL, &new) < 0)
			return -ENOMEM;
		*t = (struct sp_diff_total){
			.name = kinds[i].name,
			.is_bytes = kinds[i].kind != SP_LIMIT_ALLOC_OBJECTS,
			.is_exact = i < 2 && !c->lacks_totals &&
				    !(c->old_missing_max > 0) &&
				    !(c->new_missing_max > 0),
			.old = sp_runs_mean(&old, d->level),
			.new = sp_runs_mean(&new, d->level),
			.change = sp_caveats_limits(
				c, i < 2,
				sp_contrast(&old, &new, 1, NULL, d->level)),
		};
		if (i < 2) {
			t->old.hi += c->old_is_least ? (double)INFINITY
						     : c->old_missing_max;
			t->new.hi += c->new_is_least ? (double)INFINITY
						     : c->new_missing_max;
			t->change.lo -= c->old_missing_max;
			t->change.hi += c->new_missing_max;
		}
		d->n_totals++;
	}
	return 0;
}

/* What was chosen of the samples, whose exact totals are not known. */
static int add_chosen(struct sp_diff *d, const struct sp_pair *pair)
{
	const struct sp_match_of of = {.table = d->view, .is_whole = true};
	struct sp_runs old, new;
	int r = sp_match_sum(&pair->old, pair->paths, &of, NULL, &old);

	if (!r)
		r = sp_match_sum(&pair->new, pair->paths, &of, NULL, &new);
	if (r)
		return r;
	d->totals[d->n_totals++] = (struct sp_diff_total){
		.name = "chosen_bytes",
		.is_bytes = true,
		.old = sp_runs_mean(&old, d->level),
		.new = sp_runs_mean(&new, d->level),
		.change = sp_caveats_limits(
			&d->caveats, false,
			sp_contrast(&old, &new, 1, NULL, d->level)),
	};
	return 0;
}

/* ---- all of it ---- */

static int rename_old(struct sp_diff *d, const struct sp_pair *pair)
{
	struct sp_renamed *renamed;
	size_t n;
	int r = sp_match_renamed(pair, &renamed, &n);

	if (r < 0)
		return r;
	d->renamed = calloc(n + 1, sizeof(*d->renamed));
	if (!d->renamed)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < n; i++)
		if (asprintf(&d->renamed[d->n_renamed], "%s -> %s",
			     sp_paths_label(pair->paths, renamed[i].old),
			     sp_paths_label(pair->paths, renamed[i].new)) < 0)
			r = -ENOMEM;
		else
			d->n_renamed++;
	free(renamed);
	return r;
}

static int set_head(struct sp_diff *d, const struct sp_pair *pair)
{
	const struct sp_summary *old = pair->old.run[0];
	const struct sp_summary *new = pair->new.run[0];

	d->old_program = old->program;
	d->new_program = new->program;
	d->n_old = pair->old.n;
	d->n_new = pair->new.n;
	d->old_period_bytes = old->period_bytes;
	d->new_period_bytes = new->period_bytes;
	d->old_part = old->part;
	d->new_part = new->part;
	return sp_caveats_init(&d->caveats, pair);
}

int sp_diff_new(struct sp_pair *pair, enum sp_view view, double level,
		bool has_totals, struct sp_diff **ret_diff,
		struct sp_error *err)
{
	struct sp_diff *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (!d)
		goto out;
	d->view = view;
	d->level = level;
	r = set_head(d, pair);
	if (!r)
		r = sp_match_homes(pair);
	if (!r)
		r = sp_caveats_lambdas(&d->caveats, pair);
	if (!r)
		r = rename_old(d, pair);
	if (!r)
		r = sp_paths_set_labels(pair->paths);
	if (!r)
		r = sp_moved_init(&d->moved, pair);
	if (!r)
		r = has_totals ? add_totals(d, pair) : add_chosen(d, pair);
out:
	if (r < 0) {
		sp_diff_free(d);
		return sp_error_memory(err, NULL);
	}
	*ret_diff = d;
	return 0;
}

void sp_diff_free(struct sp_diff *diff)
{
	if (!diff)
		return;
	for (size_t i = 0; i < diff->n_tables; i++) {
		struct sp_diff_table *t = &diff->tables[i];

		for (size_t k = 0; k < t->n; k++)
			free(t->rows[k].name);
		free(t->rows);
	}
	for (size_t i = 0; i < diff->n_renamed; i++)
		free(diff->renamed[i]);
	free(diff->renamed);
	sp_moved_done(&diff->moved);
	sp_caveats_done(&diff->caveats);
	free(diff);
}
