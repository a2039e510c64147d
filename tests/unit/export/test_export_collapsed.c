/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks: order, merged lines, hostile names, samples without a
 * stack, views.
 */
#include "export/format.h"
#include "support/export_fixture.h"
#include "support/test.h"

static int setup(void **state)
{
	*state = export_fixture_of_names(";a;b; 12\n\x1b[2J\xff;", "-x");
	return 0;
}

static void assert_text(struct fixture *x, bool of_objects, const char *want)
{
	const struct sp_export_options options = {.of_objects = of_objects};
	FREED char *text =
		export_text(x, sp_export_collapsed_write, &options, NULL);

	assert_string_equal(text, want);
}

TEST_OF(struct fixture *x, order, setup, fixture_teardown)
{
	fixture_stack(x, (size_t[]){NAMES_F, NAMES_MAIN}, 2, 3, 100);
	fixture_stack(x, (size_t[]){NAMES_INLINED, NAMES_F, NAMES_MAIN}, 3, 2,
		      1000);
	assert_text(x, false, "main;f;h;g 2000\nmain;f 300\n");
	assert_text(x, true, "main;f;h;g 2\nmain;f 3\n");
}

/* What has the same names is one line. */
TEST_OF(struct fixture *x, merges, setup, fixture_teardown)
{
	fixture_stack(x, (size_t[]){NAMES_F, NAMES_MAIN}, 2, 3, 100);
	fixture_stack(x, (size_t[]){NAMES_F}, 1, 1, 50);
	fixture_stack(x, (size_t[]){NAMES_F, NAMES_MAIN_AGAIN}, 2, 3, 7);
	assert_text(x, false, "main;f 321\nf 50\n");
}

TEST_OF(struct fixture *x, hostile, setup, fixture_teardown)
{
	fixture_stack(x, (size_t[]){NAMES_HOSTILE, NAMES_MAIN}, 2, 1, 9);
	assert_text(x, false, "main;:a:b: 12\\x0a\\x1b[2J\\xff: 9\n");
}

TEST_OF(struct fixture *x, no_stack, setup, fixture_teardown)
{
	assert_text(x, false, "");
	fixture_stack(x, NULL, 0, 1, 9);
	assert_text(x, false, "[no stack] 9\n");
}

TEST_OF(struct fixture *x, view, setup, fixture_teardown)
{
	x->profile.has_frees = true;
	fixture_stack(x, (size_t[]){NAMES_F}, 1, 1, 50);
	x->next.freed_ns = 100;
	fixture_stack(x, (size_t[]){NAMES_MAIN}, 1, 1, 70);
	x->question.has_view = true;
	x->question.view = SP_VIEW_LIVE;
	assert_text(x, false, "f 50\n");
}

TEST_MAIN(NULL, NULL)
