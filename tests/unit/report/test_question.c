/* SPDX-License-Identifier: MIT */
/*
 * Questions to samples: moments, times, threads, sizes, and views that need
 * frees.
 */
#include <errno.h>

#include "report/question.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define MS 1000000ull

/* The fixture's run takes 3250 ms. */
static int setup(void **state)
{
	struct fixture *x = fixture_new(4096);
	struct sp_thread_info *t = x->threads;

	x->profile.has_frees = true;
	x->profile.n_thread_infos = 2;
	t[0] = (struct sp_thread_info){.index = 1, .tid = 700, .name = "main"};
	t[1] = (struct sp_thread_info){.index = 2, .tid = 701};
	/* All bytes of the name are taken. */
	memcpy(t[1].name, "0123456789abcdef", sizeof(t[1].name));
	*state = x;
	return 0;
}

static struct sp_selection select_good(struct fixture *x)
{
	struct sp_selection s;
	struct sp_error err = {0};
	int r = sp_question_select(&x->question, &x->profile, SP_VIEW_ALLOC, &s,
				   &err);

	if (r < 0)
		fail_msg("refused: %s", err.message);
	return s;
}

/* Refused with that code and those words; nothing is touched. */
static void refused(struct fixture *x, int code, const char *words)
{
	struct sp_selection s, before;
	struct sp_error err = {0};

	memset(&s, 0x5a, sizeof(s));
	before = s;
	assert_int_equal(sp_question_select(&x->question, &x->profile,
					    SP_VIEW_ALLOC, &s, &err),
			 code);
	assert_memory_equal(&s, &before, sizeof(s));
	if (!strstr(err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void set(struct sp_moment *moment, const char *text)
{
	assert_true(sp_moment_parse(text, moment));
}

static void view(struct fixture *x, enum sp_view chosen)
{
	x->question.has_view = true;
	x->question.view = chosen;
}

TEST(moments)
{
	static const char *const bad[] = {
		"",     "%",      "5",    "end ", "END", "-5%",
		"101%", "100.1%", "1.5s", "5%s",  "%5",  "5%%",
		"0x5%", "1e1%",   "one",  "s",    "1s%", "000000000000000001%",
	};
	struct sp_moment m = {.kind = SP_MOMENT_NONE, .ns = 77};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (sp_moment_parse(bad[i], &m))
			fail_msg("\"%s\" is a moment", bad[i]);
		assert_int_equal(m.kind, SP_MOMENT_NONE);
		assert_int_equal(m.ns, 77);
	}
	assert_true(sp_moment_parse("end", &m));
	assert_int_equal(m.kind, SP_MOMENT_END);
	assert_true(sp_moment_parse("1m30s", &m));
	assert_int_equal(m.kind, SP_MOMENT_TIME);
	assert_true(m.ns == 90000 * MS);
	assert_true(sp_moment_parse("12.5%", &m));
	assert_int_equal(m.kind, SP_MOMENT_SHARE);
	assert_int_equal(m.thousandths, 12500);
	assert_true(sp_moment_parse("0%", &m));
	assert_true(sp_moment_parse("100%", &m));
	assert_int_equal(m.thousandths, 100000);
}

TEST_BETWEEN(everything, setup, fixture_teardown)
{
	struct sp_selection s = select_good(*test_state);

	assert_int_equal(s.view, SP_VIEW_ALLOC);
	assert_int_equal(s.from_ns, 0);
	assert_true(s.to_ns == SP_NEVER && s.at_ns == SP_NEVER);
	assert_true(s.max_size_bytes == UINT64_MAX);
	assert_int_equal(s.thread, 0);
	assert_false(sp_selection_is_subset(&s));
}

TEST_OF(struct fixture *x, times, setup, fixture_teardown)
{
	struct sp_selection s;

	view(x, SP_VIEW_LIVE);
	set(&x->question.at, "50%");
	assert_true(select_good(x).at_ns == 1625 * MS);
	set(&x->question.at, "3250ms");
	assert_true(select_good(x).at_ns == 3250 * MS);
	set(&x->question.at, "end");
	assert_true(select_good(x).at_ns == SP_NEVER);
	set(&x->question.at, "100%");
	assert_true(select_good(x).at_ns == SP_NEVER);
	set(&x->question.at, "0%");
	assert_true(select_good(x).at_ns == 0);
	set(&x->question.at, "3251ms");
	refused(x, -ERANGE,
		"--at 3.2 s lies after the end: the profile covers "
		"3.2 s; give a time");
	x->profile.end = SP_PROFILE_END_RUNNING;
	refused(x, -ERANGE, "covers 3.2 s so far");

	set(&x->question.at, "end");
	x->question.from = (struct sp_moment){SP_MOMENT_LAST, .ns = 250 * MS};
	assert_true(select_good(x).from_ns == 3000 * MS);
	x->question.from.ns = 9999 * MS;
	assert_true(select_good(x).from_ns == 0);
	set(&x->question.from, "1s");
	set(&x->question.to, "75%");
	s = select_good(x);
	assert_true(s.from_ns == 1000 * MS);
	assert_true(s.to_ns == 2437500000);
	assert_true(sp_selection_is_subset(&s));
	/* Later than all: no limit. */
	set(&x->question.to, "1h");
	assert_true(select_good(x).to_ns == SP_NEVER);
	set(&x->question.to, "1s");
	refused(x, -ERANGE, "nothing can be between --from");
	set(&x->question.to, "end");
	set(&x->question.from, "4s");
	refused(x, -ERANGE, "--from 4.0 s lies after the end");
}

TEST_OF(struct fixture *x, tail, setup, fixture_teardown)
{
	view(x, SP_VIEW_LEAKS);
	assert_true(select_good(x).tail_ns == 325 * MS);
	set(&x->question.tail, "50%");
	assert_true(select_good(x).tail_ns == 1625 * MS);
	set(&x->question.tail, "2s");
	assert_true(select_good(x).tail_ns == 2000 * MS);
	set(&x->question.at, "1s");
	refused(x, -ERANGE, "no object can be older than the tail of 2.0 s");
	set(&x->question.tail, "1s");
	assert_true(select_good(x).at_ns == 1000 * MS);
}

TEST_OF(struct fixture *x, within, setup, fixture_teardown)
{
	view(x, SP_VIEW_TEMPORARY);
	assert_int_equal(select_good(x).within_bytes, 0);
	assert_true(select_good(x).within_ns == SP_NEVER);
	x->question.within_ns = 5;
	assert_true(select_good(x).within_bytes == SP_NEVER);
	assert_int_equal(select_good(x).within_ns, 5);
}

TEST_OF(struct fixture *x, threads, setup, fixture_teardown)
{
	x->question.thread = "2";
	assert_int_equal(select_good(x).thread, 2);
	x->question.thread = "700";
	assert_int_equal(select_good(x).thread, 1);
	x->question.thread = "main";
	assert_int_equal(select_good(x).thread, 1);
	x->question.thread = "0123456789abcdef";
	assert_int_equal(select_good(x).thread, 2);
	x->question.thread = "0123456789abcdefg";
	refused(x, -ENOENT, "no thread 0123456789abcdefg: there are 1, 2;");
	x->question.thread = "0";
	refused(x, -ENOENT, "no thread 0:");
	strcpy(x->threads[1].name, "main");
	x->question.thread = "main";
	refused(x, -ENOENT,
		"2 threads are called main: give the number of one "
		"(1, 2)");
	/* A name that is a number gives way to the number. */
	strcpy(x->threads[1].name, "1");
	x->question.thread = "1";
	assert_int_equal(select_good(x).thread, 1);
	x->profile.n_thread_infos = 0;
	refused(x, -ENOENT, "there are none");
}

TEST_OF(struct fixture *x, sizes, setup, fixture_teardown)
{
	struct sp_selection s;

	x->question.min_size_bytes = 10;
	x->question.max_size_bytes = 20;
	s = select_good(x);
	assert_int_equal(s.min_size_bytes, 10);
	assert_int_equal(s.max_size_bytes, 20);
	assert_true(sp_selection_is_subset(&s));
}

TEST_OF(struct fixture *x, views_that_need_frees, setup, fixture_teardown)
{
	x->profile.has_frees = false;
	for (int v = SP_VIEW_LIVE; v <= SP_VIEW_TEMPORARY; v++) {
		char words[64];

		view(x, (enum sp_view)v);
		snprintf(words, sizeof(words),
			 "--view %s needs frees, and this profile has none",
			 sp_view_name((enum sp_view)v));
		refused(x, -ENODATA, words);
		refused(x, -ENODATA, "record again with SAMPLEPROF_FREES=on");
	}
	view(x, SP_VIEW_ALLOC);
	select_good(x);
}

TEST(view_names)
{
	enum sp_view v = SP_VIEW_PEAK;

	assert_false(sp_view_parse("", &v));
	assert_false(sp_view_parse("Live", &v));
	assert_int_equal(v, SP_VIEW_PEAK);
	for (int i = 0; i <= SP_VIEW_TEMPORARY; i++) {
		assert_true(sp_view_parse(sp_view_name((enum sp_view)i), &v));
		assert_int_equal(v, i);
	}
}

TEST_MAIN(NULL, NULL)
