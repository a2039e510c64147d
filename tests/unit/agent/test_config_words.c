/* SPDX-License-Identifier: MIT */
/* Settings without a value are as if they were not set, and what is refused is
 * named as it may be written. */
#include "agent/process/config.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define SP_KNOB_SIZE(name, field, def, min, max, help)         #name,
#define SP_KNOB_NUMBER(name, field, def, min, max, unit, help) #name,
#define SP_KNOB_RATE(name, field, help)                        #name,
#define SP_KNOB_TEXT(name, field, def, max, help)              #name,
#define SP_KNOB_FRACTION(name, field, help)                    #name,
#define SP_KNOB_LABELS(name, field, help)                      #name,
#define SP_KNOB_CHOICE(name, field, def, choices, help)        #name,
#include "agent/process/config.def"
};

/* Parses SAMPLEPROF_<name>=<value> and one more variable, or NULL. */
static bool parse(const char *name, const char *value, char *more,
		  struct sp_config *c, struct sp_config_error *err)
{
	char variable[64];
	char *const environment[] = {variable, more, NULL};

	memset(c, 0, sizeof(*c));
	snprintf(variable, sizeof(variable), "SAMPLEPROF_%s=%s", name, value);
	return sp_config_parse(environment, c, err);
}

/* Some can only set an empty value where they want none. */
TEST(an_empty_value_is_the_default)
{
	char dotnet[] = "SAMPLEPROF_LAW=dotnet", all[] = "SAMPLEPROF_PERIOD=1";
	struct sp_config want = {0}, c;
	struct sp_config_error err;

	assert_true(sp_config_parse(NULL, &want, &err));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(parse(names[i], "", NULL, &c, &err));
		assert_null(err.name);
		assert_null(err.unknown);
		assert_memory_equal(&c, &want, sizeof(c));
	}
	/* Nor is it a setting on which another default depends. */
	assert_true(parse("PERIOD", "", dotnet, &c, &err));
	assert_true(c.period_bytes == SP_CONFIG_DOTNET_PERIOD);
	assert_true(parse("MAX_FILE", "", all, &c, &err));
	assert_false(c.has_max_file);
	assert_true(c.file_bytes == SP_CONFIG_ALL_MAX);
}

TEST(what_is_expected)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
		{"PERIOD", "a size from 1 to 1T"},
		{"MAX_FILE", "a size from 1M to 64G"},
		{"NEAR_LIMIT", "a number of percent from 0 to 100"},
		{"SEED", "a number from 0 to 18446744073709551615"},
		{"RATE", "off, or a rate from 1/s to 1000000/s"},
		{"FRACTION", "a share of more than 0%, up to 100%"},
		{"LOG", "one of normal|quiet"},
	};
	struct sp_config c;
	struct sp_config_error err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(parse(cases[i].name, "x", NULL, &c, &err));
		assert_string_equal(err.expected, cases[i].expected);
	}
}

static void find_size(void *arg, const char *line)
{
	*(bool *)arg |= !strncmp(line,
				 "  SAMPLEPROF_MAX_FILE=64M  "
				 "(a size from 1M to 64G) ",
				 51);
}

/* A size is shown as it may be written, also where it is the default. */
TEST(help)
{
	bool is_there = false;

	sp_config_help(find_size, &is_there);
	assert_true(is_there);
}

TEST_MAIN(NULL, NULL)
