/* SPDX-License-Identifier: MIT */
/*
 * Baselines: what is written is read back, the same runs give the same text,
 * and changed files are refused.
 */
#include <errno.h>

#include "compare/baseline.h"
#include "support/close.h"
#include "support/gate_runs.h"
#include "support/memfile.h"
#include "support/test.h"
#include "support/text_checks.h"

#define R 4096u

static struct sp_error error;

static struct sp_summary *run_of(struct sp_paths *paths, unsigned int n)
{
	struct sp_summary *run = gate_run_new(R);
	const struct sp_acc some = gate_samples(n, 100, R);
	const struct sp_acc large = gate_samples(2, 1u << 20, 1);
	const struct sp_acc huge = gate_samples(1, 1ull << 53, 1);
	struct sp_phase_sum *phase;

	run->exact_alloc_bytes = (1ull << 53) + 9000 * n;
	run->exact_alloc_objects = 90 * n + 3;
	phase = sp_summary_add_phase(run, "read \"x\"");
	assert_non_null(phase);
	phase->exact_alloc_bytes = 4200 * n;
	phase->exact_alloc_objects = 42 * n;
	gate_phase_add(phase, paths, "b<main", &some);
	run->bytes[SP_VIEW_PEAK] = (struct sp_interval){1000.5, 900, 1200};
	gate_run_add(run, paths, SP_VIEW_ALLOC, "b<main", &some);
	gate_run_add(run, paths, SP_VIEW_ALLOC, "a<libz.so.1!\"x\\<main",
		     &some);
	gate_run_add(run, paths, SP_VIEW_ALLOC, "huge<main", &huge);
	gate_run_add(run, paths, SP_VIEW_LIVE, "a<main", &large);
	return run;
}

static char *written(const struct sp_side *side, struct sp_paths *paths)
{
	/* Static, since gcc 12 takes the text itself for a local. */
	static char *text;
	static size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(sp_baseline_write(out, side, paths, &error), 0);
	fclose(out);
	return text;
}

/* The text as a file, read. */
static int read_text(const char *text, struct sp_paths *paths,
		     struct sp_summary ***ret_runs, size_t *ret_n)
{
	static struct memfile file; /* the error may name it */
	int r;

	memfile_open(&file);
	memfile_write(&file, 0, text, strlen(text));
	r = sp_baseline_read(file.path, paths, ret_runs, ret_n, &error);
	memfile_close(&file);
	return r;
}

static void free_runs(struct sp_summary **runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sp_summary_free(runs[i]);
}

TEST(round_trip)
{
	FREED_BY(sp_paths_done) struct sp_paths paths = {0}, again = {0};
	struct sp_summary *runs[] = {run_of(&paths, 5), run_of(&paths, 0),
				     run_of(&paths, 900)};
	struct sp_side side = {runs, 3}, back;
	char *text = written(&side, &paths), *second;

	assert_has(text, "\"alloc_bytes\": 9007199262840992");
	/* sorted by names, no run left out */
	assert_true(strstr(text, "[\"a\", \"libz.so.1!\\\"x\\\\\"") <
		    strstr(text, "[\"b\", \"main\"]"));
	assert_int_equal(read_text(text, &again, &back.run, &back.n), 0);
	assert_int_equal(back.n, 3);
	assert_int_equal(back.run[1]->rows[SP_VIEW_ALLOC].n, 1);
	assert_int_equal(back.run[2]->rows[SP_VIEW_ALLOC].n, 3);
	assert_int_equal(back.run[2]->exact_alloc_objects, 81003);
	assert_int_equal(sp_summary_phase(back.run[2], "read \"x\"")
				 ->exact_alloc_objects,
			 37800);
	assert_close(back.run[0]->bytes[SP_VIEW_PEAK].hi, 1200, 1e-12);
	assert_close(back.run[2]->rows[SP_VIEW_ALLOC].at[0].acc.k2,
		     runs[2]->rows[SP_VIEW_ALLOC].at[0].acc.k2, 1e-6);
	assert_int_equal(back.run[0]->rows[SP_VIEW_LIVE].at[0].acc.sure_bytes,
			 2u << 20);
	assert_true(sp_summary_phase(back.run[0], "read \"x\"")->has_rows);
	assert_int_equal(
		sp_summary_rows(back.run[2], SP_VIEW_ALLOC, "read \"x\"")->n,
		1);
	second = written(&back, &again);
	assert_string_equal(second, text);
	free(second);
	free(text);
	free_runs(runs, 3);
	free_runs(back.run, back.n);
	free(back.run);
}

