/* SPDX-License-Identifier: MIT */
/* Which rows a diff shows, in which order; the writers, by their readers, are
 * in tests/programs/test_gate_diff.py. */
#include <math.h>

#include "compare/amount.h"
#include "compare/diff.h"
#include "support/close.h"
#include "support/gate_runs.h"
#include "support/test.h"

#define R 4096u

struct scene {
	struct sp_paths paths;
	struct sp_summary *old, *new;
	struct sp_pair pair;
	struct sp_diff *diff;
};

static void add(struct scene *s, const char *path, uint64_t old, uint64_t new)
{
	const struct sp_acc a = gate_samples(old, 64, R);
	const struct sp_acc b = gate_samples(new, 64, R);

	gate_run_add(s->old, &s->paths, SP_VIEW_ALLOC, path, &a);
	gate_run_add(s->new, &s->paths, SP_VIEW_ALLOC, path, &b);
}

static void scene_free(void *made)
{
	struct scene *s = made;

	sp_diff_free(s->diff);
	sp_summary_free(s->old);
	sp_summary_free(s->new);
	sp_paths_done(&s->paths);
	free(s);
}

static struct scene *scene_empty(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	at_test_end(scene_free, s);
	s->old = gate_run_new(R);
	s->new = gate_run_new(R);
	s->pair = (struct sp_pair){{&s->old, 1}, {&s->new, 1}, &s->paths};
	return s;
}

static struct scene *scene_new(void)
{
	struct scene *s = scene_empty();

	add(s, "read<load<main", 500, 500);
	add(s, "read<serve<main", 100, 400);
	add(s, "serve<main", 50, 50);
	add(s, "write<serve<main", 300, 150);
	add(s, "libz.so!inflate<read<load<main", 40, 45);
	add(s, "rare<main", 2, 1);
	return s;
}

static const struct sp_diff_table *make(struct scene *s,
					const struct sp_diff_plan *plan)
{
	struct sp_error err;

	sp_diff_free(s->diff);
	assert_int_equal(sp_diff_new(&s->pair, SP_VIEW_ALLOC, 0.95, true,
				     &s->diff, &err),
			 0);
	assert_int_equal(sp_diff_add(s->diff, &s->pair, plan), 0);
	assert_int_equal(s->diff->n_tables, 1);
	return &s->diff->tables[0];
}

/* "NAME:OLD/NEW NAME:OLD/NEW ...", "~" in front of what is not told, "?" of
 * what cannot be compared. */
static void assert_rows(const struct sp_diff_table *t, const char *wanted)
{
	char text[1024] = "";

	for (size_t i = 0; i < t->n; i++) {
		const struct sp_diff_row *r = &t->rows[i];

		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%*s%s%s:%d/%d", i ? " " : "", (int)r->depth, "",
			 !r->is_comparable ? "?"
			 : r->is_told      ? ""
					   : "~",
			 r->name, (int)r->old_samples, (int)r->new_samples);
	}
	assert_string_equal(text, wanted);
}

TEST(functions)
{
	struct scene *s = scene_new();
	struct sp_diff_plan plan = {.rows = SP_DIFF_FLAT};

	assert_rows(make(s, &plan), "read:600/900 write:300/150 "
				    "~libz.so!inflate:40/45 ~rare:2/1 "
				    "~serve:50/50");
	plan.order = SP_DIFF_BY_NAME;
	assert_rows(make(s, &plan), "~libz.so!inflate:40/45 ~rare:2/1 "
				    "read:600/900 ~serve:50/50 write:300/150");
	plan.order = SP_DIFF_BY_CHANGE;
	plan.share = 0.05; /* of the larger side's 1146 */
	assert_rows(make(s, &plan), "read:600/900 write:300/150");
	assert_int_equal(s->diff->tables[0].n_small, 3);
	plan = (struct sp_diff_plan){.rows = SP_DIFF_CUM,
				     .order = SP_DIFF_BY_NAME};
	assert_rows(make(s, &plan),
		    "~libz.so!inflate:40/45 ~load:540/545 main:992/1146 "
		    "~rare:2/1 read:640/945 serve:450/600 write:300/150");
}

