/* SPDX-License-Identifier: MIT */
/* What only moved between callers and callees, compared with a model that looks
 * at every path for every question; and that all questions together cost what
 * the runs have, not questions times runs. */
#include <math.h>

#include "base/rng.h"
#include "compare/moved.h"
#include "support/gate_runs.h"
#include "support/test.h"

#define R     64u
#define RUNS  3
#define PATHS 24

static const struct sp_match_of of = {.table = SP_VIEW_ALLOC};
static struct sp_rng rng;

static unsigned int below(unsigned int n)
{
	return (unsigned int)(sp_rng_next(&rng) % n);
}

struct scene {
	struct sp_paths paths;
	struct sp_summary *runs[2 * RUNS]; /* old, new */
	struct sp_pair pair;
	struct sp_moved moved;
};

static struct scene *scene_new(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	for (int i = 0; i < 2 * RUNS; i++)
		s->runs[i] = gate_run_new(R);
	s->pair = (struct sp_pair){
		{s->runs, RUNS}, {s->runs + RUNS, RUNS}, &s->paths};
	return s;
}

static void scene_free(struct scene *s)
{
	sp_moved_done(&s->moved);
	for (int i = 0; i < 2 * RUNS; i++)
		sp_summary_free(s->runs[i]);
	sp_paths_done(&s->paths);
	free(s);
}

static void add(struct scene *s, int run, const char *path, uint64_t samples)
{
	const struct sp_acc acc = gate_samples(samples, 64, R);

	gate_run_add(s->runs[run], &s->paths, SP_VIEW_ALLOC, path, &acc);
}

static void look(struct scene *s)
{
	assert_int_equal(sp_moved_init(&s->moved, &s->pair), 0);
}

/* ---- the model ---- */

static void sum(const struct scene *s, const bool *paths, struct sp_runs *old,
		struct sp_runs *new)
{
	const struct sp_frame_set only = {.paths = paths};

	assert_int_equal(sp_match_sum(&s->pair.old, &s->paths, &of, &only, old),
			 0);
	assert_int_equal(sp_match_sum(&s->pair.new, &s->paths, &of, &only, new),
			 0);
}

/* Is path i of a kind of which a changed path is? */
static bool is_alike(const struct sp_moved *m, const bool *changed, size_t i)
{
	for (size_t k = 0; k < m->n_paths; k++)
		if (changed[k] && m->kind[k] == m->kind[i] &&
		    m->is_whole[m->kind[k]])
			return true;
	return false;
}

static int model(const struct scene *s, const bool *changed,
		 const struct sp_moved_test *test, bool *ret_is_alone)
{
	const struct sp_moved *m = &s->moved;
	bool *all = calloc(m->n_paths + 1, sizeof(*all));
	struct sp_allowance amount = {.amount = test->allowance.amount};
	struct sp_runs old, new;
	double change;

	assert_non_null(all);
	*ret_is_alone = true;
	for (size_t i = 0; i < m->n_paths; i++) {
		all[i] = changed[i] || is_alike(m, changed, i);
		*ret_is_alone &= all[i] == changed[i];
	}
	sum(s, changed, &old, &new);
	change = new.mean - old.mean;
	amount.amount = fmax(amount.amount, test->allowance.growth * old.mean);
	sum(s, all, &old, &new);
	free(all);
	if (*ret_is_alone)
		return 1;
	if (fabs(new.mean - old.mean) < fabs(change) / 2)
		return 0;
	return sp_change_is_beyond(&old, &new, &amount, test->is_down,
				   test->noise, test->p);
}

/* ---- random scenes ---- */

/* a and b may be on either side, o and n on one each: what is inlined. */
static void add_random(struct scene *s)
{
	static const char *const inner[] = {"f", "f<a", "g<b", "f<b"};
	static const char *const own[2][3] = {{"", "<o", ""}, {"", "<n", ""}};
	const int run = (int)below(2 * RUNS), side = run >= RUNS;
	char path[64];

	snprintf(path, sizeof(path), "%s%s%s<main", inner[below(4)],
		 own[side][below(3)], below(2) ? "<x" : "");
	add(s, run, path, 1 + below(60));
}

/* As the model says, whatever was asked before. */
TEST(model)
{
	unsigned int n_real = 0, n_moved = 0, n_alone = 0;

	for (int round = 0; round < 300; round++) {
		struct scene *s = scene_new();

		for (int i = 0; i < PATHS; i++)
			add_random(s);
		look(s);
		for (int question = 0; question < 10; question++) {
			const struct sp_moved_test test = {
				.of = &of,
				.allowance = {.growth = below(2) * 0.1,
					      .amount = below(3) * 100},
				.is_down = below(2),
				.p = 0.05};
			const size_t n = s->moved.n_paths;
			FREED bool *changed = calloc(n + 1, sizeof(*changed));
			FREED uint32_t *at = calloc(n + 1, sizeof(*at));
			struct sp_path_list list = {at, 0};
			bool is_alone;
			int r;

			for (uint32_t i = 0; i < n; i++)
				if (below(3) == 0) {
					changed[i] = true;
					at[list.n++] = i;
				}
			r = model(s, changed, &test, &is_alone);
			assert_int_equal(
				sp_moved_is_real(&s->moved, &list, &test), r);
			assert_int_equal(sp_moved_is_alone(&s->moved, &list),
					 is_alone);
			n_real += !is_alone && r;
			n_moved += !is_alone && !r;
			n_alone += is_alone;
		}
		scene_free(s);
	}
	assert_true(n_real > 50 && n_moved > 100 && n_alone > 100);
}

/* ---- cost ---- */

#define MANY 400

/* All that is added up while each path is asked about by itself, for each row
 * that the runs have. */
static double cost(struct scene *s)
{
	const struct sp_moved_test test = {.of = &of, .p = 0.05};
	size_t rows = 0;

	look(s);
	for (int i = 0; i < 2 * RUNS; i++)
		rows += s->runs[i]->rows[SP_VIEW_ALLOC].n;
	assert_true(rows >= MANY);
	for (uint32_t i = 0; i < s->moved.n_paths; i++) {
		const struct sp_path_list one = {&i, 1};

		assert_true(sp_moved_is_real(&s->moved, &one, &test) >= 0);
	}
	return (double)s->moved.n_added / (double)rows;
}

/* Each has another that is like it: each kind has two paths. */
TEST(cost_of_many_kinds)
{
	struct scene *s = scene_new();
	char path[64];

	for (int i = 0; i < MANY; i++)
		for (int run = 0; run < 2 * RUNS; run++) {
			snprintf(path, sizeof(path), "f%d%s<main", i,
				 run >= RUNS ? "<n" : "");
			add(s, run, path, 2);
		}
	assert_true(cost(s) <= 4);
	assert_true(s->moved.n_added > 0);
	scene_free(s);
}

/* All are alike: one kind, which is added up once. */
TEST(cost_of_one_kind)
{
	struct scene *s = scene_new();
	char path[64];

	for (int run = 0; run < RUNS; run++)
		add(s, run, "f<main", 2);
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "f<n%d<main", i);
		add(s, RUNS + i % RUNS, path, 2);
	}
	assert_true(cost(s) <= 2 + 2 * RUNS);
	assert_int_equal(s->moved.n_kinds, 1);
	scene_free(s);
}

int main(void)
{
	sp_rng_init(&rng, 22, 0);
	return TEST_RUN(NULL, NULL);
}
