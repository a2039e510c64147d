/* SPDX-License-Identifier: MIT */
#include "compare/moved.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The path without its frames that may be inlined; a repeated one is one. */
static int add_kind(struct sp_moved *m, struct sp_intern *kinds,
		    uint32_t *buffer, const bool *is_own, uint32_t path)
{
	const struct sp_paths *paths = m->pair->paths;
	const size_t depth = sp_paths_depth(paths, path);
	size_t n = 0;
	int r;

	for (size_t d = 0; d < depth; d++) {
		const uint32_t frame = sp_paths_frame(paths, path, d);

		if (is_own[frame] && d + 1 < depth &&
		    sp_match_same_module(paths, frame,
					 sp_paths_frame(paths, path, d + 1)))
			continue;
		if (!n || buffer[n - 1] != frame)
			buffer[n++] = frame;
	}
	r = sp_intern_add(kinds, buffer, n * sizeof(*buffer), &m->kind[path]);
	if (!r)
		m->is_whole[m->kind[path]] |= n == depth;
	return r;
}

static size_t greatest_depth(const struct sp_paths *paths, size_t n_paths)
{
	size_t most = 0;

	for (uint32_t i = 0; i < n_paths; i++)
		if (sp_paths_depth(paths, i) > most)
			most = sp_paths_depth(paths, i);
	return most;
}

/* Frames that only one side has. */
static bool *find_own(const struct sp_pair *pair)
{
	const size_t n = pair->paths->frames.n_entries;
	bool *old = calloc(n + 1, sizeof(*old));
	bool *new = calloc(n + 1, sizeof(*new));

	if (old && new) {
		sp_match_mark(pair, &pair->old, old);
		sp_match_mark(pair, &pair->new, new);
		for (size_t i = 0; i < n; i++)
			old[i] = old[i] != new[i];
	}
	if (!new) {
		free(old);
		old = NULL;
	}
	free(new);
	return old;
}

int sp_moved_init(struct sp_moved *ret, const struct sp_pair *pair)
{
	const size_t n = pair->paths->paths.n_entries;
	struct sp_intern kinds = {0};
	bool *is_own = find_own(pair);
	uint32_t *buffer =
		calloc(greatest_depth(pair->paths, n) + 1, sizeof(*buffer));
	int r = is_own && buffer ? 0 : -ENOMEM;

	*ret = (struct sp_moved){.pair = pair, .n_paths = n};
	ret->kind = calloc(n + 1, sizeof(*ret->kind));
	ret->is_whole = calloc(n + 1, sizeof(*ret->is_whole));
	ret->is_chosen = calloc(n + 1, sizeof(*ret->is_chosen));
	ret->paths = calloc(n + 1, sizeof(*ret->paths));
	if (!ret->kind || !ret->is_whole || !ret->is_chosen || !ret->paths)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_kind(ret, &kinds, buffer, is_own, i);
	sp_intern_done(&kinds);
	free(is_own);
	free(buffer);
	if (r < 0)
		sp_moved_done(ret);
	return r;
}

/* `paths` becomes all that is alike; false: there is no more than `changed`. */
static bool choose_rows(struct sp_moved *m, const bool *changed)
{
	bool is_more = false;

	memset(m->is_chosen, 0, m->n_paths * sizeof(*m->is_chosen));
	for (size_t i = 0; i < m->n_paths; i++)
		m->is_chosen[m->kind[i]] |=
			changed[i] && m->is_whole[m->kind[i]];
	for (size_t i = 0; i < m->n_paths; i++) {
		m->paths[i] = changed[i] || m->is_chosen[m->kind[i]];
		is_more |= m->paths[i] && !changed[i];
	}
	return is_more;
}

static int sum_rows(const struct sp_moved *m, const struct sp_match_of *of,
		    const bool *of_paths, struct sp_runs *old,
		    struct sp_runs *new)
{
	const struct sp_frame_set only = {.paths = of_paths};
	const struct sp_pair *pair = m->pair;
	int r = sp_match_sum(&pair->old, pair->paths, of, &only, old);

	return r ? r : sp_match_sum(&pair->new, pair->paths, of, &only, new);
}

int sp_moved_is_real(struct sp_moved *m, const bool *changed,
		     const struct sp_moved_test *test)
{
	struct sp_allowance amount = {.amount = test->allowance.amount};
	struct sp_runs old, new;
	double change;

	if (!choose_rows(m, changed))
		return 1;
	if (sum_rows(m, test->of, changed, &old, &new) < 0)
		return -ENOMEM;
	change = new.mean - old.mean;
	amount.amount = fmax(amount.amount, test->allowance.growth * old.mean);
	if (sum_rows(m, test->of, m->paths, &old, &new) < 0)
		return -ENOMEM;
	/* most of it is no more than others have less */
	if (fabs(new.mean - old.mean) < fabs(change) / 2)
		return 0;
	return sp_change_is_beyond(&old, &new, &amount, test->is_down,
				   test->noise, test->p);
}

bool sp_moved_is_alone(struct sp_moved *m, const bool *changed)
{
	return !choose_rows(m, changed);
}

bool *sp_moved_paths_of(const struct sp_moved *m, const struct sp_keys *keys,
			uint32_t key)
{
	bool *has = calloc(m->n_paths + 1, sizeof(*has));

	for (size_t i = 0; has && i < m->n_paths; i++)
		for (size_t at = keys->first[i]; at < keys->first[i + 1]; at++)
			has[i] |= keys->at[at] == key;
	return has;
}

void sp_moved_done(struct sp_moved *m)
{
	free(m->kind);
	free(m->is_whole);
	free(m->is_chosen);
	free(m->paths);
	*m = (struct sp_moved){0};
}