/* What has a name, or a frame, on one side only. */
TEST(incomparable)
{
	struct scene *s = scene_empty();
	struct sp_diff_plan plan = {.rows = SP_DIFF_FLAT};

	add(s, "libz.so![unknown]<main", 500, 0);
	add(s, "libz.so!inflate<main", 0, 500);
	add(s, "work<main", 900, 0);
	add(s, "inner<work<main", 0, 900);
	add(s, "fresh<main", 0, 100);
	/* one for another: nothing can be inlined where nobody allocates */
	add(s, "a<of<main", 60, 0);
	add(s, "b<of<main", 50, 0);
	add(s, "c<of<main", 0, 40);
	assert_rows(make(s, &plan),
		    "fresh:0/100 a:60/0 b:50/0 c:0/40 "
		    "?inner:0/900 ?work:900/0 "
		    "?libz.so![unknown]:500/0 ?libz.so!inflate:0/500");
	assert_int_equal(s->diff->n_moved, 2);
	assert_int_equal(s->diff->caveats.names.n_mixed, 1);
	plan.rows = SP_DIFF_PATHS;
	assert_rows(make(s, &plan), "fresh < main:0/100 a < of < main:60/0 "
				    "b < of < main:50/0 c < of < main:0/40 "
				    "?inner < work < main:0/900 "
				    "?work < main:900/0 "
				    "?libz.so![unknown] < main:500/0 "
				    "?libz.so!inflate < main:0/500");
	plan.rows = SP_DIFF_TREE;
	assert_rows(make(s, &plan), "~main:1510/1540"
				    "  ?libz.so![unknown]:500/0"
				    "  ?libz.so!inflate:0/500"
				    "  fresh:0/100"
				    "  of:110/40"
				    "   a:60/0"
				    "   b:50/0"
				    "   c:0/40"
				    "  ~work:900/900"
				    "   ?inner:0/900"
				    "   ?itself:900/0");
	plan.rows = SP_DIFF_CUM;
	plan.order = SP_DIFF_BY_NAME;
	assert_rows(make(s, &plan),
		    "a:60/0 b:50/0 c:0/40 fresh:0/100 ?inner:0/900 "
		    "?libz.so![unknown]:500/0 "
		    "?libz.so!inflate:0/500 ~main:1510/1540 of:110/40 "
		    "~work:900/900");
}

TEST(tree)
{
	struct scene *s = scene_new();
	struct sp_diff_plan plan = {.rows = SP_DIFF_TREE};

	assert_rows(make(s, &plan), "main:992/1146"
				    "  serve:450/600"
				    "   read:100/400"
				    "   write:300/150"
				    "   ~itself:50/50"
				    "  ~load:540/545"
				    "   ~read:540/545"
				    "    ~libz.so!inflate:40/45"
				    "    ~itself:500/500"
				    "  ~rare:2/1");
	plan.share = 0.05;
	assert_rows(make(s, &plan), "main:992/1146"
				    "  serve:450/600"
				    "   read:100/400"
				    "   write:300/150"
				    "  ~load:540/545"
				    "   ~read:540/545");
	/* inflate and rare: what is "itself" is no place */
	assert_int_equal(s->diff->tables[0].n_small, 2);
}

TEST(edges)
{
	struct scene *s = scene_new();
	bool wants[16] = {0};
	const struct sp_diff_plan plan = {.rows = SP_DIFF_EDGES,
					  .wants = wants};
	const struct sp_diff_table *t;

	for (uint32_t i = 0; i < s->paths.frames.n_entries; i++) {
		const char *name = sp_paths_name(&s->paths, i);

		wants[i] = !strcmp(name, "read") || !strcmp(name, "main");
	}
	t = make(s, &plan);
	/* the function with the largest change first; callers, itself, callees
	 */
	assert_rows(t, "serve:100/400 ~load:540/545 read:640/945 "
		       "itself:600/900 ~libz.so!inflate:40/45 "
		       "[no caller]:992/1146 main:992/1146 serve:450/600 "
		       "~load:540/545 ~rare:2/1");
	assert_string_equal(t->rows[0].kind, "caller");
	assert_string_equal(t->rows[0].of, "read");
	assert_string_equal(t->rows[2].kind, "function");
	assert_string_equal(t->rows[3].kind, "callee");
	assert_string_equal(t->rows[9].of, "main");
}

