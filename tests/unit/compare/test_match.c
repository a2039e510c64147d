/* SPDX-License-Identifier: MIT */
/* Rows of a comparison against a model that looks at every path for every row,
 * and which of them count as tests. */
#include <math.h>

#include "base/rng.h"
#include "compare/match.h"
#include "support/gate_runs.h"
#include "support/test.h"

#define R     4096u
#define PATHS 40
#define DEPTH 6

static const char *const names[] = {"f",         "g",         "h",
				    "liba.so!f", "liba.so!x", "libb.so!y"};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

/* Two runs on each side of random paths; what the model has of them. */
struct scene {
	struct sp_paths paths;
	struct sp_summary *runs[4]; /* old, old, new, new */
	struct sp_pair pair;
	/* of each path that was added: names, innermost first */
	size_t word[PATHS][DEPTH], depth[PATHS];
	unsigned int run[PATHS];
	uint64_t samples[PATHS];
	size_t n;
};

static struct sp_rng rng;

static unsigned int below(unsigned int n)
{
	return (unsigned int)(sp_rng_next(&rng) % n);
}

static void add_path(struct scene *s)
{
	struct sp_acc acc;
	char text[128] = "";
	const size_t at = s->n++;

	s->run[at] = below(4);
	s->samples[at] = 1 + below(9);
	s->depth[at] = 1 + below(DEPTH);
	for (size_t i = 0; i < s->depth[at]; i++) {
		s->word[at][i] = below(N_NAMES);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s", i ? "<" : "", names[s->word[at][i]]);
	}
	acc = gate_samples(s->samples[at], 64, R);
	gate_run_add(s->runs[s->run[at]], &s->paths, SP_VIEW_ALLOC, text, &acc);
}

static struct scene *scene_new(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	for (int i = 0; i < 4; i++)
		s->runs[i] = gate_run_new(R);
	for (int i = 0; i < PATHS; i++)
		add_path(s);
	s->pair = (struct sp_pair){{s->runs, 2}, {s->runs + 2, 2}, &s->paths};
	return s;
}

static void scene_free(struct scene *s)
{
	for (int i = 0; i < 4; i++)
		sp_summary_free(s->runs[i]);
	sp_paths_done(&s->paths);
	free(s);
}

/* The path with what follows itself only once; its length. */
static size_t collapse(const struct scene *s, size_t at, const size_t *as,
		       size_t *words)
{
	size_t n = 0;

	for (size_t i = 0; i < s->depth[at]; i++) {
		const size_t word = as ? as[s->word[at][i]] : s->word[at][i];

		if (!n || words[n - 1] != word)
			words[n++] = word;
	}
	return n;
}

/* Does the path belong to the row? */
typedef bool belongs_fn(const size_t *words, size_t n, const void *row);

/* Samples of a side on paths that belong to the row. */
static uint64_t model(const struct scene *s, bool is_new, const size_t *as,
		      belongs_fn *belongs, const void *row)
{
	uint64_t samples = 0;
	size_t words[DEPTH];

	for (size_t at = 0; at < s->n; at++) {
		const size_t n = collapse(s, at, as, words);

		if ((s->run[at] >= 2) == is_new && belongs(words, n, row))
			samples += s->samples[at];
	}
	return samples;
}

static size_t word_of(const struct scene *s, uint32_t frame)
{
	const char *name = sp_paths_name(&s->paths, frame);
	size_t i = 0;

	while (i < N_NAMES && strcmp(names[i], name) != 0)
		i++;
	return i;
}

static void match(const struct scene *s, const struct sp_keys *keys,
		  struct sp_match_row **rows, size_t *n)
{
	static const struct sp_match_of of = {.table = SP_VIEW_ALLOC};

	assert_int_equal(sp_match_new(&s->pair, &of, keys, NULL, rows, n), 0);
}

static void assert_row(const struct scene *s, const struct sp_match_row *row,
		       const size_t *as, belongs_fn *belongs, const void *of)
{
	assert_int_equal(row->old_samples, model(s, false, as, belongs, of));
	assert_int_equal(row->new_samples, model(s, true, as, belongs, of));
	assert_true(row->old_samples + row->new_samples > 0);
	assert_int_equal(row->old.n, 2);
}

/* ---- flat and cum ---- */

static bool is_flat(const size_t *words, size_t n, const void *row)
{
	(void)n;
	return words[0] == *(const size_t *)row;
}

