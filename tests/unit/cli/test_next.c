/* SPDX-License-Identifier: MIT */
/* What is proposed: the next command, and names near a mistyped one. */
#include <errno.h>

#include "cli/near_function.h"
#include "cli/next.h"
#include "support/report_fixture.h"
#include "support/test.h"
#include "text/lines.h"

#define R  (512 * 1024)
#define MS 1000000ull

static const struct sp_argument focus = {.name = "focus"};
static const struct sp_argument fetch = {.name = "debuginfod"};
static const struct sp_argument view = {.name = "view"};

static struct sp_options options = {
	.program = "sampleprof-report",
	.given = {{&focus, "a b"}, {&fetch, NULL}, {&view, "alloc"}},
	.n_given = 3,
};

static char *next_text(const char *path, const char *arguments, const char *why)
{
	struct sp_part part = {.path = path};
	const struct sp_profile profile = {
		.path = path, .parts = &part, .n_parts = 1};
	const struct sp_next next = {arguments, why};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	sp_next_print(out, &options, &profile, &next, 1);
	fclose(out);
	return text;
}

static void prints(const char *path, const char *arguments, const char *why,
		   const char *want)
{
	FREED char *got = next_text(path, arguments, why);

	assert_string_equal(got, want);
}

/* As the shell takes it, with the options that choose the same samples. */
TEST(command)
{
	sp_lines_set_terminal(200);
	prints("-my file", "--stacks 5", "",
	       "next: sampleprof-report --stacks 5 --focus 'a b' --debuginfod "
	       "--view alloc ./'-my file'\n");
	prints("x.sprof", "tree", "who calls",
	       "next: sampleprof-report tree --focus 'a b' --debuginfod --view "
	       "alloc x.sprof  # who calls\n");
	/* Another view takes the place of the one that was asked for. */
	prints("x.sprof", "--view live", "",
	       "next: sampleprof-report --view live --focus 'a b' --debuginfod "
	       "x.sprof\n");
	/* The page has all views and all stacks, in a file. */
	prints("/d/x.sprof.zst", "export html", "",
	       "next: sampleprof-report export html --debuginfod "
	       "/d/x.sprof.zst -o x.html\n");
	options.program = "/bin/sampleprof";
	prints("x", "--view live", "",
	       "next: /bin/sampleprof report --view live --focus 'a b' "
	       "--debuginfod x\n");
	options.program = "sampleprof-report";
	sp_lines_set_terminal(0);
}

/* A line that is too long goes on as in a shell, and never inside of quotes. */
TEST(long_command)
{
	sp_lines_set_terminal(50);
	prints("app.4711.sprof", "tree", "who calls",
	       "next: sampleprof-report tree --focus 'a b' \\\n"
	       "        --debuginfod --view alloc app.4711.sprof\n");
	sp_lines_set_terminal(40);
	prints("/a/very/long/path/that/does/not/fit/x.sprof", "tree", "",
	       "next: sampleprof-report tree --focus \\\n"
	       "        'a b' --debuginfod --view \\\n"
	       "        alloc \\\n"
	       "        /a/very/long/path/that/does/not/fit/x.sprof\n");
	sp_lines_set_terminal(0);
}

enum { MAIN, LEAK, PUSH };

/* What propose_with() found behind the first. */
static struct sp_next second;

/* The first, after a look at the others; `n_more` of them are in front of those
 * that are always there. */
static struct sp_next propose_with(struct fixture *x, size_t n_more)
{
	struct sp_next next[SP_NEXT_MAX];
	const struct sp_options asked = {.program = "sampleprof-report"};
	struct sp_aggregate *a = fixture_aggregate(x);
	size_t n = sp_next_after_report(&asked, a->analysis, next);

	assert_int_equal(n, 3 + n_more);
	assert_string_equal(next[n - 2].arguments, "tree");
	assert_string_equal(next[n - 1].arguments, "export html");
	second = next[1];
	return next[0];
}

static struct sp_next propose(struct fixture *x)
{
	return propose_with(x, 0);
}

static struct fixture *fixture(void)
{
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_symbol(x, LEAK, "shop::load_orders", "a.c", 1);
	fixture_symbol(x, PUSH, "shop::queue::push", "a.c", 1);
	x->profile.exact_alloc_bytes = 100ull * R;
	return x;
}

TEST(what_fits)
{
	struct fixture *x = fixture();

	fixture_stack(x, (size_t[]){LEAK, MAIN}, 2, 100, 64);
	assert_string_equal(propose(x).arguments, "--stacks 5");
	/* All of it is alive at the end. */
	x->profile.has_frees = true;
	assert_string_equal(propose(x).arguments, "--view live");
	fixture_free(x);

	/* None of it is: all at a time, or one after the other. */
	x = fixture();
	x->profile.has_frees = true;
	x->next.born_ns = 100 * MS;
	x->next.freed_ns = 200 * MS;
	fixture_stack(x, (size_t[]){LEAK, MAIN}, 2, 100, 64);
	assert_string_equal(propose(x).arguments, "--view peak");
	x->profile.exact_alloc_bytes = 10000ull * R;
	assert_string_equal(propose_with(x, 1).arguments, "--view temporary");
	assert_string_equal(second.arguments, "--view peak");
	x->question.has_view = true;
	x->question.view = SP_VIEW_PEAK;
	assert_string_equal(propose(x).arguments, "--stacks 5");
	fixture_free(x);

	/* No peak that is worth a look; nor if its samples stay. */
	x = fixture();
	x->profile.has_frees = true;
	x->next.freed_ns = 200 * MS;
	fixture_stack(x, (size_t[]){LEAK, MAIN}, 2, 2, 64);
	x->profile.exact_alloc_bytes = 10000ull * R;
	assert_string_equal(propose(x).arguments, "--view temporary");
	fixture_free(x);

	x = fixture();
	x->profile.has_frees = true;
	fixture_stack(x, (size_t[]){LEAK, MAIN}, 2, 2, 64);
	x->profile.exact_alloc_bytes = 10000ull * R;
	assert_string_equal(propose(x).arguments, "--view temporary");
	x->profile.exact_alloc_bytes = 2ull * R;
	assert_string_equal(propose(x).arguments, "--view live");
	fixture_free(x);
}

TEST(near_function)
{
	struct fixture *x = fixture();
	struct sp_aggregate *a;
	struct sp_error err;

	fixture_stack(x, (size_t[]){LEAK, MAIN}, 2, 10, 64);
	fixture_stack(x, (size_t[]){PUSH, MAIN}, 2, 10, 64);
	a = fixture_aggregate(x);
	assert_int_equal(
		sp_near_function_error(a, "--focus", "^Load_order$", &err),
		-ENOENT);
	assert_string_equal(err.message,
			    "no function of this view matches --focus "
			    "^Load_order$: did you mean shop::load_orders?");
	assert_int_equal(sp_near_function_error(a, "", "shpo", &err), -ENOENT);
	assert_string_equal(err.message, "no function of this view matches "
					 "shpo: did you mean "
					 "shop::load_orders, "
					 "shop::queue::push?");
	sp_near_function_error(a, "", "nothing_like_it", &err);
	assert_string_equal(err.message, "no function of this view matches "
					 "nothing_like_it");
	sp_near_function_error(a, "", ".*", &err);
	assert_string_equal(err.message, "no function of this view matches .*");
	fixture_free(x);
}

TEST_MAIN(NULL, NULL)
