/* SPDX-License-Identifier: MIT */
#include "gate/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool sp_frame_set_has(const struct sp_frame_set *set,
		      const struct sp_paths *paths, uint32_t path)
{
	size_t depth = sp_paths_depth(paths, path);

	if (!set)
		return true;
	if (set->innermost && depth)
		depth = 1;
	for (size_t i = 0; i < depth; i++)
		if (set->has[sp_paths_frame(paths, path, i)])
			return true;
	return false;
}

int sp_match_sum(const struct sp_side *side, const struct sp_paths *paths,
		 enum sp_view view, bool is_count,
		 const struct sp_frame_set *only, struct sp_runs *ret)
{
	struct sp_acc *accs = calloc(side->n, sizeof(*accs));

	if (!accs)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows = &side->run[i]->rows[view];

		sp_acc_init(&accs[i], side->run[i]->period_bytes);
		for (size_t k = 0; k < rows->n; k++)
			if (sp_frame_set_has(only, paths, rows->at[k].path))
				sp_acc_merge(&accs[i], &rows->at[k].acc);
	}
	sp_runs_sampled(ret, accs, side->n, is_count);
	free(accs);
	return 0;
}

/* ---- rows ---- */

/* The accumulators of one side: of each run, one for each row. */
struct grid {
	const struct sp_side *side;
	struct sp_acc *at; /* row-major: all runs of a row together */
};

struct matcher {
	const struct sp_pair *pair;
	enum sp_view view;
	enum sp_match_by by;
	const struct sp_frame_set *only;
	uint32_t *row_of_key; /* 1 + row; 0: none */
	uint32_t *keys;       /* of the rows, ascending */
	size_t n_keys, n;
};

static uint32_t key_of(const struct matcher *m, uint32_t path)
{
	return m->by == SP_MATCH_PATHS
		       ? path
		       : sp_paths_frame(m->pair->paths, path, 0);
}

static void mark_keys(struct matcher *m, const struct sp_side *side)
{
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows = &side->run[i]->rows[m->view];

		for (size_t k = 0; k < rows->n; k++)
			if (sp_frame_set_has(m->only, m->pair->paths,
					     rows->at[k].path))
				m->row_of_key[key_of(m, rows->at[k].path)] = 1;
	}
}

static void number_keys(struct matcher *m)
{
	for (size_t key = 0; key < m->n_keys; key++)
		if (m->row_of_key[key]) {
			m->keys[m->n++] = (uint32_t)key;
			m->row_of_key[key] = (uint32_t)m->n;
		}
}

static int fill_grid(const struct matcher *m, const struct sp_side *side,
		     struct grid *grid)
{
	grid->side = side;
	grid->at = calloc(m->n * side->n + 1, sizeof(*grid->at));
	if (!grid->at)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows = &side->run[i]->rows[m->view];

		for (size_t row = 0; row < m->n; row++)
			sp_acc_init(&grid->at[row * side->n + i],
				    side->run[i]->period_bytes);
		for (size_t k = 0; k < rows->n; k++) {
			const uint32_t path = rows->at[k].path;
			const uint32_t row = m->row_of_key[key_of(m, path)];

			if (row &&
			    sp_frame_set_has(m->only, m->pair->paths, path))
				sp_acc_merge(&grid->at[(row - 1) * side->n + i],
					     &rows->at[k].acc);
		}
	}
	return 0;
}

static void set_rows(const struct matcher *m, const struct grid *old,
		     const struct grid *new, bool is_count,
		     struct sp_match_row *rows)
{
	for (size_t row = 0; row < m->n; row++) {
		struct sp_match_row *r = &rows[row];

		r->key = m->keys[row];
		sp_runs_sampled(&r->old, &old->at[row * old->side->n],
				old->side->n, is_count);
		sp_runs_sampled(&r->new, &new->at[row * new->side->n],
				new->side->n, is_count);
		r->old_samples = r->old.acc.samples;
		r->new_samples = r->new.acc.samples;
	}
}

int sp_match_new(const struct sp_pair *pair, enum sp_view view,
		 enum sp_match_by by, bool is_count,
		 const struct sp_frame_set *only,
		 struct sp_match_row **ret_rows, size_t *ret_n)
{
	struct matcher m = {.pair = pair, .view = view, .by = by, .only = only};
	struct grid old = {0}, new = {0};
	struct sp_match_row *rows = NULL;
	int r = -ENOMEM;

	m.n_keys = by == SP_MATCH_PATHS ? pair->paths->paths.n_entries
					: pair->paths->frames.n_entries;
	m.row_of_key = calloc(m.n_keys + 1, sizeof(*m.row_of_key));
	m.keys = calloc(m.n_keys + 1, sizeof(*m.keys));
	if (!m.row_of_key || !m.keys)
		goto out;
	mark_keys(&m, &pair->old);
	mark_keys(&m, &pair->new);
	number_keys(&m);
	rows = calloc(m.n + 1, sizeof(*rows));
	if (!rows || fill_grid(&m, &pair->old, &old) < 0 ||
	    fill_grid(&m, &pair->new, &new) < 0)
		goto out;
	set_rows(&m, &old, &new, is_count, rows);
	*ret_rows = rows;
	*ret_n = m.n;
	r = 0;
out:
	if (r < 0)
		free(rows);
	free(old.at);
	free(new.at);
	free(m.row_of_key);
	free(m.keys);
	return r;
}

/* Rows from which the program's own noise is learnt. */
#define SAMPLES_FOR_NOISE 5

int sp_match_noise(const struct sp_match_row *rows, size_t n,
		   struct sp_run_noise *ret)
{
	struct sp_run_pair *pairs = calloc(n + 1, sizeof(*pairs));
	size_t n_pairs = 0;

	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct sp_match_row *row = &rows[i];

		if (row->old_samples < SAMPLES_FOR_NOISE * row->old.n ||
		    row->new_samples < SAMPLES_FOR_NOISE * row->new.n ||
		    !(row->old.noise > 0) || !(row->new.noise > 0))
			continue;
		pairs[n_pairs++] = (struct sp_run_pair){&row->old, &row->new};
	}
	*ret = sp_run_noise_fit(pairs, n_pairs);
	free(pairs);
	return 0;
}
