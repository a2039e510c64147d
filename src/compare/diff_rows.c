/* SPDX-License-Identifier: MIT */
/* The tables of a diff: the keys of rows, the rows, and their order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "compare/diff.h"
#include "view/view.h"

struct filler {
	struct sp_diff *diff;
	const struct sp_pair *pair;
	const struct sp_diff_plan *plan;
	struct sp_keys keys;
	struct sp_key_paths paths; /* of each key */
	struct sp_match_row *match;
	size_t n;
	struct sp_diff_row *rows; /* of the same numbers */
	double least;             /* rows with less on both sides are small */
};

/* ---- the figures ---- */

static int make_keys(struct filler *f)
{
	const struct sp_paths *paths = f->pair->paths;
	const uint32_t *as = f->plan->as;

	switch (f->plan->rows) {
	case SP_DIFF_FLAT:
		return sp_keys_flat(paths, as, &f->keys);
	case SP_DIFF_CUM:
		return sp_keys_cum(paths, as, &f->keys);
	case SP_DIFF_PATHS:
		return sp_keys_paths(paths, &f->keys);
	case SP_DIFF_TREE:
		return sp_keys_tree(paths, as, &f->keys);
	case SP_DIFF_EDGES:
		return sp_keys_edges(paths, as, f->plan->wants, &f->keys);
	}
	return -EINVAL;
}

static const char *const kinds[] = {
	[SP_KEY_PLACE] = "place",   [SP_KEY_ITSELF] = "itself",
	[SP_KEY_CALLER] = "caller", [SP_KEY_FUNCTION] = "function",
	[SP_KEY_CALLEE] = "callee",
};

/* The name, and the kind of a row of a tree or of edges. */
static char *name_of(const struct filler *f, uint32_t key,
		     struct sp_diff_row *row)
{
	const struct sp_paths *paths = f->pair->paths;
	struct sp_key said;
	uint32_t frame;

	if (f->plan->rows == SP_DIFF_PATHS)
		return sp_paths_text(paths, key);
	if (!f->keys.said.n_entries)
		return strdup(sp_paths_label(paths, key));
	said = sp_keys_said(&f->keys, key);
	row->kind = kinds[said.kind];
	if (f->plan->rows == SP_DIFF_EDGES)
		row->of = sp_paths_label(paths, said.of);
	frame = said.kind == SP_KEY_FUNCTION ? said.of : said.frame;
	if (frame == SP_KEY_NONE)
		return strdup(said.kind == SP_KEY_CALLER ? "[no caller]"
							 : "itself");
	return strdup(sp_paths_label(paths, frame));
}

/* Is the key about functions that only some runs have names for?  For a place
 * of a tree, its callers count, too. */
static bool is_mixed(const struct filler *f, uint32_t key)
{
	const struct sp_names *names = &f->diff->caveats.names;
	const struct sp_paths *paths = f->pair->paths;
	struct sp_key said;

	if (f->plan->rows == SP_DIFF_PATHS)
		return sp_names_is_mixed_path(names, paths, key);
	if (!f->keys.said.n_entries)
		return sp_names_is_mixed(names, paths, key);
	for (;;) {
		said = sp_keys_said(&f->keys, key);
		if (said.frame != SP_KEY_NONE &&
		    sp_names_is_mixed(names, paths, said.frame))
			return true;
		if (said.of == SP_KEY_NONE)
			return false;
		if (f->plan->rows == SP_DIFF_EDGES)
			return sp_names_is_mixed(names, paths, said.of);
		key = said.of;
	}
}

/* Neither modules nor threads, sizes and entries are functions. */
static bool is_of_functions(const struct sp_diff_plan *plan)
{
	return !plan->as && plan->of.table < SP_SUMMARY_VIEWS;
}

/* Rows of which a change means something; -ENOMEM or 0. */
static int look_at_row(struct filler *f, const struct sp_match_row *m,
		       const struct sp_run_noise *noise,
		       struct sp_diff_row *row)
{
	const struct sp_moved_test test = {.of = &f->plan->of,
					   .is_down = m->new.mean < m->old.mean,
					   .noise = noise,
					   .p = 1 - f->diff->level};
	const struct sp_path_list changed = sp_key_paths_of(&f->paths, m->key);
	int r = 1;

	if (!is_of_functions(f->plan))
		return 0;
	if (is_mixed(f, m->key)) {
		r = 0;
	} else if (row->is_told) {
		r = sp_moved_is_real(&f->diff->moved, &changed, &test);
		f->diff->n_moved += r == 0;
	}
	row->is_comparable = r != 0;
	row->is_told &= r != 0;
	return r < 0 ? r : 0;
}

