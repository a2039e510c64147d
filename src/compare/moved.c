/* SPDX-License-Identifier: MIT */
#include "compare/moved.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The path without its frames that may be inlined; a repeated one is one. */
static int add_kind(struct sp_moved *m, struct sp_intern *kinds,
		    uint32_t *buffer, const bool *is_own, uint32_t path)
{
	const struct sp_paths *paths = m->pair->paths;
	const struct sp_path p = sp_paths_at(paths, path);
	size_t n = 0;
	int r;

	for (size_t d = 0; d < p.n; d++) {
		const uint32_t frame = p.frame[d];

		if (is_own[frame] && d + 1 < p.n &&
		    sp_paths_same_module(paths, frame, p.frame[d + 1]))
			continue;
		if (!n || buffer[n - 1] != frame)
			buffer[n++] = frame;
	}
	r = sp_intern_add(kinds, buffer, n * sizeof(*buffer), &m->kind[path]);
	if (!r)
		m->is_whole[m->kind[path]] |= n == p.n;
	return r;
}

static size_t greatest_depth(const struct sp_paths *paths, size_t n_paths)
{
	size_t most = 0;

	for (uint32_t i = 0; i < n_paths; i++)
		if (sp_paths_at(paths, i).n > most)
			most = sp_paths_at(paths, i).n;
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

/* Paths of each kind together. */
static int sort_kinds(struct sp_moved *m)
{
	m->first = calloc(m->n_kinds + 2, sizeof(*m->first));
	m->by_kind = calloc(m->n_paths + 1, sizeof(*m->by_kind));
	m->n_changed = calloc(m->n_kinds + 1, sizeof(*m->n_changed));
	if (!m->first || !m->by_kind || !m->n_changed)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_paths; i++)
		m->first[m->kind[i] + 2]++;
	for (size_t i = 2; i < m->n_kinds + 2; i++)
		m->first[i] += m->first[i - 1];
	/* first[kind + 1] goes from where it begins to where it ends */
	for (uint32_t i = 0; i < m->n_paths; i++)
		m->by_kind[m->first[m->kind[i] + 1]++] = i;
	return 0;
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
	if (!ret->kind || !ret->is_whole)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_kind(ret, &kinds, buffer, is_own, i);
	ret->n_kinds = kinds.n_entries;
	sp_intern_done(&kinds);
	if (!r)
		r = sort_kinds(ret);
	free(is_own);
	free(buffer);
	if (r < 0)
		sp_moved_done(ret);
	return r;
}

/* ---- what paths and kinds have ---- */

/* All paths of a kind together: a sum for each run that has any. */
struct sp_moved_kind {
	bool is_made;
	size_t n;
	struct sp_path_run *at;
	struct sp_acc *accs; /* of these */
};

static void side_done(struct sp_moved_side *side, size_t n_kinds)
{
	for (size_t i = 0; side->kinds && i < n_kinds; i++) {
		free(side->kinds[i].at);
		free(side->kinds[i].accs);
	}
	free(side->kinds);
	free(side->accs);
	sp_path_runs_done(&side->runs);
	*side = (struct sp_moved_side){0};
}

static int side_init(struct sp_moved_side *ret, const struct sp_moved *m,
		     const struct sp_side *side)
{
	ret->kinds = calloc(m->n_kinds + 1, sizeof(*ret->kinds));
	ret->accs = calloc(side->n + 1, sizeof(*ret->accs));
	if (!ret->kinds || !ret->accs)
		return -ENOMEM;
	return sp_path_runs_init(&ret->runs, side, &m->of, m->n_paths);
}

static void sides_done(struct sp_moved *m)
{
	side_done(&m->old, m->n_kinds);
	side_done(&m->new, m->n_kinds);
	m->has_sides = false;
}

/* Sums of these samples from now on. */
static int choose_of(struct sp_moved *m, const struct sp_match_of *of)
{
	int r;

	if (m->has_sides && m->of.table == of->table &&
	    m->of.phase == of->phase && m->of.is_whole == of->is_whole)
		return 0;
	sides_done(m);
	m->of = *of;
	r = side_init(&m->old, m, &m->pair->old);
	if (!r)
		r = side_init(&m->new, m, &m->pair->new);
	m->has_sides = !r;
	return r;
}

static void begin_sum(struct sp_moved_side *s, const struct sp_side *side)
{
	for (size_t i = 0; i < side->n; i++)
		sp_acc_init(&s->accs[i], side->run[i]->period_bytes);
}

static void add_runs(struct sp_moved *m, struct sp_moved_side *s,
		     const struct sp_path_run *runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sp_acc_merge(&s->accs[runs[i].run], runs[i].acc);
	m->n_added += n;
}

static void add_path(struct sp_moved *m, struct sp_moved_side *s, uint32_t path)
{
	const size_t first = s->runs.first[path];

	add_runs(m, s, &s->runs.at[first], s->runs.first[path + 1] - first);
}