static bool is_cum(const size_t *words, size_t n, const void *row)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] == *(const size_t *)row)
			return true;
	return false;
}

/* Every name that has samples has a row: the sum of flat ones is all. */
static void check_functions(struct scene *s, bool cum)
{
	FREED struct sp_match_row *rows;
	uint64_t sum = 0, all = 0;
	FREED_BY(sp_keys_done) struct sp_keys keys;
	size_t n;

	assert_int_equal(
		(cum ? sp_keys_cum : sp_keys_flat)(&s->paths, NULL, &keys), 0);
	match(s, &keys, &rows, &n);
	for (size_t i = 0; i < n; i++) {
		const size_t word = word_of(s, rows[i].key);

		assert_true(!i || rows[i].key > rows[i - 1].key);
		assert_row(s, &rows[i], NULL, cum ? is_cum : is_flat, &word);
		sum += rows[i].old_samples + rows[i].new_samples;
	}
	for (size_t at = 0; at < s->n; at++)
		all += s->samples[at];
	if (!cum)
		assert_int_equal(sum, all);
}

TEST(functions)
{
	for (int i = 0; i < 50; i++) {
		struct scene *s = scene_new();

		check_functions(s, false);
		check_functions(s, true);
		scene_free(s);
	}
}

/* By module: 0 is the program, 3 liba.so, 5 libb.so. */
TEST(modules)
{
	static const size_t as_word[] = {0, 0, 0, 3, 3, 5};
	static const char *const modules[] = {"[program]", "liba.so",
					      "libb.so"};
	static const size_t words[] = {0, 3, 5};

	for (int round = 0; round < 50; round++) {
		struct scene *s = scene_new();
		FREED struct sp_match_row *rows;
		FREED_BY(sp_keys_done) struct sp_keys keys;
		FREED uint32_t *as;
		size_t n;

		assert_int_equal(sp_keys_modules(&s->paths, &as), 0);
		assert_int_equal(sp_keys_cum(&s->paths, as, &keys), 0);
		match(s, &keys, &rows, &n);
		assert_true(n && n <= 3);
		for (size_t i = 0; i < n; i++) {
			size_t m = 0;

			while (m < 3 &&
			       strcmp(sp_paths_name(&s->paths, rows[i].key),
				      modules[m]) != 0)
				m++;
			assert_true(m < 3);
			assert_row(s, &rows[i], as_word, is_cum, &words[m]);
		}
		scene_free(s);
	}
}

/* ---- tree ---- */

struct place {
	size_t words[DEPTH]; /* outermost first */
	size_t n;
	bool is_itself;
};

static bool is_in_place(const size_t *words, size_t n, const void *row)
{
	const struct place *p = row;

	if (p->is_itself ? n != p->n : n < p->n)
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (words[n - 1 - i] != p->words[i])
			return false;
	return true;
}

static void read_place(const struct scene *s, const struct sp_keys *keys,
		       uint32_t key, struct place *ret)
{
	struct sp_key said = sp_keys_said(keys, key);
	size_t inwards[DEPTH], n = 0;

	*ret = (struct place){.is_itself = said.kind == SP_KEY_ITSELF};
	if (ret->is_itself)
		said = sp_keys_said(keys, said.of);
	for (;;) {
		assert_int_equal(said.kind, SP_KEY_PLACE);
		inwards[n++] = word_of(s, said.frame);
		if (said.of == SP_KEY_NONE)
			break;
		said = sp_keys_said(keys, said.of);
	}
	while (n)
		ret->words[ret->n++] = inwards[--n];
}

TEST(tree)
{
	for (int round = 0; round < 50; round++) {
		struct scene *s = scene_new();
		FREED struct sp_match_row *rows;
		FREED_BY(sp_keys_done) struct sp_keys keys;
		size_t n;

		assert_int_equal(sp_keys_tree(&s->paths, NULL, &keys), 0);
		match(s, &keys, &rows, &n);
		for (size_t i = 0; i < n; i++) {
			const struct sp_key said =
				sp_keys_said(&keys, rows[i].key);
			struct place place;

			assert_true(said.of == SP_KEY_NONE ||
				    said.of < rows[i].key);
			read_place(s, &keys, rows[i].key, &place);
			assert_row(s, &rows[i], NULL, is_in_place, &place);
		}
		scene_free(s);
	}
}

/* ---- callers and callees ---- */

