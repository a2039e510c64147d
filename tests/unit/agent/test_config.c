/* SPDX-License-Identifier: MIT */
/* Every knob of config.def: what it accepts, refuses, says and stores. */
#include <inttypes.h>

#include "agent/process/config.h"
#include "base/parse.h"
#include "base/rng.h"
#include "support/test.h"

/* A second reading of config.def, made for the tests. */
enum kind { SIZE, NUMBER, RATE, FRACTION, TEXT, LABELS, CHOICE };

struct knob {
	enum kind kind;
	const char *name;
	size_t field;
	uint64_t def, min, max;
	const char *text;
	const char *help;
};

#define AT(field) offsetof(struct sp_config, field)

static const struct knob knobs[] = {
#define SP_KNOB_SIZE(name, field, def, min, max, help)                         \
	{SIZE, #name, AT(field), def, min, max, NULL, help},
#define SP_KNOB_NUMBER(name, field, def, min, max, unit, help)                 \
	{NUMBER, #name, AT(field), def, min, max, unit, help},
#define SP_KNOB_RATE(name, field, help)                                        \
	{RATE, #name, AT(field), 0, 0, SP_PARSE_RATE_MAX, "off", help},
#define SP_KNOB_TEXT(name, field, def, max, help)                              \
	{TEXT, #name, AT(field), 0, 1, max, def, help},
#define SP_KNOB_FRACTION(name, field, help)                                    \
	{FRACTION, #name, AT(field), 1000000, 0, 0, "100%", help},
#define SP_KNOB_LABELS(name, field, help)                                      \
	{LABELS, #name, AT(field), 0, 0, 0, "", help},
#define SP_KNOB_CHOICE(name, field, def, choices, help)                        \
	{CHOICE, #name, AT(field), def, 0, 0, choices, help},
#include "agent/process/config.def"
};

#define KNOBS (sizeof(knobs) / sizeof(knobs[0]))

static uint64_t number_of(const struct sp_config *c, const struct knob *k)
{
	uint64_t v;

	memcpy(&v, (const char *)c + k->field, sizeof(v));
	return v;
}

static unsigned int choice_of(const struct sp_config *c, const struct knob *k)
{
	unsigned int v;

	memcpy(&v, (const char *)c + k->field, sizeof(v));
	return v;
}

static const char *text_of(const struct sp_config *c, const struct knob *k)
{
	return (const char *)c + k->field;
}

static void assert_default(const struct sp_config *c, const struct knob *k)
{
	if (k->kind == TEXT || k->kind == LABELS)
		assert_string_equal(text_of(c, k), k->text);
	else if (k->kind == CHOICE)
		assert_int_equal(choice_of(c, k), k->def);
	else
		assert_true(number_of(c, k) == k->def);
}

/* sp_config_parse takes an environment as execve does: without const. */
static bool parse(const char *const *environment, struct sp_config *c,
		  struct sp_config_error *err)
{
	char *copy[KNOBS + 2] = {0};

	for (size_t i = 0; environment[i]; i++) {
		assert_true(i < KNOBS + 1);
		memcpy(&copy[i], &environment[i], sizeof(copy[i]));
	}
	return sp_config_parse(copy, c, err);
}

/* Parse with the one variable SAMPLEPROF_<name>=<value>. */
static bool parse_one(const struct knob *k, const char *value,
		      struct sp_config *c, struct sp_config_error *err)
{
	static char variable[2048];
	const char *const environment[] = {"PATH=/bin", variable, NULL};

	snprintf(variable, sizeof(variable), "SAMPLEPROF_%s=%s", k->name,
		 value);
	return parse(environment, c, err);
}

static void accepts_number(const struct knob *k, const char *text,
			   uint64_t want)
{
	struct sp_config c;
	struct sp_config_error err;

	if (!parse_one(k, text, &c, &err) || err.name || err.unknown ||
	    number_of(&c, k) != want)
		fail_msg("%s=%s should be %" PRIu64, k->name, text, want);
	for (size_t i = 0; i < KNOBS; i++)
		if (&knobs[i] != k)
			assert_default(&c, &knobs[i]);
}

static void refuses(const struct knob *k, const char *text)
{
	struct sp_config c;
	struct sp_config_error err;

	if (parse_one(k, text, &c, &err))
		fail_msg("%s=%s should be refused", k->name, text);
	assert_string_equal(err.name, k->name);
	assert_string_equal(strchr(err.variable, '=') + 1, text);
	assert_true(strlen(err.expected) > 0);
	assert_null(err.unknown);
	for (size_t i = 0; i < KNOBS; i++)
		assert_default(&c, &knobs[i]);
}

static void check_number(const struct knob *k)
{
	static const char *const garbage[] = {" ",  "abc", "-1",  "+1",
					      "1x", "1 ",  "1.5", "0x"};
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, k->min);
	accepts_number(k, text, k->min);
	snprintf(text, sizeof(text), "%" PRIu64, k->max);
	accepts_number(k, text, k->max);
	if (k->min) {
		snprintf(text, sizeof(text), "%" PRIu64, k->min - 1);
		refuses(k, text);
	}
	if (k->max < UINT64_MAX) {
		snprintf(text, sizeof(text), "%" PRIu64, k->max + 1);
		refuses(k, text);
	}
	refuses(k, "18446744073709551616");
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		refuses(k, garbage[i]);
	if (k->kind == SIZE)
		accepts_number(k, "2M", 2 << 20);
	else
		refuses(k, "2M");
}

static void check_rate(const struct knob *k)
{
	static const char *const bad[] = {
		" ",    "0/s",    "500",       "500/",  "500/m",   "/s",
		"-1/s", "500/s ", "1000001/s", "0x1/s", "offline", "0"};

	accepts_number(k, "off", 0);
	accepts_number(k, "1/s", 1);
	accepts_number(k, "500/s", 500);
	accepts_number(k, "1000000/s", k->max);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(k, bad[i]);
}

static void check_text(const struct knob *k)
{
	struct sp_config c;
	struct sp_config_error err;
	char text[1200];

	memset(text, 'x', sizeof(text));
	text[k->max + 1] = '\0';
	refuses(k, text);
	text[k->max] = '\0';
	assert_true(parse_one(k, text, &c, &err));
	assert_string_equal(text_of(&c, k), text);
	assert_true(parse_one(k, "=", &c, &err));
	assert_string_equal(text_of(&c, k), "=");
}

static void check_fraction(const struct knob *k)
{
	static const char *const bad[] = {" ", "5", "%", "0%", "100.0001%"};

	accepts_number(k, "100%", 1000000);
	accepts_number(k, "5%", 50000);
	accepts_number(k, "33.3333%", 333333);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(k, bad[i]);
}

/* What is wrong with labels is kept, and they are none: the process is recorded
 * all the same. */
static void check_labels(const struct knob *k)
{
	static const char *const bad[] = {"a", "a=", "=b", "a=\"\"", "a=1,a=2"};
	struct sp_config c;
	struct sp_config_error err;

	assert_true(parse_one(k, "service=a,env=b", &c, &err));
	assert_string_equal(text_of(&c, k), "service=a,env=b");
	assert_true(!c.labels_refused && parse_one(k, "", &c, &err));
	assert_null(c.labels_refused);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(parse_one(k, bad[i], &c, &err));
		assert_non_null(c.labels_refused);
		assert_default(&c, k);
	}
}

static void check_choice(const struct knob *k)
{
	struct sp_config c;
	struct sp_config_error err;
	char choices[64], bad[80];
	unsigned int n = 0;

	snprintf(choices, sizeof(choices), "%s", k->text);
	for (char *at = strtok(choices, "|"); at; at = strtok(NULL, "|")) {
		assert_true(parse_one(k, at, &c, &err));
		assert_int_equal(choice_of(&c, k), n++);
		snprintf(bad, sizeof(bad), "%sx", at);
		refuses(k, bad);
		snprintf(bad, sizeof(bad), "%.*s", (int)strlen(at) - 1, at);
		if (bad[0])
			refuses(k, bad);
	}
	assert_true(n >= 2);
	refuses(k, k->text);
	refuses(k, "|");
	refuses(k, "garbage");
}

TEST(knobs)
{
	for (size_t i = 0; i < KNOBS; i++) {
		if (knobs[i].kind == TEXT)
			check_text(&knobs[i]);
		else if (knobs[i].kind == CHOICE)
			check_choice(&knobs[i]);
		else if (knobs[i].kind == RATE)
			check_rate(&knobs[i]);
		else if (knobs[i].kind == FRACTION)
			check_fraction(&knobs[i]);
		else if (knobs[i].kind == LABELS)
			check_labels(&knobs[i]);
		else
			check_number(&knobs[i]);
	}
}

TEST(nothing_set)
{
	const char *const environment[] = {"SAMPLEPROF=1",
					   "sampleprof_period=3",
					   "XSAMPLEPROF_PERIOD=3",
					   "SAMPLEPROF",
					   "=",
					   "",
					   NULL};
	struct sp_config c;
	struct sp_config_error err;

	for (int with = 0; with < 2; with++) {
		memset(&c, 0xaa, sizeof(c));
		if (with)
			assert_true(parse(environment, &c, &err));
		else
			assert_true(sp_config_parse(NULL, &c, &err));
		assert_null(err.name);
		assert_null(err.unknown);
		for (size_t i = 0; i < KNOBS; i++)
			assert_default(&c, &knobs[i]);
	}
}

/* A misspelt name is said, but is no error; the first one is named. */
TEST(unknown)
{
	const char *const environment[] = {
		"SAMPLEPROF_PERIOD=8", "SAMPLEPROF_PERIODS=1",
		"SAMPLEPROF_DEPTH", "SAMPLEPROF_=", NULL};
	struct sp_config c;
	struct sp_config_error err;

	assert_true(parse(environment, &c, &err));
	assert_string_equal(err.unknown, "SAMPLEPROF_PERIODS=1");
	assert_true(c.period_bytes == 8);
	/* A name without a value sets nothing. */
	assert_true(parse(environment + 2, &c, &err));
	assert_string_equal(err.unknown, "SAMPLEPROF_DEPTH");
	assert_true(c.depth == 512);
}

/* The first bad value is told; the others are still read, so that the demand
 * for silence holds wherever it stands. */
TEST(first_error)
{
	const char *const environment[] = {"SAMPLEPROF_DEPTH=0",
					   "SAMPLEPROF_PERIOD=x",
					   "SAMPLEPROF_LOG=quiet", NULL};
	struct sp_config c;
	struct sp_config_error err;

	assert_false(parse(environment, &c, &err));
	assert_string_equal(err.name, "DEPTH");
	assert_string_equal(err.variable, "SAMPLEPROF_DEPTH=0");
	assert_string_equal(err.expected, "a number of frames from 1 to 1000");
	assert_int_equal(c.log, SP_CONFIG_LOG_QUIET);
	assert_true(c.period_bytes == 512 * 1024);
}

/* A program may write over its environment, as PostgreSQL does. */
TEST(environment_is_not_kept)
{
	char out[] = "SAMPLEPROF_OUT=a.sprof", run[] = "SAMPLEPROF_RUN=7-ab";
	char *const environment[] = {out, run, NULL};
	struct sp_config_error err;
	struct sp_config c;

	assert_true(sp_config_parse(environment, &c, &err));
	memset(out, 'x', sizeof(out) - 1);
	memset(run, 0, sizeof(run));
	assert_string_equal(c.out, "a.sprof");
	assert_string_equal(c.run, "7-ab");
}

/* The last of two settings holds. */
TEST(repeated)
{
	const char *const environment[] = {"SAMPLEPROF_DEPTH=3",
					   "SAMPLEPROF_DEPTH=4", NULL};
	struct sp_config c;
	struct sp_config_error err;

	assert_true(parse(environment, &c, &err));
	assert_true(c.depth == 4);
}

/* What describe says, as variables for the parser. */
struct described {
	char text[KNOBS][1200];
	size_t n;
};

static void collect(void *arg, const char *key, const char *value)
{
	struct described *d = arg;
	char *name = d->text[d->n] + strlen("SAMPLEPROF_");

	assert_true(d->n < KNOBS);
	assert_int_equal(strncmp(key, "setting.", 8), 0);
	snprintf(d->text[d->n], sizeof(d->text[0]), "SAMPLEPROF_%s=%s", key + 8,
		 value);
	for (; *name && *name != '='; name++) {
		assert_false(*name >= 'A' && *name <= 'Z');
		if (*name >= 'a' && *name <= 'z')
			*name -= 'a' - 'A';
	}
	d->n++;
}

static void check_round_trip(const struct sp_config *c)
{
	static struct described d;
	const char *environment[KNOBS + 1] = {0};
	struct sp_config back;
	struct sp_config_error err;

	memset(&d, 0, sizeof(d));
	sp_config_describe(c, collect, &d);
	assert_int_equal(d.n, KNOBS);
	for (size_t i = 0; i < KNOBS; i++)
		environment[i] = d.text[i];
	assert_true(parse(environment, &back, &err));
	assert_null(err.unknown);
	for (size_t i = 0; i < KNOBS; i++) {
		const struct knob *k = &knobs[i];

		if (k->kind == TEXT || k->kind == LABELS)
			assert_string_equal(text_of(&back, k), text_of(c, k));
		else if (k->kind == CHOICE)
			assert_int_equal(choice_of(&back, k), choice_of(c, k));
		else
			assert_true(number_of(&back, k) == number_of(c, k));
	}
}

TEST(describe)
{
	struct sp_config c;
	struct sp_config_error err;
	struct sp_rng rng;

	assert_true(sp_config_parse(NULL, &c, &err));
	check_round_trip(&c);
	sp_rng_init(&rng, 8, 1);
	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < KNOBS; i++) {
			const struct knob *k = &knobs[i];
			uint64_t v = sp_rng_next(&rng);
			unsigned int choice = v & 1;
			void *field = (char *)&c + k->field;

			if (k->kind == TEXT)
				strcpy(field, "a b=%c");
			else if (k->kind == LABELS)
				strcpy(field, "a=1,b=2");
			else if (k->kind == FRACTION)
				memcpy(field, &(uint64_t){1 + v % 1000000},
				       sizeof(v));
			else if (k->kind == CHOICE)
				memcpy(field, &choice, sizeof(choice));
			else if (k->max - k->min == UINT64_MAX)
				memcpy(field, &v, sizeof(v));
			else
				memcpy(field,
				       &(uint64_t){k->min +
						   v % (k->max - k->min + 1)},
				       sizeof(v));
		}
		check_round_trip(&c);
	}
}

struct lines {
	char text[KNOBS + 1][512];
	size_t n;
};

static void collect_line(void *arg, const char *line)
{
	struct lines *l = arg;

	assert_true(l->n <= KNOBS);
	snprintf(l->text[l->n++], sizeof(l->text[0]), "%s", line);
}

/* One whole line per knob: name, default, limits, and the help to its end. */
TEST(help)
{
	static struct lines l;

	sp_config_help(collect_line, &l);
	assert_int_equal(l.n, KNOBS);
	for (size_t i = 0; i < KNOBS; i++) {
		const struct knob *k = &knobs[i];
		const char *line = l.text[i];
		size_t n = strlen(line), m = strlen(k->help);
		char want[64];

		snprintf(want, sizeof(want), "  SAMPLEPROF_%s=", k->name);
		assert_int_equal(strncmp(line, want, strlen(want)), 0);
		assert_true(n > m);
		assert_string_equal(line + n - m, k->help);
		if (k->kind == TEXT || k->kind == CHOICE) {
			assert_non_null(strstr(line, k->text));
			continue;
		}
		if (k->kind == LABELS || k->kind == FRACTION)
			continue;
		if (k->kind == RATE) {
			assert_non_null(strstr(line,
					       "=off  (off, or a rate "
					       "from 1/s to 1000000/s) "));
			continue;
		}
		if (k->kind == SIZE) {
			assert_non_null(strstr(line, "  (a size from 1"));
			continue;
		}
		snprintf(want, sizeof(want),
			 "=%" PRIu64 "  (a number%s from %" PRIu64
			 " to %" PRIu64 ") ",
			 k->def, k->text, k->min, k->max);
		assert_non_null(strstr(line, want));
	}
}

/* The period of the .NET law is .NET's unless one is given, in any order. */
TEST(law)
{
	static const struct {
		const char *const environment[3];
		uint64_t period;
		unsigned int law;
	} cases[] = {
		{{"SAMPLEPROF_LAW=dotnet"}, 102400, SP_CONFIG_LAW_DOTNET},
		{{"SAMPLEPROF_LAW=exponential"}, 512 * 1024, 0},
		{{"SAMPLEPROF_LAW=dotnet", "SAMPLEPROF_PERIOD=512K"},
		 512 * 1024,
		 SP_CONFIG_LAW_DOTNET},
		{{"SAMPLEPROF_PERIOD=7", "SAMPLEPROF_LAW=dotnet"},
		 7,
		 SP_CONFIG_LAW_DOTNET},
		{{"SAMPLEPROF_PERIOD=7"}, 7, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sp_config c;
		struct sp_config_error err;

		assert_true(parse(cases[i].environment, &c, &err));
		assert_int_equal(c.period_bytes, cases[i].period);
		assert_int_equal(c.law, cases[i].law);
	}
}

/* What the names of choices in the program stand for. */
TEST(choices)
{
	static const char *const off[] = {
		"SAMPLEPROF_FREES=off", "SAMPLEPROF_RSS=off",
		"SAMPLEPROF_LOG=quiet", "SAMPLEPROF_UNWIND=fp", NULL};
	static const char *const none[] = {NULL};
	static const char *const peer[] = {"SAMPLEPROF_UNWIND=libunwind", NULL};
	struct sp_config c;
	struct sp_config_error err;

	assert_true(parse(off, &c, &err));
	assert_int_equal(c.frees, SP_CONFIG_FREES_OFF);
	assert_int_equal(c.rss, SP_CONFIG_RSS_OFF);
	assert_int_equal(c.log, SP_CONFIG_LOG_QUIET);
	assert_int_equal(c.unwind, SP_CONFIG_UNWIND_FP);
	assert_true(parse(none, &c, &err));
	assert_int_not_equal(c.unwind, SP_CONFIG_UNWIND_FP);
	assert_int_not_equal(c.unwind, SP_CONFIG_UNWIND_PEER);
	assert_true(parse(peer, &c, &err));
	assert_int_equal(c.unwind, SP_CONFIG_UNWIND_PEER);
	assert_true(parse(none, &c, &err));
	assert_int_not_equal(c.frees, SP_CONFIG_FREES_OFF);
	assert_int_not_equal(c.rss, SP_CONFIG_RSS_OFF);
}

/* At period 1 from the start on the file keeps all, and may be large. */
TEST(records_all)
{
#define GIB (1ull << 30)
	static const struct {
		const char *environment[4];
		bool records_all;
		uint64_t file_bytes;
	} cases[] = {
		{{NULL}, false, 64 << 20},
		{{"SAMPLEPROF_PERIOD=1"}, true, 64 * GIB},
		{{"SAMPLEPROF_PERIOD=2"}, false, 64 << 20},
		{{"SAMPLEPROF_PERIOD=1", "SAMPLEPROF_MAX_FILE=4G"},
		 true,
		 4 * GIB},
		{{"SAMPLEPROF_PERIOD=1", "SAMPLEPROF_MAX_FILE=64G"},
		 true,
		 64 * GIB},
		{{"SAMPLEPROF_PERIOD=1", "SAMPLEPROF_MAX_FILE=4095M"},
		 false,
		 4095ull << 20},
		{{"SAMPLEPROF_PERIOD=2", "SAMPLEPROF_MAX_FILE=64G"},
		 false,
		 4 * GIB},
		{{"SAMPLEPROF_PERIOD=1", "SAMPLEPROF_START=off"},
		 false,
		 64 << 20},
		{{"SAMPLEPROF_PERIOD=1", "SAMPLEPROF_FREES=off"},
		 false,
		 64 << 20},
		{{"SAMPLEPROF_PERIOD=1", "SAMPLEPROF_RATE=500/s"},
		 false,
		 64 << 20},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sp_config c;
		struct sp_config_error err;

		assert_true(parse(cases[i].environment, &c, &err));
		assert_int_equal(c.records_all, cases[i].records_all);
		assert_true(c.file_bytes == cases[i].file_bytes);
	}
}

TEST_MAIN(NULL, NULL)
