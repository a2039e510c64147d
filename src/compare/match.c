/* SPDX-License-Identifier: MIT */
#include "compare/match.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sp_frame_set_has(const struct sp_frame_set *set,
		      const struct sp_paths *paths, uint32_t path)
{
	size_t depth = sp_paths_depth(paths, path);

	if (!set)
		return true;
	if (set->paths)
		return set->paths[path];
	if (set->innermost && depth)
		depth = 1;
	for (size_t i = 0; i < depth; i++)
		if (set->has[sp_paths_frame(paths, path, i)])
			return true;
	return false;
}

static const struct sp_path_rows *rows_of(const struct sp_summary *run,
					  const struct sp_match_of *of)
{
	static const struct sp_path_rows none;
	const struct sp_path_rows *rows =
		of->is_whole ? sp_summary_whole(run, of->table, of->phase)
			     : sp_summary_rows(run, of->table, of->phase);

	return rows ? rows : &none;
}

int sp_match_sum(const struct sp_side *side, const struct sp_paths *paths,
		 const struct sp_match_of *of, const struct sp_frame_set *only,
		 struct sp_runs *ret)
{
	struct sp_acc *accs = calloc(side->n, sizeof(*accs));

	if (!accs)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows = rows_of(side->run[i], of);

		sp_acc_init(&accs[i], side->run[i]->period_bytes);
		for (size_t k = 0; k < rows->n; k++)
			if (sp_frame_set_has(only, paths, rows->at[k].path))
				sp_acc_merge(&accs[i], &rows->at[k].acc);
	}
	sp_runs_sampled(ret, accs, side->n, of->is_count);
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
	const struct sp_match_of *of;
	const struct sp_keys *keys;
	const struct sp_frame_set *only;
	uint32_t *row_of_key; /* 1 + row; 0: none */
	uint32_t *key_of_row; /* ascending */
	size_t n;
};

static void mark_keys(struct matcher *m, const struct sp_side *side)
{
	const struct sp_keys *keys = m->keys;

	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows = rows_of(side->run[i], m->of);

		for (size_t k = 0; k < rows->n; k++) {
			const uint32_t path = rows->at[k].path;

			if (!sp_frame_set_has(m->only, m->pair->paths, path))
				continue;
			for (size_t at = keys->first[path];
			     at < keys->first[path + 1]; at++)
				m->row_of_key[keys->at[at]] = 1;
		}
	}
}

static void number_keys(struct matcher *m)
{
	for (size_t key = 0; key < m->keys->n; key++)
		if (m->row_of_key[key]) {
			m->key_of_row[m->n++] = (uint32_t)key;
			m->row_of_key[key] = (uint32_t)m->n;
		}
}

/* The samples of one path of run number i. */
static void fill_path(const struct matcher *m, struct grid *grid, size_t i,
		      const struct sp_path_row *path)
{
	const struct sp_keys *keys = m->keys;

	for (size_t at = keys->first[path->path];
	     at < keys->first[path->path + 1]; at++) {
		const uint32_t row = m->row_of_key[keys->at[at]];

		sp_acc_merge(&grid->at[(row - 1) * grid->side->n + i],
			     &path->acc);
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
		const struct sp_path_rows *rows = rows_of(side->run[i], m->of);

		for (size_t row = 0; row < m->n; row++)
			sp_acc_init(&grid->at[row * side->n + i],
				    side->run[i]->period_bytes);
		for (size_t k = 0; k < rows->n; k++)
			if (sp_frame_set_has(m->only, m->pair->paths,
					     rows->at[k].path))
				fill_path(m, grid, i, &rows->at[k]);
	}
	return 0;
}

static void set_rows(const struct matcher *m, const struct grid *old,
		     const struct grid *new, struct sp_match_row *rows)
{
	const bool is_count = m->of->is_count;

	for (size_t row = 0; row < m->n; row++) {
		struct sp_match_row *r = &rows[row];

		r->key = m->key_of_row[row];
		sp_runs_sampled(&r->old, &old->at[row * old->side->n],
				old->side->n, is_count);
		sp_runs_sampled(&r->new, &new->at[row * new->side->n],
				new->side->n, is_count);
		r->old_samples = r->old.acc.samples;
		r->new_samples = r->new.acc.samples;
	}
}

