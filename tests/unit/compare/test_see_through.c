/* SPDX-License-Identifier: MIT */
/*
 * Runs whose paths begin at the program's own function: against a model that
 * looks at each path by itself, and the same from a baseline as from a profile.
 */
#include "base/rng.h"
#include "compare/baseline.h"
#include "support/gate_runs.h"
#include "support/memfile.h"
#include "support/test.h"

#define R     4096u
#define PATHS 300
#define DEPTH 5

static struct sp_error error;

/* Whose the names are. */
static const struct {
	const char *name;
	int role; /* 0 own, 1 a library's, 2 an allocator */
	/* What a script is, an interpreter, or else of an interpreter. */
	enum { NOTHING, SCRIPT, INTERPRETER, INSIDE } python;
} words[] = {
	{"f", 0, NOTHING},
	{"py::load", 0, SCRIPT},
	{"py::main", 0, SCRIPT},
	{"libpython3.13.so.1.0!_PyEval_EvalFrameDefault", 0, INTERPRETER},
	{"libpython3.13.so.1.0!PyList_New", 0, INSIDE},
	{"liba.so!g", 0, NOTHING},
	{"libc.so.6!strdup", 1, NOTHING},
	{"libc.so.6![unknown]", 1, NOTHING},
	{"std::vector<int, std::allocator<int> >::push_back(int&&)", 1,
	 NOTHING},
	{"zmalloc", 1, NOTHING},
	{"operator new(unsigned long)", 2, NOTHING},
};

#define N_WORDS (sizeof(words) / sizeof(words[0]))

/* Samples of paths, as text, and of what is left of them. */
struct model {
	char cut[PATHS][512];
	uint64_t samples[PATHS];
};

static void set_rules(struct sp_paths *paths, bool all_frames)
{
	const struct sp_see_through_options options = {.all_frames =
							       all_frames};

	assert_int_equal(
		sp_see_through_new(&options, &paths->see_through, &error), 0);
}

static void join(char *text, const size_t *at, size_t n)
{
	*text = '\0';
	for (size_t i = 0; i < n; i++) {
		strcat(text, i ? "<" : "");
		strcat(text, words[at[i]].name);
	}
}

/* The names have '<' and spaces in them, so that gate_run_add() is of no
 * use. */
static uint32_t add_path(struct sp_paths *paths, const size_t *at, size_t n)
{
	uint32_t frames[DEPTH], path;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			sp_intern_add(&paths->frames, words[at[i]].name,
				      strlen(words[at[i]].name), &frames[i]),
			0);
	assert_int_equal(sp_paths_add(paths, frames, n, &path), 0);
	return path;
}

static bool is_of_script(const size_t *at, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (words[at[i]].python == INTERPRETER &&
		    words[at[i + 1]].python == SCRIPT)
			return true;
	return false;
}

static size_t model_flat(const size_t *at, size_t n)
{
	const bool is_script = is_of_script(at, n);

	for (int role = 0; role <= 2; role++)
		for (size_t i = 0; i < n; i++) {
			const bool is_seen_through =
				is_script && words[at[i]].python >= INTERPRETER;

			if (words[at[i]].role + is_seen_through == role)
				return i;
		}
	return 0;
}

static struct sp_summary *random_run(struct sp_paths *paths, struct model *m,
				     struct sp_rng *rng)
{
	struct sp_summary *run = gate_run_new(R);
	struct sp_path_rows *rows = &run->rows[SP_VIEW_ALLOC];

	run->exact_alloc_objects = 1u << 20;
	rows->at = calloc(PATHS, sizeof(*rows->at));
	assert_non_null(rows->at);
	for (size_t k = 0; k < PATHS; k++) {
		const size_t n = 1 + sp_rng_next(rng) % DEPTH;
		size_t at[DEPTH], flat;

		for (size_t i = 0; i < n; i++)
			/* none follows itself: such are one */
			do
				at[i] = sp_rng_next(rng) % N_WORDS;
			while (i && at[i] == at[i - 1]);
		flat = model_flat(at, n);
		join(m->cut[k], at + flat, n - flat);
		m->samples[k] = 1 + sp_rng_next(rng) % 9;
		rows->at[rows->n++] = (struct sp_path_row){
			add_path(paths, at, n),
			gate_samples(m->samples[k], 64, R)};
		run->exact_alloc_bytes += m->samples[k] * R;
	}
	sp_path_rows_settle(rows);
	return run;
}

static void path_text(const struct sp_paths *paths, uint32_t path, char *text)
{
	*text = '\0';
	for (size_t d = 0; d < sp_paths_at(paths, path).n; d++) {
		strcat(text, d ? "<" : "");
		strcat(text,
		       sp_paths_name(paths, sp_paths_at(paths, path).frame[d]));
	}
}

static void assert_rows(const struct sp_paths *paths,
			const struct sp_path_rows *rows, const struct model *m)
{
	uint64_t sum = 0, expected = 0;
	char text[512];

	assert_true(rows->n > 10);
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t samples = 0;

		path_text(paths, rows->at[i].path, text);
		for (size_t k = 0; k < PATHS; k++)
			if (strcmp(m->cut[k], text) == 0)
				samples += m->samples[k];
		assert_int_equal(rows->at[i].acc.samples, samples);
		sum += samples;
	}
	for (size_t k = 0; k < PATHS; k++)
		expected += m->samples[k];
	assert_int_equal(sum, expected);
}

