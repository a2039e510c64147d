/* SPDX-License-Identifier: MIT */
/* Which options the next command needs too. */
#include "cli/options.h"
#include "support/test.h"

static const struct sp_options_given *given(const struct sp_options *o,
					    size_t i, const char *name)
{
	assert_true(i < o->n_given);
	assert_string_equal(o->given[i].argument->name, name);
	return &o->given[i];
}

/* Each once, as it was given last; none that says what to show. */
TEST(given)
{
	static const char *words[] = {
		"report",  "--top", "3",           "--focus", "a",
		"-view",   "live",  "--unit=auto", "--cum",   "--debuginfod",
		"--focus", "b",     "x.sprof",     NULL};
	const int n = sizeof(words) / sizeof(*words) - 1;
	struct sp_options o;
	struct sp_error err;

	assert_int_equal(
		sp_options_parse(n, (char **)(uintptr_t)words, &o, &err), 0);
	assert_int_equal(o.n_given, 3);
	assert_string_equal(given(&o, 0, "focus")->value, "b");
	assert_string_equal(given(&o, 1, "view")->value, "live");
	assert_null(given(&o, 2, "debuginfod")->value);
}

/* There is room for all of them. */
TEST(room)
{
	static const struct sp_argument_group *const groups[] = {
		&sp_options_question, &sp_options_filter, &sp_options_method,
		&sp_options_symbols};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		for (const struct sp_argument *a = groups[i]->option; a->name;
		     a++)
			n++;
	assert_in_range(n, 15, SP_OPTIONS_GIVEN_MAX);
}

TEST_MAIN(NULL, NULL)