/* Rows of the peak are measured, or known. */
TEST(peak_rows)
{
	static const struct sp_law_used law;
	static const uint64_t sizes[] = {1, 3, 100, 3 * R};

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		FREED_BY(sp_paths_done) struct sp_paths paths = {0};
		FREED_BY(sp_paths_done) struct sp_paths again = {0};
		struct sp_summary *run = run_of(&paths, 9);
		struct sp_side side = {&run, 1}, back;
		struct sp_acc acc;
		const struct sp_acc *read;
		char *text;

		sp_acc_init(&acc, R);
		sp_acc_add_measured(&acc, &law, sizes[i / 2], 5, 3, R,
				    i % 2 == 0);
		gate_run_add(run, &paths, SP_VIEW_PEAK, "a<main", &acc);
		text = written(&side, &paths);
		assert_int_equal(read_text(text, &again, &back.run, &back.n),
				 0);
		read = &back.run[0]->rows[SP_VIEW_PEAK].at[0].acc;
		assert_int_equal(read->samples, 5);
		assert_close(read->est_bytes, acc.est_bytes, 1e-6);
		assert_close(read->est_count, acc.est_count, 1e-6);
		assert_close(read->k2, acc.k2, 1e-6);
		free(text);
		free_runs(back.run, back.n);
		free(back.run);
		sp_summary_free(run);
	}
}

/* A class of which one object is all, which was sampled: by the totals it
 * counts as one, with the variance of a sixteenth of a period. */
TEST(rows_held_against_totals)
{
	static const struct sp_law_used law;
	FREED_BY(sp_paths_done) struct sp_paths paths = {0}, again = {0};
	struct sp_summary *run = run_of(&paths, 9);
	struct sp_side side = {&run, 1}, back;
	struct sp_acc one;
	char *text;

	sp_acc_init(&one, R);
	sp_acc_add(&one, &law, R / 16, 3, R);
	one.c2 /= one.est_count;
	one.c3 /= one.est_count;
	one.est_count = 1;
	assert_true(one.c2 > 4);
	gate_run_add(run, &paths, SP_VIEW_TEMPORARY, "a<main", &one);
	text = written(&side, &paths);
	if (read_text(text, &again, &back.run, &back.n) < 0)
		fail_msg("%s", error.message);
	assert_close(back.run[0]->rows[SP_VIEW_TEMPORARY].at[0].acc.c2, one.c2,
		     1e-6);
	free(text);
	free_runs(back.run, back.n);
	free(back.run);
	sp_summary_free(run);
}

/* Of very many paths those with fewest bytes lose their callers, no bytes. */
TEST(folding)
{
	FREED_BY(sp_paths_done) struct sp_paths paths = {0}, again = {0};
	struct sp_summary *run = gate_run_new(R);
	struct sp_side side = {&run, 1}, back;
	const struct sp_acc few = gate_samples(1, 100, R);
	const struct sp_acc many = gate_samples(2, 100, R);
	double bytes = 0, expected = 0;
	char *text, name[64];

	for (unsigned int i = 0; i < SP_BASELINE_PATHS + 100; i++) {
		snprintf(name, sizeof(name), "f%u<g%u<main", i % 3, i);
		gate_run_add(run, &paths, SP_VIEW_ALLOC, name,
			     i < 100 ? &few : &many);
		expected += i < 100 ? few.est_bytes : many.est_bytes;
	}
	run->exact_alloc_bytes = (uint64_t)expected;
	run->exact_alloc_objects = run->exact_alloc_bytes / 100;
	text = written(&side, &paths);
	assert_has(text, "[\"f0\", \"[other callers]\"]");
	assert_has_not(text, "\"g50\"");
	assert_has(text, "\"g150\"");
	assert_int_equal(read_text(text, &again, &back.run, &back.n), 0);
	assert_int_equal(back.run[0]->rows[SP_VIEW_ALLOC].n,
			 SP_BASELINE_PATHS + 3);
	for (size_t i = 0; i < back.run[0]->rows[SP_VIEW_ALLOC].n; i++)
		bytes += back.run[0]->rows[SP_VIEW_ALLOC].at[i].acc.est_bytes;
	assert_close(bytes, expected, 1e-6);
	free(text);
	free_runs(back.run, back.n);
	free(back.run);
	sp_summary_free(run);
}

