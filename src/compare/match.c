/* SPDX-License-Identifier: MIT */
#include "compare/match.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "compare/path_runs.h"

bool sp_frame_set_has(const struct sp_frame_set *set,
		      const struct sp_paths *paths, uint32_t path)
{
	const struct sp_path p = sp_paths_at(paths, path);

	if (!set)
		return true;
	if (set->paths)
		return set->paths[path];
	for (size_t i = 0; i < p.n && !(set->innermost && i); i++)
		if (set->has[p.frame[i]])
			return true;
	return false;
}

int sp_match_sum(const struct sp_side *side, const struct sp_paths *paths,
		 const struct sp_match_of *of, const struct sp_frame_set *only,
		 struct sp_runs *ret)
{
	struct sp_acc *accs = calloc(side->n, sizeof(*accs));

	if (!accs)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows =
			sp_path_runs_rows(side->run[i], of);

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

struct matcher {
	const struct sp_pair *pair;
	const struct sp_match_of *of;
	const struct sp_keys *keys;
	const struct sp_frame_set *only;
	bool *is_row;         /* of each key */
	uint32_t *key_of_row; /* ascending */
	size_t n;
};

static void mark_keys(struct matcher *m, const struct sp_side *side)
{
	const struct sp_keys *keys = m->keys;

	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows =
			sp_path_runs_rows(side->run[i], m->of);

		for (size_t k = 0; k < rows->n; k++) {
			const uint32_t path = rows->at[k].path;

			if (!sp_frame_set_has(m->only, m->pair->paths, path))
				continue;
			for (size_t at = keys->first[path];
			     at < keys->first[path + 1]; at++)
				m->is_row[keys->at[at]] = true;
		}
	}
}

static void number_keys(struct matcher *m)
{
	for (size_t key = 0; key < m->keys->n; key++)
		if (m->is_row[key])
			m->key_of_row[m->n++] = (uint32_t)key;
}

/* One side of a row, run by run. */
static void sum_row(const struct matcher *m, const struct sp_side *side,
		    const struct sp_path_runs *runs,
		    const struct sp_path_list *paths, struct sp_acc *accs,
		    struct sp_runs *ret)
{
	for (size_t i = 0; i < side->n; i++)
		sp_acc_init(&accs[i], side->run[i]->period_bytes);
	for (size_t i = 0; i < paths->n; i++) {
		const uint32_t path = paths->at[i];

		if (!sp_frame_set_has(m->only, m->pair->paths, path))
			continue;
		for (size_t k = runs->first[path]; k < runs->first[path + 1];
		     k++)
			sp_acc_merge(&accs[runs->at[k].run], runs->at[k].acc);
	}
	sp_runs_sampled(ret, accs, side->n, m->of->is_count);
}

/* One side of all rows, row by row: memory is that of one. */
static int sum_side(const struct matcher *m, const struct sp_key_paths *paths,
		    bool is_new, struct sp_match_row *rows)
{
	const struct sp_side *side = is_new ? &m->pair->new : &m->pair->old;
	struct sp_acc *accs = calloc(side->n + 1, sizeof(*accs));
	struct sp_path_runs runs = {0};
	int r = accs ? sp_path_runs_init(&runs, side, m->of, m->keys->n_paths)
		     : -ENOMEM;

	for (size_t i = 0; !r && i < m->n; i++) {
		struct sp_match_row *row = &rows[i];
		struct sp_path_list of_row;

		row->key = m->key_of_row[i];
		of_row = sp_key_paths_of(paths, row->key);
		sum_row(m, side, &runs, &of_row, accs,
			is_new ? &row->new : &row->old);
	}
	sp_path_runs_done(&runs);
	free(accs);
	return r;
}

static int sum_rows(const struct matcher *m, struct sp_match_row *rows)
{
	struct sp_key_paths paths;
	int r = sp_key_paths_init(&paths, m->keys);

	if (r < 0)
		return r;
	r = sum_side(m, &paths, false, rows);
	if (!r)
		r = sum_side(m, &paths, true, rows);
	for (size_t i = 0; !r && i < m->n; i++) {
		rows[i].old_samples = rows[i].old.acc.samples;
		rows[i].new_samples = rows[i].new.acc.samples;
	}
	sp_key_paths_done(&paths);
	return r;
}

int sp_match_new(const struct sp_pair *pair, const struct sp_match_of *of,
		 const struct sp_keys *keys, const struct sp_frame_set *only,
		 struct sp_match_row **ret_rows, size_t *ret_n)
{
	struct matcher m = {.pair = pair, .of = of, .keys = keys, .only = only};
	struct sp_match_row *rows = NULL;
	int r = -ENOMEM;

	m.is_row = calloc(keys->n + 1, sizeof(*m.is_row));
	m.key_of_row = calloc(keys->n + 1, sizeof(*m.key_of_row));
	if (!m.is_row || !m.key_of_row)
		goto out;
	mark_keys(&m, &pair->old);
	mark_keys(&m, &pair->new);
	number_keys(&m);
	rows = calloc(m.n + 1, sizeof(*rows));
	if (!rows || sum_rows(&m, rows) < 0)
		goto out;
	*ret_rows = rows;
	*ret_n = m.n;
	r = 0;
out:
	if (r < 0)
		free(rows);
	free(m.is_row);
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

/* Exact, of the whole of which the rows are parts. */
static int sum_whole(const struct sp_side *side, const struct sp_match_of *of,
		     struct sp_runs *ret)
{
	double *values = calloc(side->n + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_summary *run = side->run[i];
		const struct sp_phase_sum *phase =
			of->phase ? sp_summary_phase(run, of->phase) : NULL;

		if (phase)
			values[i] = of->is_count
					    ? (double)phase->exact_alloc_objects
					    : (double)phase->exact_alloc_bytes;
		else if (!of->phase)
			values[i] = of->is_count
					    ? (double)run->exact_alloc_objects
					    : (double)run->exact_alloc_bytes;
	}
	sp_runs_exact(ret, values, side->n);
	free(values);
	return 0;
}

/* A total of nothing is of a summary that has none. */
static int bound_noise(const struct sp_pair *pair, const struct sp_match_of *of,
		       const struct sp_run_pair *pairs, size_t n,
		       struct sp_run_noise *noise)
{
	struct sp_runs old, new;
	int r;

	if (of->table != SP_VIEW_ALLOC)
		return 0;
	r = sum_whole(&pair->old, of, &old);
	if (!r)
		r = sum_whole(&pair->new, of, &new);
	if (!r && old.mean > 0 && new.mean > 0)
		sp_run_noise_bound(noise, pairs, n, &old, &new);
	return r;
}

int sp_match_noise(const struct sp_pair *pair, const struct sp_match_of *of,
		   const struct sp_match_row *rows, size_t n,
		   struct sp_run_noise *ret)
{
	int r;
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
	r = bound_noise(pair, of, pairs, n_pairs, ret);
	free(pairs);
	return r;
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
 * Would the row be found if all its samples were on one side?  A row that can
 * never be found is no test: it cannot be found by chance, either.  Leaving it
 * out does not depend on how its samples fell.
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