/* No recursion: as deep as paths may be. */
TEST(deep_tree)
{
	const struct sp_diff_plan plan = {.rows = SP_DIFF_TREE};
	struct scene *s = scene_new();
	char text[512] = "";

	for (int i = 0; i < 60; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%sf%d", i ? "<" : "", i % 7);
	add(s, text, 30, 10);
	make(s, &plan);
	assert_int_equal(s->diff->tables[0].n, 70);
	assert_int_equal(s->diff->tables[0].rows[69].depth, 59);
	assert_string_equal(s->diff->tables[0].rows[69].name, "f0");
}

static const char *listed(size_t i)
{
	static const char *const list[] = {"write", "nothing", "read", NULL};

	return list[i];
}

TEST(listed)
{
	struct scene *s = scene_new();
	const struct sp_diff_plan plan = {.rows = SP_DIFF_FLAT,
					  .order = SP_DIFF_AS_LISTED,
					  .name = listed};

	assert_rows(make(s, &plan), "write:300/150 read:600/900");
}

TEST(exact)
{
	struct scene *s = scene_new();
	const struct sp_diff_plan plan = {.rows = SP_DIFF_FLAT};
	const double values[] = {5, 5, 7};
	struct sp_diff_table *t;
	struct sp_runs old, new;

	make(s, &plan);
	t = sp_diff_add_exact(s->diff, "sizes", "size", true, 2);
	assert_non_null(t);
	for (int i = 0; i < 2; i++) {
		sp_runs_exact(&old, &values[i], 1);
		sp_runs_exact(&new, &values[i + 1], 1);
		assert_int_equal(sp_diff_row_set(s->diff, &t->rows[i], "64 B",
						 &old, &new),
				 0);
		assert_int_equal(t->rows[i].is_told, i);
	}
	assert_true(t->rows[0].change.value == 0);
	assert_true(t->rows[1].change.lo == 2);
}

static const struct sp_diff_total *total_of(struct scene *s, const char *name,
					    double level)
{
	struct sp_error err;

	sp_diff_free(s->diff);
	assert_int_equal(sp_diff_new(&s->pair, SP_VIEW_ALLOC, level, true,
				     &s->diff, &err),
			 0);
	for (size_t i = 0; i < s->diff->n_totals; i++)
		if (strcmp(s->diff->totals[i].name, name) == 0)
			return &s->diff->totals[i];
	fail_msg("no total %s", name);
	return NULL;
}

/* Limits that were taken at the level of the diff are used as they are; those
 * of a baseline, which has another one, are moved. */
/* The totals of a process that was killed are limits, though its file has all
 * that was recorded. */
TEST(totals_that_are_limits)
{
	for (int i = 0; i < 3; i++) {
		struct scene *s = scene_new();
		const struct sp_diff_total *t;

		s->old->exact_alloc_bytes = s->new->exact_alloc_bytes = 1000;
		s->old->is_least = i == 1;
		s->old->why_incomplete = i == 1 ? "killed" : NULL;
		s->new->is_least = i == 2;
		s->new->why_incomplete = i == 2 ? "killed" : NULL;
		make(s, &(struct sp_diff_plan){.rows = SP_DIFF_FLAT});
		t = &s->diff->totals[0];
		assert_string_equal(t->name, "alloc_bytes");
		assert_int_equal(t->is_exact, !i);
		assert_int_equal(isinf(t->change.hi) != 0, i > 0);
		assert_int_equal(isinf(t->old.hi) != 0, i == 1);
		assert_int_equal(isinf(t->new.hi) != 0, i == 2);
	}
}

TEST(levels)
{
	const double scale = 1.959963984540054 / 2.5758293035489004;
	struct scene *s = scene_new();
	const struct sp_diff_total *t;

	s->old->bytes[SP_VIEW_PEAK] = (struct sp_interval){1000, 900, 1200};
	s->new->bytes[SP_VIEW_PEAK] = (struct sp_interval){2000, 1500, 2100};
	s->old->level = s->new->level = 0.95;
	t = total_of(s, "peak_bytes", 0.95);
	assert_true(t->old.lo == 900 && t->old.hi == 1200);
	assert_true(t->new.lo == 1500 && t->new.hi == 2100);
	assert_close(t->change.lo, 1000 - hypot(500, 200), 1e-12);
	assert_close(t->change.hi, 1000 + hypot(100, 100), 1e-12);
	s->old->level = 0.99;
	t = total_of(s, "peak_bytes", 0.95);
	assert_close(t->old.lo, 1000 - scale * 100, 1e-9);
	assert_close(t->old.hi, 1000 + scale * 200, 1e-9);
	assert_true(t->new.lo == 1500 && t->new.hi == 2100);
}

/* What a neighbour may have is no matter of chance: no level makes it less. */
TEST(phase_slack)
{
	static const double levels[] = {0.9, 0.95, 0.99, 0.999};
	struct scene *s = scene_new();
	struct sp_phase_sum *phase = sp_summary_add_phase(s->new, "load");
	struct sp_runs runs;

	phase->exact_alloc_bytes = 1000;
	phase->slack_bytes = 30;
	assert_int_equal(sp_amount_sum(&s->pair.new, &s->paths,
				       SP_LIMIT_ALLOC_BYTES, "load", NULL,
				       &runs),
			 0);
	for (size_t i = 0; i < 4; i++) {
		const struct sp_interval mean = sp_runs_mean(&runs, levels[i]);

		assert_true(mean.lo == 970 && mean.hi == 1030);
	}
	assert_true(runs.noise == 0);
	/* the other side has no such phase, and nothing in it */
	assert_int_equal(sp_amount_sum(&s->pair.old, &s->paths,
				       SP_LIMIT_ALLOC_BYTES, "load", NULL,
				       &runs),
			 0);
	assert_true(runs.mean == 0);
}

TEST_MAIN(NULL, NULL)