/* Of `accs`, which have just this kind, those that have samples. */
static int keep_sums(const struct sp_moved_side *s, size_t n_runs,
		     struct sp_moved_kind *kind)
{
	for (size_t i = 0; i < n_runs; i++)
		kind->n += s->accs[i].samples > 0;
	kind->at = calloc(kind->n + 1, sizeof(*kind->at));
	kind->accs = calloc(kind->n + 1, sizeof(*kind->accs));
	if (!kind->at || !kind->accs)
		return -ENOMEM;
	kind->n = 0;
	for (uint32_t i = 0; i < n_runs; i++) {
		if (!s->accs[i].samples)
			continue;
		kind->accs[kind->n] = s->accs[i];
		kind->at[kind->n] =
			(struct sp_path_run){&kind->accs[kind->n], i};
		kind->n++;
	}
	return 0;
}

/* Uses `accs`. */
static int make_kind(struct sp_moved *m, struct sp_moved_side *s,
		     const struct sp_side *side, uint32_t kind)
{
	struct sp_moved_kind *made = &s->kinds[kind];

	if (made->is_made)
		return 0;
	begin_sum(s, side);
	for (size_t i = m->first[kind]; i < m->first[kind + 1]; i++)
		add_path(m, s, m->by_kind[i]);
	made->is_made = true;
	return keep_sums(s, side->n, made);
}

/* ---- changes ---- */

/* Set n_changed of the kinds of the changed paths.  False: no other path is
 * alike. */
static bool choose_kinds(struct sp_moved *m, const struct sp_path_list *changed)
{
	bool is_more = false;

	for (size_t i = 0; i < changed->n; i++)
		m->n_changed[m->kind[changed->at[i]]]++;
	for (size_t i = 0; i < changed->n; i++) {
		const uint32_t kind = m->kind[changed->at[i]];

		is_more |= m->is_whole[kind] &&
			   m->n_changed[kind] <
				   m->first[kind + 1] - m->first[kind];
	}
	return is_more;
}

static void forget_kinds(struct sp_moved *m, const struct sp_path_list *changed)
{
	for (size_t i = 0; i < changed->n; i++)
		m->n_changed[m->kind[changed->at[i]]] = 0;
}

static int sum_changed(struct sp_moved *m, struct sp_moved_side *s,
		       const struct sp_side *side,
		       const struct sp_path_list *changed, struct sp_runs *ret)
{
	begin_sum(s, side);
	for (size_t i = 0; i < changed->n; i++)
		add_path(m, s, changed->at[i]);
	sp_runs_sampled(ret, s->accs, side->n, m->of.is_count);
	return 0;
}

/* The sum with all alike paths: each kind once, at its first path. */
static int sum_alike(struct sp_moved *m, struct sp_moved_side *s,
		     const struct sp_side *side,
		     const struct sp_path_list *changed, struct sp_runs *ret)
{
	for (size_t i = 0; i < changed->n; i++) {
		const uint32_t kind = m->kind[changed->at[i]];

		if (m->is_whole[kind] && make_kind(m, s, side, kind) < 0)
			return -ENOMEM;
		m->n_changed[kind] = 0;
	}
	begin_sum(s, side);
	for (size_t i = 0; i < changed->n; i++) {
		const uint32_t kind = m->kind[changed->at[i]];

		if (!m->is_whole[kind])
			add_path(m, s, changed->at[i]);
		else if (!m->n_changed[kind]++)
			add_runs(m, s, s->kinds[kind].at, s->kinds[kind].n);
	}
	sp_runs_sampled(ret, s->accs, side->n, m->of.is_count);
	return 0;
}

typedef int sum_fn(struct sp_moved *m, struct sp_moved_side *s,
		   const struct sp_side *side,
		   const struct sp_path_list *changed, struct sp_runs *ret);

static int sum_sides(struct sp_moved *m, sum_fn *sum,
		     const struct sp_path_list *changed, struct sp_runs *old,
		     struct sp_runs *new)
{
	const int r = sum(m, &m->old, &m->pair->old, changed, old);

	return r ? r : sum(m, &m->new, &m->pair->new, changed, new);
}

int sp_moved_is_real(struct sp_moved *m, const struct sp_path_list *changed,
		     const struct sp_moved_test *test)
{
	struct sp_allowance amount = {.amount = test->allowance.amount};
	const bool is_more = choose_kinds(m, changed);
	struct sp_runs old = {.mean = 0}, new = {.mean = 0};
	double change = 0;
	int r = 0;

	if (is_more)
		r = choose_of(m, test->of);
	m->of.is_count = test->of->is_count;
	if (!r && is_more)
		r = sum_sides(m, sum_changed, changed, &old, &new);
	if (!r && is_more) {
		change = new.mean - old.mean;
		amount.amount =
			fmax(amount.amount, test->allowance.growth * old.mean);
		r = sum_sides(m, sum_alike, changed, &old, &new);
	}
	forget_kinds(m, changed);
	if (r < 0 || !is_more)
		return r < 0 ? r : 1;
	/* most of it is no more than others have less */
	if (fabs(new.mean - old.mean) < fabs(change) / 2)
		return 0;
	return sp_change_is_beyond(&old, &new, &amount, test->is_down,
				   test->noise, test->p);
}

bool sp_moved_is_alone(struct sp_moved *m, const struct sp_path_list *changed)
{
	const bool is_more = choose_kinds(m, changed);

	forget_kinds(m, changed);
	return !is_more;
}

void sp_moved_done(struct sp_moved *m)
{
	sides_done(m);
	free(m->kind);
	free(m->is_whole);
	free(m->first);
	free(m->by_kind);
	free(m->n_changed);
	*m = (struct sp_moved){0};
}