static void set_figures(const struct sp_diff *d, struct sp_diff_row *row,
			const struct sp_runs *old, const struct sp_runs *new,
			const struct sp_run_noise *noise)
{
	row->old = sp_runs_mean(old, d->level);
	row->new = sp_runs_mean(new, d->level);
	row->change = sp_caveats_limits(
		&d->caveats, false, sp_contrast(old, new, 1, noise, d->level));
}

static int fill_rows(struct filler *f, const double *p, double threshold,
		     const struct sp_run_noise *noise)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct sp_match_row *m = &f->match[i];
		struct sp_diff_row *row = &f->rows[i];

		*row = (struct sp_diff_row){
			.old_samples = m->old_samples,
			.new_samples = m->new_samples,
			.is_told = p[i] <= threshold &&
				   !f->diff->caveats.unsampled &&
				   !f->diff->caveats.lacking,
			.is_comparable = true,
		};
		set_figures(f->diff, row, &m->old, &m->new, noise);
		row->name = name_of(f, m->key, row);
		if (!row->name || look_at_row(f, m, noise, row) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int make_rows(struct filler *f)
{
	const struct sp_match_test test = {.both_ways = true,
					   .rate = 1 - f->diff->level};
	struct sp_run_noise noise = {0};
	double *p, threshold;
	size_t n_tested;
	int r = sp_match_new(f->pair, &f->plan->of, &f->keys, NULL, &f->match,
			     &f->n);

	if (r < 0)
		return r;
	p = calloc(f->n + 1, sizeof(*p));
	f->rows = calloc(f->n + 1, sizeof(*f->rows));
	r = p && f->rows ? sp_match_noise(f->pair, &f->plan->of, f->match, f->n,
					  &noise)
			 : -ENOMEM;
	if (!r)
		r = sp_match_test(f->match, f->n, &test, &noise, p, &threshold,
				  &n_tested);
	if (!r)
		r = fill_rows(f, p, threshold, &noise);
	free(p);
	return r;
}

/* ---- which of them, in which order ---- */

static int set_least(struct filler *f)
{
	const struct sp_paths *paths = f->pair->paths;
	struct sp_runs old, new;

	if (!(f->plan->share > 0))
		return 0;
	if (sp_match_sum(&f->pair->old, paths, &f->plan->of, NULL, &old) < 0 ||
	    sp_match_sum(&f->pair->new, paths, &f->plan->of, NULL, &new) < 0)
		return -ENOMEM;
	f->least = f->plan->share * fmax(old.mean, new.mean);
	return 0;
}

static bool is_small(const struct filler *f, size_t row)
{
	return f->rows[row].old.value < f->least &&
	       f->rows[row].new.value < f->least;
}

static int compare_change(const void *a, const void *b)
{
	const struct sp_diff_row *ra = a, *rb = b;
	const double da = fabs(ra->change.value), db = fabs(rb->change.value);

	if (da != db)
		return da < db ? 1 : -1;
	return strcmp(ra->name, rb->name);
}

SP_ORDER(compare_told, struct sp_diff_row,
	 SP_DOWN(is_told) || SP_BY(compare_change(x, y)));

SP_ORDER(compare_names, struct sp_diff_row, SP_BY(strcmp(x->name, y->name)));

/* The row moves to the table, which gets its name. */
static void take_row(struct filler *f, struct sp_diff_table *table, size_t row)
{
	table->rows[table->n++] = f->rows[row];
	f->rows[row].name = NULL;
}

static void take_listed(struct filler *f, struct sp_diff_table *table)
{
	for (size_t i = 0; f->plan->name(i); i++)
		for (size_t row = 0; row < f->n; row++)
			if (f->rows[row].name &&
			    strcmp(f->rows[row].name, f->plan->name(i)) == 0)
				take_row(f, table, row);
}

static int take_rows(struct filler *f, struct sp_diff_table *table)
{
	if (f->plan->order == SP_DIFF_AS_LISTED) {
		take_listed(f, table);
		return 0;
	}
	for (size_t row = 0; row < f->n; row++) {
		if (is_small(f, row))
			table->n_small++;
		else
			take_row(f, table, row);
	}
	if (table->n)
		qsort(table->rows, table->n, sizeof(*table->rows),
		      f->plan->order == SP_DIFF_BY_NAME ? compare_names
							: compare_told);
	return 0;
}

/* ---- a tree ---- */

#define NO_ROW SIZE_MAX

/* Rows of a tree: the first child and the next sibling of each. */
struct tree {
	struct filler *f;
	struct sp_diff_table *table;
	size_t *row_of_key; /* NO_ROW: none */
	size_t *parent;     /* of each row; NO_ROW: outermost */
	size_t *order;      /* rows, siblings in their order */
	size_t *first;      /* of each row, and of the outermost: in `order` */
	size_t *back; /* of each row: where in `order` to go on behind it */
};

static int compare_siblings(const void *a, const void *b, void *arg)
{
	const struct tree *t = arg;
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;

	/* the outermost, whose parent is NO_ROW, come last */
	if (t->parent[x] != t->parent[y])
		return t->parent[x] < t->parent[y] ? -1 : 1;
	return compare_change(&t->f->rows[x], &t->f->rows[y]);
}

static void link_rows(struct tree *t)
{
	struct filler *f = t->f;

	for (size_t key = 0; key < f->keys.n; key++)
		t->row_of_key[key] = NO_ROW;
	for (size_t row = 0; row < f->n; row++) {
		const struct sp_key said =
			sp_keys_said(&f->keys, f->match[row].key);

		t->row_of_key[f->match[row].key] = row;
		t->parent[row] = said.of == SP_KEY_NONE
					 ? NO_ROW
					 : t->row_of_key[said.of];
		t->order[row] = row;
	}
	if (f->n)
		qsort_r(t->order, f->n, sizeof(*t->order), compare_siblings, t);
	for (size_t i = f->n; i > 0; i--) {
		const size_t parent = t->parent[t->order[i - 1]];

		t->first[parent == NO_ROW ? f->n : parent] = i - 1;
	}
}

static bool is_itself(const struct filler *f, size_t row)
{
	return sp_keys_said(&f->keys, f->match[row].key).kind == SP_KEY_ITSELF;
}

/* Is there a place within it that is shown? */
static bool has_places(const struct tree *t, size_t row)
{
	for (size_t i = t->first[row]; i < t->f->n; i++) {
		const size_t child = t->order[i];

		if (t->parent[child] != row)
			break;
		if (!is_itself(t->f, child) && !is_small(t->f, child))
			return true;
	}
	return false;
}

/* Is the row of a tree left out? */
static bool is_left_out(const struct tree *t, size_t row)
{
	return is_small(t->f, row) ||
	       (is_itself(t->f, row) && !has_places(t, t->parent[row]));
}

/* Depth first, without recursion: a call path may be long. */
static void take_places(struct tree *t)
{
	struct filler *f = t->f;
	size_t at = t->first[f->n], within = NO_ROW;
	uint32_t depth = 0;

	for (;;) {
		const size_t row = at < f->n ? t->order[at] : NO_ROW;

		if (row == NO_ROW || t->parent[row] != within) {
			if (within == NO_ROW)
				return;
			at = t->back[within];
			within = t->parent[within];
			depth--;
			continue;
		}
		at++;
		if (is_left_out(t, row)) {
			t->table->n_small += !is_itself(f, row);
			continue;
		}
		f->rows[row].depth = depth;
		take_row(f, t->table, row);
		if (is_itself(f, row))
			continue;
		t->back[row] = at;
		at = t->first[row];
		within = row;
		depth++;
	}
}

static int indent_rows(struct sp_diff_table *table)
{
	uint32_t *depths = calloc(table->n + 1, sizeof(*depths));
	int *indents = NULL, r;

	for (size_t i = 0; depths && i < table->n; i++)
		depths[i] = table->rows[i].depth;
	if (depths)
		indents = sp_view_tree_indents(depths, table->n);
	for (size_t i = 0; indents && i < table->n; i++)
		table->rows[i].indent = indents[i];
	r = indents ? 0 : -ENOMEM;
	free(depths);
	free(indents);
	return r;
}

static int take_tree(struct filler *f, struct sp_diff_table *table)
{
	struct tree t = {.f = f, .table = table};
	int r = -ENOMEM;

	t.row_of_key = calloc(f->keys.n + 1, sizeof(*t.row_of_key));
	t.parent = calloc(f->n + 1, sizeof(*t.parent));
	t.order = calloc(f->n + 1, sizeof(*t.order));
	t.first = calloc(f->n + 1, sizeof(*t.first));
	t.back = calloc(f->n + 1, sizeof(*t.back));
	if (t.row_of_key && t.parent && t.order && t.first && t.back) {
		for (size_t i = 0; i <= f->n; i++)
			t.first[i] = f->n;
		link_rows(&t);
		take_places(&t);
		r = indent_rows(table);
	}
	free(t.row_of_key);
	free(t.parent);
	free(t.order);
	free(t.first);
	free(t.back);
	return r;
}

/* ---- callers and callees ---- */

struct edges {
	const struct filler *f;
	double *change_of; /* of each frame that has a row of its own */
};

static int compare_edges(const void *a, const void *b, void *arg)
{
	static const int places[] = {[SP_KEY_CALLER] = 0,
				     [SP_KEY_FUNCTION] = 1,
				     [SP_KEY_CALLEE] = 2};
	const struct edges *e = arg;
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct sp_key kx = sp_keys_said(&e->f->keys, e->f->match[x].key);
	const struct sp_key ky = sp_keys_said(&e->f->keys, e->f->match[y].key);

	if (kx.of != ky.of) {
		const double cx = e->change_of[kx.of], cy = e->change_of[ky.of];

		return cx != cy ? (cx < cy ? 1 : -1) : kx.of > ky.of ? 1 : -1;
	}
	if (kx.kind != ky.kind)
		return places[kx.kind] - places[ky.kind];
	return compare_change(&e->f->rows[x], &e->f->rows[y]);
}

static int take_edges(struct filler *f, struct sp_diff_table *table)
{
	const size_t n_frames = f->pair->paths->frames.n_entries;
	struct edges e = {f, calloc(n_frames + 1, sizeof(*e.change_of))};
	size_t *order = calloc(f->n + 1, sizeof(*order));
	int r = e.change_of && order ? 0 : -ENOMEM;

	for (size_t row = 0; !r && row < f->n; row++) {
		const struct sp_key said =
			sp_keys_said(&f->keys, f->match[row].key);

		order[row] = row;
		if (said.kind == SP_KEY_FUNCTION)
			e.change_of[said.of] = fabs(f->rows[row].change.value);
	}
	if (!r && f->n)
		qsort_r(order, f->n, sizeof(*order), compare_edges, &e);
	for (size_t i = 0; !r && i < f->n; i++) {
		const size_t row = order[i];
		const bool is_edge =
			sp_keys_said(&f->keys, f->match[row].key).kind !=
			SP_KEY_FUNCTION;

		if (is_edge && is_small(f, row))
			table->n_small++;
		else
			take_row(f, table, row);
	}
	free(e.change_of);
	free(order);
	return r;
}

/* ---- tables ---- */

static void filler_done(struct filler *f)
{
	for (size_t i = 0; f->rows && i < f->n; i++)
		free(f->rows[i].name);
	free(f->rows);
	free(f->match);
	sp_key_paths_done(&f->paths);
	sp_keys_done(&f->keys);
}

int sp_diff_add(struct sp_diff *diff, const struct sp_pair *pair,
		const struct sp_diff_plan *plan)
{
	struct sp_diff_table *table = &diff->tables[diff->n_tables++];
	struct filler f = {.diff = diff, .pair = pair, .plan = plan};
	int r = make_keys(&f);

	*table = (struct sp_diff_table){
		.key = plan->key,
		.what = plan->what,
		.noun = plan->noun,
		.is_bytes = !plan->of.is_count,
		.shown = plan->shown,
	};
	if (r < 0)
		return r;
	r = sp_key_paths_init(&f.paths, &f.keys);
	if (!r)
		r = make_rows(&f);
	if (!r)
		r = set_least(&f);
	table->rows = calloc(f.n + 1, sizeof(*table->rows));
	if (!r && !table->rows)
		r = -ENOMEM;
	if (!r)
		r = plan->rows == SP_DIFF_TREE    ? take_tree(&f, table)
		    : plan->rows == SP_DIFF_EDGES ? take_edges(&f, table)
						  : take_rows(&f, table);
	filler_done(&f);
	return r;
}

struct sp_diff_table *sp_diff_add_exact(struct sp_diff *diff, const char *key,
					const char *what, bool is_bytes,
					size_t n)
{
	struct sp_diff_table *table = &diff->tables[diff->n_tables++];

	*table = (struct sp_diff_table){.key = key,
					.what = what,
					.is_bytes = is_bytes,
					.is_exact = true,
					.n = n};
	table->rows = calloc(n + 1, sizeof(*table->rows));
	if (!table->rows)
		table->n = 0;
	return table->rows ? table : NULL;
}

int sp_diff_row_set(const struct sp_diff *diff, struct sp_diff_row *row,
		    const char *name, const struct sp_runs *old,
		    const struct sp_runs *new)
{
	*row = (struct sp_diff_row){.name = strdup(name),
				    .is_comparable = true};
	set_figures(diff, row, old, new, NULL);
	row->is_told = row->change.lo > 0 || row->change.hi < 0;
	return row->name ? 0 : -ENOMEM;
}
