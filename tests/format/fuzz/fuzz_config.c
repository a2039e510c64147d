/* SPDX-License-Identifier: MIT */
/*
 * An environment: settings within their limits, or an error that names the
 * variable.
 *
 * The input is one variable a line; '+' stands for SAMPLEPROF_.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process/config.h"
#include "base/labels.h"
#include "base/parse.h"
#include "format/fuzz/target.h"

#define VARIABLES_MAX 64

static void split(const uint8_t *data, size_t size, char **environment)
{
	size_t n = 0;

	while (size && n < VARIABLES_MAX) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t line = end ? (size_t)(end - data) : size;

		FUZZ_ASSERT(
			asprintf(&environment[n++], "%s%.*s",
				 line && data[0] == '+' ? "SAMPLEPROF_" : "",
				 (int)line - (line && data[0] == '+'),
				 (const char *)data +
					 (line && data[0] == '+')) >= 0);
		data += line + (end != NULL);
		size -= line + (end != NULL);
	}
	environment[n] = NULL;
}

static void check_range(uint64_t v, uint64_t min, uint64_t max)
{
	FUZZ_ASSERT(v >= min && v <= max);
}

static void check_limits(const struct sp_config *c)
{
#define SP_KNOB_SIZE(name, field, def, min, max, help)                         \
	check_range(c->field, min, max);
#define SP_KNOB_NUMBER(name, field, def, min, max, unit, help)                 \
	check_range(c->field, min, max);
#define SP_KNOB_RATE(name, field, help)                                        \
	check_range(c->field, 0, SP_PARSE_RATE_MAX);
#define SP_KNOB_FRACTION(name, field, help)                                    \
	check_range(c->field, 1, SP_PARSE_FRACTION_ALL);
#define SP_KNOB_LABELS(name, field, help)                                      \
	FUZZ_ASSERT(!sp_labels_check(c->field));
#define SP_KNOB_TEXT(name, field, def, max, help)                              \
	FUZZ_ASSERT(c->field[0] && strlen(c->field) <= (max));
#define SP_KNOB_CHOICE(name, field, def, choices, help)                        \
	FUZZ_ASSERT(c->field <= 1);
#include "agent/process/config.def"
#undef SP_KNOB_SIZE
#undef SP_KNOB_NUMBER
#undef SP_KNOB_RATE
#undef SP_KNOB_TEXT
#undef SP_KNOB_FRACTION
#undef SP_KNOB_LABELS
#undef SP_KNOB_CHOICE
}

static void take_setting(void *arg, const char *key, const char *value)
{
	FUZZ_ASSERT(strncmp(key, "setting.", 8) == 0 &&
		    (value[0] || strcmp(key, "setting.labels") == 0));
	++*(unsigned int *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *environment[VARIABLES_MAX + 1];
	struct sp_config config;
	struct sp_config_error err;
	unsigned int settings = 0;

	split(data, size, environment);
	if (sp_config_parse(environment, &config, &err)) {
		FUZZ_ASSERT(!err.name);
		check_limits(&config);
		sp_config_describe(&config, take_setting, &settings);
		FUZZ_ASSERT(settings > 0);
	} else {
		FUZZ_ASSERT(err.name && err.variable && err.expected[0]);
	}
	for (char **p = environment; *p; p++)
		free(*p);
	return 0;
}