TEST(random_against_model)
{
	static struct model m;
	FREED_BY(sp_paths_done) struct sp_paths paths = {0};
	const struct sp_path_rows *whole;
	struct sp_summary *run;
	struct sp_rng rng;
	size_t n_whole;

	sp_rng_init(&rng, 20, 0);
	set_rules(&paths, false);
	run = random_run(&paths, &m, &rng);
	n_whole = run->rows[SP_VIEW_ALLOC].n;
	whole = sp_summary_whole(run, SP_VIEW_ALLOC, NULL);
	assert_ptr_equal(whole, &run->rows[SP_VIEW_ALLOC]);
	assert_int_equal(sp_summary_see_through(run, &paths), 0);
	assert_rows(&paths, &run->rows[SP_VIEW_ALLOC], &m);
	assert_true(run->rows[SP_VIEW_ALLOC].n < n_whole);
	whole = sp_summary_whole(run, SP_VIEW_ALLOC, NULL);
	assert_int_equal(whole->n, n_whole);
	sp_summary_free(run);
}

/* A baseline has all frames, and so it fits either way to look at a run. */
TEST(baseline)
{
	static struct model m;
	static struct memfile file;
	static char *text;
	static size_t size;
	FREED_BY(sp_paths_done) struct sp_paths paths = {0}, others = {0};
	struct sp_summary *run, **runs;
	struct sp_side side = {&run, 1};
	struct sp_rng rng;
	size_t n;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	sp_rng_init(&rng, 21, 0);
	set_rules(&paths, false);
	run = random_run(&paths, &m, &rng);
	assert_int_equal(sp_baseline_write(out, &side, &paths, &error), 0);
	fclose(out);
	assert_non_null(strstr(text, "[\"zmalloc\", \""));
	memfile_open(&file);
	memfile_write(&file, 0, text, size);
	set_rules(&others, false);
	assert_int_equal(
		sp_baseline_read(file.path, &others, &runs, &n, &error), 0);
	assert_int_equal(n, 1);
	assert_int_equal(runs[0]->rows[SP_VIEW_ALLOC].n,
			 run->rows[SP_VIEW_ALLOC].n);
	assert_int_equal(sp_summary_see_through(runs[0], &others), 0);
	assert_rows(&others, &runs[0]->rows[SP_VIEW_ALLOC], &m);
	sp_summary_free(runs[0]);
	free(runs);
	sp_summary_free(run);
	memfile_close(&file);
	free(text);
}

static void check_flat(struct sp_paths *paths, size_t expected,
		       const char *const *frames, size_t n)
{
	uint32_t numbers[DEPTH], path;
	size_t depth;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(sp_intern_add(&paths->frames, frames[i],
					       strlen(frames[i]), &numbers[i]),
				 0);
	assert_int_equal(sp_paths_add(paths, numbers, n, &path), 0);
	assert_int_equal(sp_paths_find_flat(paths, path, &depth), 0);
	assert_int_equal(depth, expected);
}

TEST(flat)
{
	const char *const own[] = {"zmalloc", "std::f()", "f", "main"};
	const char *const none[] = {"malloc", "zmalloc", "std::f()"};
	const char *const script[] = {"PyList_New", "_PyEval_EvalFrameDefault",
				      "py::load"};
	const char *const embedded[] = {
		"libpython3.so!PyList_New", "f",
		"libpython3.so!_PyEval_EvalFrameDefault", "py::load"};
	const char *const no_script[] = {"PyList_New",
					 "_PyEval_EvalFrameDefault", "main"};
	const char *const folded[] = {"zmalloc", "[other callers]"};
	struct sp_paths paths = {0};

	check_flat(&paths, 0, own, 4);
	set_rules(&paths, false);
	check_flat(&paths, 2, own, 4);
	check_flat(&paths, 1, none, 3);
	check_flat(&paths, 2, script, 3);
	check_flat(&paths, 1, embedded, 4);
	check_flat(&paths, 0, no_script, 3);
	/* nobody knows who they were */
	check_flat(&paths, 0, folded, 2);
	sp_paths_done(&paths);

	paths = (struct sp_paths){0};
	set_rules(&paths, true);
	check_flat(&paths, 0, own, 4);
	check_flat(&paths, 1, none, 3);
	check_flat(&paths, 0, script, 3);
	sp_paths_done(&paths);
}

/* What is beyond the number of paths keeps its own function. */
TEST(folded_baseline)
{
	static char *text;
	static size_t size;
	FREED_BY(sp_paths_done) struct sp_paths paths = {0};
	struct sp_summary *run = gate_run_new(R);
	struct sp_path_rows *rows = &run->rows[SP_VIEW_ALLOC];
	struct sp_side side = {&run, 1};
	FILE *out = open_memstream(&text, &size);
	uint32_t frames[4], path;

	assert_non_null(out);
	set_rules(&paths, false);
	rows->at = calloc(SP_BASELINE_PATHS + 5, sizeof(*rows->at));
	assert_non_null(rows->at);
	for (unsigned int i = 0; i < SP_BASELINE_PATHS + 5; i++) {
		const char *names[] = {"zmalloc", "f", "", "main"};
		char name[32];

		snprintf(name, sizeof(name), "caller%u", i);
		names[2] = name;
		for (size_t k = 0; k < 4; k++)
			assert_int_equal(sp_intern_add(&paths.frames, names[k],
						       strlen(names[k]),
						       &frames[k]),
					 0);
		assert_int_equal(sp_paths_add(&paths, frames, 4, &path), 0);
		rows->at[rows->n++] = (struct sp_path_row){
			path, gate_samples(1 + (i < SP_BASELINE_PATHS), 64, R)};
	}
	assert_int_equal(sp_baseline_write(out, &side, &paths, &error), 0);
	fclose(out);
	assert_non_null(
		strstr(text, "[\"zmalloc\", \"f\", \"[other callers]\"]"));
	free(text);
	sp_summary_free(run);
}

TEST_MAIN(NULL, NULL)