static const char good[] =
	"{\"schema\": \"sampleprof-baseline\", \"version\": 1, "
	"\"program\": \"app\", \"period_bytes\": 4096, "
	"\"law\": \"exponential\", \"level\": 0.99, \"later\": [1], "
	"\"runs\": [{\"alloc_bytes\": 500, \"alloc_objects\": 1}], "
	"\"views\": {\"alloc\": [{\"path\": [\"f\"], "
	"\"runs\": [[1, 100]]}]}}";

/* `good` with its first `part` replaced. */
static char *changed(const char *part, const char *by)
{
	const char *at = strstr(good, part);
	char *text;

	assert_non_null(at);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - good), good, by,
			     at + strlen(part)) > 0);
	return text;
}

TEST(hand_made)
{
	FREED_BY(sp_paths_done) struct sp_paths paths = {0};
	struct sp_side back;

	assert_int_equal(read_text(good, &paths, &back.run, &back.n), 0);
	assert_false(back.run[0]->has_frees);
	assert_false(back.run[0]->has_rows[SP_VIEW_LIVE]);
	free_runs(back.run, back.n);
	free(back.run);
}

#define NOTHING "{\"value\": 0, \"lo\": 0, \"hi\": 0}"

static const struct {
	const char *part, *by, *message;
} cases[] = {
	{"sampleprof-baseline", "other", "this is no baseline"},
	{"{", "[", "line 1: "},
	{"\"version\": 1", "\"version\": 2",
	 "a baseline of version 2: this program knows 1"},
	{"\"version\": 1", "\"version\": \"1\"", "\"version\" is no"},
	{"\"version\": 1", "\"version\": 0", "\"version\" is no"},
	{"4096", "0", "no sampling period"},
	{"4096", "-5", "\"period_bytes\" is not an integer"},
	{"4096", "9e99", "\"period_bytes\" is not an integer"},
	{"4096", "4000000000000000", "no sampling period"},
	{"\"app\"", "7", "\"program\" is not"},
	{"\"app\"", "\"a\\u0000b\"", "line 1: "},
	{"exponential", "normal", "\"law\" is none"},
	{"0.99", "1", "\"level\" is none of"},
	{"0.99", "\"x\"", "\"level\" is none of"},
	{"0.99", "0.98", "\"level\" is none of"},
	{"\"alloc_bytes\": 500", "\"recording\": 7, \"alloc_bytes\": 500",
	 "\"recording\" is not"},
	{"\"alloc_bytes\": 500",
	 "\"recording\": \"12345678 abcdef0\", \"alloc_bytes\": 500",
	 "\"recording\" is not"},
	{"\"alloc_objects\": 1",
	 "\"alloc_objects\": 1, \"peak_bytes\": {\"value\": 9, \"lo\": 10, "
	 "\"hi\": 11}",
	 "\"peak_bytes\": its value is not"},
	{"\"alloc_objects\": 1", "\"alloc_objects\": 501",
	 "\"alloc_objects\" is more than"},
	{"\"alloc_objects\": 1", "\"alloc_objects\": 0",
	 "views.alloc does not add up"},
	{"\"alloc_bytes\": 500", "\"alloc_bytes\": 99",
	 "views.alloc does not add up"},
	{"[1, 100]", "[1, 100, 9e9, 1, 1, 1, 40, 1, 1]",
	 "views.alloc does not add up"},
	/* Twice what the samples stand for, and twenty periods, and a byte. */
	{"\"alloc_bytes\": 500", "\"alloc_bytes\": 82121",
	 "views.alloc does not add up"},
	/* The same of live bytes: the lower limit is 20 periods and a byte. */
	{"\"alloc_objects\": 1}], \"views\": {",
	 "\"alloc_objects\": 1, \"peak_bytes\": " NOTHING
	 ", \"temporary_bytes\": " NOTHING
	 ", \"live_bytes\": {\"value\": 90000, \"lo\": 81921, "
	 "\"hi\": 99999}}], \"views\": {\"peak\": [], "
	 "\"temporary\": [], \"live\": [], ",
	 "views.live does not add up: it has about 0 bytes of at least"},
	{"[1, 100]", "[1, 100, 200, 1e9, 1, 1, 40, 1, 1]", "are no sums"},
	{"\"alloc_objects\": 1",
	 "\"alloc_objects\": 1, \"phases\": {\"a\": {\"alloc_bytes\": 501, "
	 "\"alloc_objects\": 1, \"slack_bytes\": 0}}",
	 "phases.a allocated more"},
	{"{\"path\": [\"f\"], ",
	 "{\"path\": [\"f\"], \"runs\": [[1, 100]]}, {\"path\": [\"f\"], ",
	 "views.alloc has a path twice: f"},
	{"{\"alloc_bytes\": 500, \"alloc_objects\": 1}", "",
	 "\"runs\" are not 1 to"},
	{"\"alloc_bytes\": 500", "\"alloc_bytes\": -5",
	 "\"alloc_bytes\" is not"},
	{"\"alloc_bytes\": 500", "\"alloc_bytes\": 5, \"alloc_bytes\": 5",
	 "line 1: duplicate"},
	{"\"alloc_objects\": 1", "\"peak_bytes\": 3, \"alloc_objects\": 1",
	 "\"peak_bytes\" has no"},
	{"\"alloc_objects\": 1", "\"alloc_objects\": 1, \"phases\": []",
	 "\"phases\" are not"},
	{"\"alloc_objects\": 1",
	 "\"alloc_objects\": 1, \"phases\": {\"a\": {}}",
	 "\"alloc_bytes\" is not"},
	{"\"alloc\": [", "\"other\": [", "views.alloc is missing"},
	{"\"alloc\": [{", "\"alloc\": [7, {", "views.alloc[0]: \"path\""},
	{"[\"f\"]", "[]", "views.alloc[0]: \"path\" is not 1"},
	{"[\"f\"]", "[7]", "views.alloc[0].path[0] is no name"},
	{"[[1, 100]]", "[[1, 100], null]",
	 "views.alloc[0]: \"runs\" is not as long"},
	{"[1, 100]", "[1]", "views.alloc[0].runs[0] are no sums"},
	{"[1, 100]", "[0, 100]", "are no sums"},
	{"[1, 100]", "[200, 100]", "are no sums"},
	{"[1, 100]", "[1, 100, 4096, 1, 1, 1, 40, 1]", "are no sums"},
	{"[1, 100]", "[1, 100, -1, 1, 1, 1, 40, 1, 1]", "are no sums"},
	{"[1, 100]", "[1, 100, 99, 1, 1, 1, 40, 1, 1]", "are no sums"},
	{"[1, 100]", "[1, 100, 1e300, 1, 1, 1, 40, 1, 1]", "are no sums"},
	{"\"views\"", "\"phases\": 3, \"views\"", "\"phases\" are not"},
	{"\"views\"", "\"phases\": {\"a\": 3}, \"views\"",
	 "phases.a is not a list"},
	{"\"views\"",
	 "\"phases\": {\"a\": [{\"path\": [\"f\"], \"runs\": [[1, 9]]}]}, "
	 "\"views\"",
	 "phases.a[0].runs[0] are no sums"},
};

TEST(refusals)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FREED char *text = changed(cases[i].part, cases[i].by);
		FREED_BY(sp_paths_done) struct sp_paths paths = {0};
		struct sp_side back;

		assert_int_equal(read_text(text, &paths, &back.run, &back.n),
				 -EINVAL);
		if (!strstr(error.message, cases[i].message))
			fail_msg("%s: \"%s\" expected, not \"%s\"", text,
				 cases[i].message, error.message);
	}
}

/* Cut anywhere, or with any byte changed: an answer, and nothing leaks. */
TEST(damage)
{
	static const char bytes[] = "\"{}[]:,09-\\x\xff";
	char text[sizeof(good)];

	for (size_t at = 0; at + 1 < sizeof(good); at++)
		for (size_t k = 0; k < sizeof(bytes); k++) {
			FREED_BY(sp_paths_done) struct sp_paths paths = {0};
			struct sp_side back;

			memcpy(text, good, sizeof(good));
			text[at] = bytes[k]; /* the last one cuts */
			if (read_text(text, &paths, &back.run, &back.n) == 0) {
				free_runs(back.run, back.n);
				free(back.run);
			} else {
				assert_true(error.message[0]);
			}
		}
}

TEST_MAIN(NULL, NULL)