struct edge {
	enum sp_key_kind kind;
	size_t of, other; /* words; N_NAMES: nobody */
};

static bool is_on_edge(const size_t *words, size_t n, const void *row)
{
	const struct edge *e = row;
	size_t first = n, last = n;

	for (size_t i = 0; i < n; i++)
		if (words[i] == e->of) {
			first = first == n ? i : first;
			last = i;
		}
	if (first == n)
		return false;
	if (e->kind == SP_KEY_FUNCTION)
		return true;
	if (e->kind == SP_KEY_CALLER)
		return (last + 1 < n ? words[last + 1] : N_NAMES) == e->other;
	return (first ? words[first - 1] : N_NAMES) == e->other;
}

TEST(edges)
{
	for (int round = 0; round < 50; round++) {
		struct scene *s = scene_new();
		bool wants[N_NAMES + 1] = {0};
		FREED struct sp_match_row *rows;
		FREED_BY(sp_keys_done) struct sp_keys keys;
		size_t n;

		for (uint32_t i = 0; i < s->paths.frames.n_entries; i++)
			wants[i] = below(2);
		assert_int_equal(sp_keys_edges(&s->paths, NULL, wants, &keys),
				 0);
		match(s, &keys, &rows, &n);
		for (size_t i = 0; i < n; i++) {
			const struct sp_key said =
				sp_keys_said(&keys, rows[i].key);
			const struct edge edge = {
				said.kind, word_of(s, said.of),
				said.frame == SP_KEY_NONE
					? N_NAMES
					: word_of(s, said.frame)};

			assert_true(wants[said.of]);
			assert_row(s, &rows[i], NULL, is_on_edge, &edge);
		}
		scene_free(s);
	}
}

/* ---- which rows are tests ---- */

static struct sp_match_row row_of(uint64_t old, uint64_t new, uint64_t size)
{
	struct sp_acc a = gate_samples(old, size, R);
	struct sp_acc b = gate_samples(new, size, R);
	struct sp_match_row row = {.old_samples = old, .new_samples = new};

	sp_runs_sampled(&row.old, &a, 1, false);
	sp_runs_sampled(&row.new, &b, 1, false);
	return row;
}

static size_t tested(const struct sp_match_row *rows, size_t n,
		     const struct sp_match_test *test, double *p)
{
	const struct sp_run_noise noise = {0};
	double threshold;
	size_t n_tested;

	assert_int_equal(
		sp_match_test(rows, n, test, &noise, p, &threshold, &n_tested),
		0);
	return n_tested;
}

/* Whether a row counts is a matter of all its samples, not of how they fell:
 * else to leave rows out would choose among the false ones. */
TEST(testable)
{
	static const double rates[] = {0.1, 0.05, 0.01, 0.001};
	static const size_t least[] = {4, 5, 8, 11};

	for (size_t k = 0; k < 4; k++) {
		const struct sp_match_test test = {.both_ways = true,
						   .rate = rates[k]};

		for (uint64_t n = 1; n <= 20; n++)
			for (uint64_t old = 0; old <= n; old++) {
				const struct sp_match_row row =
					row_of(old, n - old, 64);
				double p;
				const size_t counts =
					tested(&row, 1, &test, &p);

				if (counts != (n >= least[k]))
					fail_msg("%g: %d of %d samples: %zu",
						 rates[k], (int)old, (int)n,
						 counts);
				assert_true(counts || p == 1);
			}
	}
}

/* Few samples of large objects tell more than many of small ones. */
TEST(large_objects)
{
	const struct sp_match_test test = {.rate = 0.01};
	const struct sp_match_row large = row_of(0, 4, 6 * R);
	const struct sp_match_row small = row_of(0, 4, 64);
	double p;

	assert_int_equal(tested(&large, 1, &test, &p), 1);
	assert_true(p < 0.01);
	assert_int_equal(tested(&small, 1, &test, &p), 0);
}

/* What the allowance leaves no room for is no test. */
TEST(allowance)
{
	const struct sp_match_test test = {.allowance.amount = 100 * R,
					   .rate = 0.01};
	const struct sp_match_row rows[] = {row_of(30, 30, 64),
					    row_of(300, 300, 64)};
	double p[2];

	assert_int_equal(tested(rows, 2, &test, p), 1);
}

int main(void)
{
	sp_rng_init(&rng, 8, 0);
	return TEST_RUN(NULL, NULL);
}
