/* SPDX-License-Identifier: MIT */
/* The command line of fleet: whose option is whose, times, labels, and what is
 * refused with which words. */
#include "fleet/options.h"

#include <errno.h>

#include "support/test.h"

#define DAY_2026_11_23 1795392000ull

static struct sp_fleet_options options;
static struct sp_error err;

/* The words after "fleet", divided by blanks. */
static int parse(const char *line)
{
	static char text[512];
	static char *argv[32];
	static char name[] = "sampleprof";
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	argv[0] = name;
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	err.message[0] = '\0';
	return sp_fleet_options_parse(argc, argv, &options, &err);
}

/* What is left for the command is that. */
static void leaves(const char *line, enum sp_fleet_action action,
		   const char *want)
{
	char rest[512] = "";

	assert_int_equal(parse(line), 0);
	assert_int_equal(options.action, action);
	for (int i = 1; i < options.argc; i++)
		sprintf(rest + strlen(rest), "%s%s", i > 1 ? " " : "",
			options.argv[i]);
	assert_string_equal(rest, want);
	sp_fleet_options_done(&options);
}

static void refuses(const char *line, const char *why)
{
	assert_int_equal(parse(line), -EINVAL);
	if (!strstr(err.message, why))
		fail_msg("%s: %s, not %s", line, err.message, why);
	sp_fleet_options_done(&options);
}

TEST(whose_option)
{
	leaves("init", SP_FLEET_INIT, "");
	leaves("add a b --db sqlite:x", SP_FLEET_ADD, "a b");
	leaves("top --top 3 --label a=1 --json", SP_FLEET_PAGE,
	       "top --top 3 --json fleet");
	leaves("peek --db=sqlite:x REGEX", SP_FLEET_PAGE, "peek REGEX fleet");
	leaves("live --at 2s --host=h", SP_FLEET_LIVE,
	       "report --view=live --at 2s fleet");
	leaves("diff --base a=1 --json", SP_FLEET_DIFF, "--json fleet fleet");
	leaves("check --limit alloc_bytes=1M --base a=1", SP_FLEET_CHECK,
	       "--baseline=fleet --limit alloc_bytes=1M fleet");
	/* Not what only begins like one of ours. */
	leaves("top --labels x --dbx", SP_FLEET_PAGE,
	       "top --labels x --dbx fleet");
	leaves("add -- --db", SP_FLEET_ADD, "-- --db");
	/* The report's own, if it is one. */
	leaves("report --base old.sprof", SP_FLEET_PAGE,
	       "report --base old.sprof fleet");
}

static void assert_label(const struct sp_label *l, const char *key,
			 const char *value)
{
	assert_int_equal(l->key_bytes, strlen(key));
	assert_memory_equal(l->key, key, strlen(key));
	assert_int_equal(l->value_bytes, strlen(value));
	assert_memory_equal(l->value, value, strlen(value));
}

TEST(filters)
{
	assert_int_equal(parse("top --label a=1,b=2 --label=c=3 --host h "
			       "--from 2026-11-23 --to 2026-11-23T00:01"),
			 0);
	assert_int_equal(options.filter.n_labels, 3);
	assert_label(&options.filter.labels[0], "a", "1");
	assert_label(&options.filter.labels[1], "b", "2");
	assert_label(&options.filter.labels[2], "c", "3");
	assert_string_equal(options.filter.host, "h");
	assert_true(options.filter.from_unix_ns == DAY_2026_11_23 * 1000000000);
	assert_true(options.filter.to_unix_ns - options.filter.from_unix_ns ==
		    60000000000u);
	assert_string_equal(options.url, SP_FLEET_URL);
	sp_fleet_options_done(&options);
}

TEST(refused)
{
	refuses("", "fleet what?");
	refuses("tip", "did you mean fleet top?");
	refuses("top --db", "--db");
	refuses("top --label a", "--label takes");
	refuses("top --label a=1,b", "--label takes");
	refuses("top --label a=1,", "--label takes");
	refuses("top --host=", "--host takes");
	refuses("top --from soon", "--from takes");
	refuses("top --from 2026-11-23 --to 2026-11-23", "earlier");
	refuses("diff", "--base KEY=VALUE");
	refuses("check --limit alloc_bytes=1", "--base KEY=VALUE");
	refuses("add --label a=1 x", "cannot be used with");
}

TEST(times)
{
	static const char *const bad[] = {"",
					  "2026",
					  "2026-11",
					  "2026-11-32",
					  "1969-12-31",
					  "2026-11-23T",
					  "2026-11-23T24:61",
					  "2026-11-23 10:00",
					  "2026-11-23T10:00:00.5",
					  "9999-01-01",
					  "2026-11-23T10:00:00+01:00 and more"};
	uint64_t ns = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (sp_fleet_parse_time(bad[i], &ns) || ns != 7)
			fail_msg("%s should be refused", bad[i]);
	assert_true(sp_fleet_parse_time("1970-01-01", &ns) && ns == 0);
	assert_true(sp_fleet_parse_time("2026-11-23T00:00:01Z", &ns));
	assert_true(ns == (DAY_2026_11_23 + 1) * 1000000000);
}

TEST_MAIN(NULL, NULL)