int sp_match_new(const struct sp_pair *pair, const struct sp_match_of *of,
		 const struct sp_keys *keys, const struct sp_frame_set *only,
		 struct sp_match_row **ret_rows, size_t *ret_n)
{
	struct matcher m = {.pair = pair, .of = of, .keys = keys, .only = only};
	struct grid old = {0}, new = {0};
	struct sp_match_row *rows = NULL;
	int r = -ENOMEM;

	m.row_of_key = calloc(keys->n + 1, sizeof(*m.row_of_key));
	m.key_of_row = calloc(keys->n + 1, sizeof(*m.key_of_row));
	if (!m.row_of_key || !m.key_of_row)
		goto out;
	mark_keys(&m, &pair->old);
	mark_keys(&m, &pair->new);
	number_keys(&m);
	rows = calloc(m.n + 1, sizeof(*rows));
	if (!rows || fill_grid(&m, &pair->old, &old) < 0 ||
	    fill_grid(&m, &pair->new, &new) < 0)
		goto out;
	set_rows(&m, &old, &new, rows);
	*ret_rows = rows;
	*ret_n = m.n;
	r = 0;
out:
	if (r < 0)
		free(rows);
	free(old.at);
	free(new.at);
	free(m.row_of_key);
	free(m.key_of_row);
	return r;
}

int sp_match_paths(const struct sp_pair *pair, const struct sp_match_of *of,
		   const struct sp_frame_set *only,
		   struct sp_match_row **ret_rows, size_t *ret_n)
{
	struct sp_keys keys;
	int r = sp_keys_paths(pair->paths, &keys);

	if (r < 0)
		return r;
	r = sp_match_new(pair, of, &keys, only, ret_rows, ret_n);
	sp_keys_done(&keys);
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

/* ---- which rows changed ---- */

static double p_value(const struct sp_match_row *row,
		      const struct sp_match_test *test,
		      const struct sp_run_noise *noise)
{
	const double largest = test->both_ways ? test->rate / 2 : test->rate;
	const double up = sp_change_p(&row->old, &row->new, &test->allowance,
				      false, noise, largest);

	if (!test->both_ways)
		return up;
	return fmin(1, 2 * fmin(up, sp_change_p(&row->old, &row->new,
						&test->allowance, true, noise,
						largest)));
}

/* A side that has `acc` in all its runs together, each alike. */
static struct sp_runs side_of(const struct sp_runs *like,
			      const struct sp_acc *acc)
{
	struct sp_runs runs;

	sp_runs_sampled(&runs, acc, 1, like->is_count);
	runs.n = like->n;
	runs.mean /= (double)like->n;
	runs.noise /= (double)like->n;
	return runs;
}

/*
 * Would the row be found if all its samples were on one side?  What could not
 * be found whatever happened is no test: it cannot be found by chance, either,
 * and to leave it out does not look at how its samples fell.
 */
static bool is_testable(const struct sp_match_row *row,
			const struct sp_match_test *test,
			const struct sp_run_noise *noise)
{
	const double largest = test->both_ways ? test->rate / 2 : test->rate;
	struct sp_acc none, all = row->old.acc;
	struct sp_runs old, new;

	sp_acc_merge(&all, &row->new.acc);
	sp_acc_init(&none, all.period_bytes);
	old = side_of(&row->old, &none);
	new = side_of(&row->new, &all);
	if (sp_change_is_beyond(&old, &new, &test->allowance, false, noise,
				largest))
		return true;
	if (!test->both_ways)
		return false;
	old = side_of(&row->old, &all);
	new = side_of(&row->new, &none);
	return sp_change_is_beyond(&old, &new, &test->allowance, true, noise,
				   largest);
}

int sp_match_test(const struct sp_match_row *rows, size_t n,
		  const struct sp_match_test *test,
		  const struct sp_run_noise *noise, double *p,
		  double *ret_threshold, size_t *ret_n_tested)
{
	double *tested = malloc((n + 1) * sizeof(*tested));
	size_t n_tested = 0;
	int r;

	if (!tested)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		p[i] = p_value(&rows[i], test, noise);
		if (p[i] < 1 || is_testable(&rows[i], test, noise))
			tested[n_tested++] = p[i];
	}
	r = sp_false_discovery(tested, n_tested, test->rate, ret_threshold);
	*ret_n_tested = n_tested;
	free(tested);
	return r;
}
