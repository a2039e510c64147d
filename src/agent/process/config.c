/* SPDX-License-Identifier: MIT */
#include "agent/process/config.h"

#include <string.h>

#include "agent/sys/diag.h"
#include "base/labels.h"
#include "base/parse.h"

#include "agent/sys/poison.h"

enum knob_type {
	KNOB_SIZE,
	KNOB_NUMBER,
	KNOB_RATE,
	KNOB_FRACTION,
	KNOB_TEXT,
	KNOB_LABELS,
	KNOB_CHOICE
};

struct knob {
	enum knob_type type;
	const char *name;
	size_t field;
	uint64_t number; /* default */
	uint64_t min;
	uint64_t max;
	const char *text; /* default text, choices, or unit */
	const char *help;
};

#define FIELD(field) offsetof(struct sp_config, field)

static const struct knob knobs[] = {
#define SP_KNOB_SIZE(name, field, def, min, max, help)                         \
	{KNOB_SIZE, #name, FIELD(field), def, min, max, NULL, help},
#define SP_KNOB_NUMBER(name, field, def, min, max, unit, help)                 \
	{KNOB_NUMBER, #name, FIELD(field), def, min, max, unit, help},
#define SP_KNOB_RATE(name, field, help)                                        \
	{KNOB_RATE, #name, FIELD(field), 0, 0, 0, NULL, help},
#define SP_KNOB_TEXT(name, field, def, max, help)                              \
	{KNOB_TEXT, #name, FIELD(field), 0, 1, max, def, help},
#define SP_KNOB_FRACTION(name, field, help)                                    \
	{KNOB_FRACTION, #name, FIELD(field), SP_PARSE_FRACTION_ALL, 0, 0,      \
	 NULL,          help},
#define SP_KNOB_LABELS(name, field, help)                                      \
	{KNOB_LABELS, #name, FIELD(field), 0, 0, 0, "", help},
#define SP_KNOB_CHOICE(name, field, def, choices, help)                        \
	{KNOB_CHOICE, #name, FIELD(field), def, 0, 0, choices, help},
#include "agent/process/config.def"
#undef SP_KNOB_SIZE
#undef SP_KNOB_NUMBER
#undef SP_KNOB_RATE
#undef SP_KNOB_TEXT
#undef SP_KNOB_FRACTION
#undef SP_KNOB_LABELS
#undef SP_KNOB_CHOICE
};

#define KNOBS (sizeof(knobs) / sizeof(knobs[0]))

static const char prefix[] = "SAMPLEPROF_";
/* Is for the tools, and has a value that is not to be shown. */
static const char password[] = "DB_PASSWORD=";

static void *field_of(struct sp_config *config, const struct knob *k)
{
	return (char *)config + k->field;
}

static const void *const_field_of(const struct sp_config *config,
				  const struct knob *k)
{
	return (const char *)config + k->field;
}

/* Append text to the terminated string in buf; cuts what does not fit. */
static void add_text(char *buf, size_t size, const char *text)
{
	size_t at = strlen(buf);

	while (*text && at + 1 < size)
		buf[at++] = *text++;
	buf[at] = '\0';
}

static void add_number(char *buf, size_t size, uint64_t v)
{
	char digits[24];

	add_text(buf, size, sp_diag_decimal(digits, v));
}

static void add_rate(char *buf, size_t size, uint64_t per_s)
{
	if (!per_s) {
		add_text(buf, size, "off");
		return;
	}
	add_number(buf, size, per_s);
	add_text(buf, size, "/s");
}

/* Of millionths, with no more digits than it needs. */
static void add_fraction(char *buf, size_t size, uint64_t millionths)
{
	char digits[6] = {'.'};
	size_t n = 0;

	add_number(buf, size, millionths / 10000);
	for (uint64_t rest = millionths % 10000, unit = 1000; rest;
	     unit /= 10) {
		digits[++n] = (char)('0' + rest / unit);
		rest %= unit;
	}
	if (n)
		add_text(buf, size, digits);
	add_text(buf, size, "%");
}

/* Position of `value` among "a|b|c", or -1. */
static int find_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	for (int i = 0;; i++) {
		size_t m = strcspn(choices, "|");

		if (m == n && memcmp(choices, value, n) == 0)
			return i;
		if (!choices[m])
			return -1;
		choices += m + 1;
	}
}

static void add_choice(char *buf, size_t size, const char *choices,
		       unsigned int index)
{
	char one[32];
	size_t n;

	while (index--)
		choices += strcspn(choices, "|") + 1;
	n = strcspn(choices, "|");
	if (n >= sizeof(one))
		n = sizeof(one) - 1;
	memcpy(one, choices, n);
	one[n] = '\0';
	add_text(buf, size, one);
}

/* 64G for 64 << 30: with the suffix that the setting takes, too. */
static void add_size(char *buf, size_t size, uint64_t v)
{
	static const char *const suffixes[] = {"", "K", "M", "G", "T"};
	size_t i = 0;

	for (; v && v % 1024 == 0 && i + 1 < 5; i++)
		v /= 1024;
	add_number(buf, size, v);
	add_text(buf, size, suffixes[i]);
}

static void describe_range(const struct knob *k, char *buf, size_t size)
{
	buf[0] = '\0';
	switch (k->type) {
	case KNOB_SIZE:
		add_text(buf, size, "a size from ");
		add_size(buf, size, k->min);
		add_text(buf, size, " to ");
		add_size(buf, size, k->max);
		break;
	case KNOB_NUMBER:
		add_text(buf, size, "a number");
		add_text(buf, size, k->text);
		add_text(buf, size, " from ");
		add_number(buf, size, k->min);
		add_text(buf, size, " to ");
		add_number(buf, size, k->max);
		break;
	case KNOB_RATE:
		add_text(buf, size, "off, or a rate from 1/s to ");
		add_rate(buf, size, SP_PARSE_RATE_MAX);
		break;
	case KNOB_FRACTION:
		add_text(buf, size, "a share of more than 0%, up to 100%");
		break;
	case KNOB_LABELS:
		add_text(buf, size, "KEY=VALUE, more of them after commas");
		break;
	case KNOB_TEXT:
		add_text(buf, size, "a text of 1 to ");
		add_number(buf, size, k->max);
		add_text(buf, size, " bytes");
		break;
	case KNOB_CHOICE:
		add_text(buf, size, "one of ");
		add_text(buf, size, k->text);
		break;
	}
}

static bool set_knob(const struct knob *k, struct sp_config *config,
		     const char *value)
{
	uint64_t v;
	int choice;

	switch (k->type) {
	case KNOB_SIZE:
	case KNOB_NUMBER:
		if (!(k->type == KNOB_SIZE ? sp_parse_size(value, &v)
					   : sp_parse_u64(value, &v)) ||
		    v < k->min || v > k->max)
			return false;
		memcpy(field_of(config, k), &v, sizeof(v));
		return true;
	case KNOB_RATE:
		if (!sp_parse_rate(value, &v))
			return false;
		memcpy(field_of(config, k), &v, sizeof(v));
		return true;
	case KNOB_FRACTION:
		if (!sp_parse_fraction(value, &v))
			return false;
		memcpy(field_of(config, k), &v, sizeof(v));
		return true;
	case KNOB_LABELS:
		/* They change nothing of the recording: no reason to go without
		 * it. */
		config->labels_refused = sp_labels_check(value);
		strcpy(field_of(config, k),
		       config->labels_refused ? "" : value);
		return true;
	case KNOB_TEXT:
		if (!value[0] || strlen(value) > k->max)
			return false;
		strcpy(field_of(config, k), value);
		return true;
	case KNOB_CHOICE:
		choice = find_choice(k->text, value);
		if (choice < 0)
			return false;
		memcpy(field_of(config, k), &choice, sizeof(choice));
		return true;
	}
	return false;
}

static bool is_text(const struct knob *k)
{
	return k->type == KNOB_TEXT || k->type == KNOB_LABELS;
}

static void set_default(const struct knob *k, struct sp_config *config)
{
	unsigned int choice = (unsigned int)k->number;

	if (is_text(k))
		strcpy(field_of(config, k), k->text);
	else if (k->type == KNOB_CHOICE)
		memcpy(field_of(config, k), &choice, sizeof(choice));
	else
		memcpy(field_of(config, k), &k->number, sizeof(k->number));
}

/* The knob that "NAME=VALUE" sets, or NULL. */
static const struct knob *find_knob(const char *name)
{
	size_t n = strcspn(name, "=");

	for (size_t i = 0; i < KNOBS; i++)
		if (strlen(knobs[i].name) == n &&
		    memcmp(knobs[i].name, name, n) == 0)
			return &knobs[i];
	return NULL;
}

/* A default that depends on another setting. */
static void settle_period(struct sp_config *config, bool is_given)
{
	if (!is_given && config->law == SP_CONFIG_LAW_DOTNET)
		config->period_bytes = SP_CONFIG_DOTNET_PERIOD;
}

/* What follows from several of them. */
static void settle_file(struct sp_config *config)
{
	config->records_all = config->period_bytes == 1 &&
			      !config->samples_per_s &&
			      config->start != SP_CONFIG_START_OFF &&
			      config->frees != SP_CONFIG_FREES_OFF &&
			      (!config->has_max_file ||
			       config->max_file_bytes >= SP_CONFIG_RING_MAX);
	config->file_bytes = config->max_file_bytes;
	if (!config->records_all && config->file_bytes > SP_CONFIG_RING_MAX)
		config->file_bytes = SP_CONFIG_RING_MAX;
	if (config->records_all && !config->has_max_file)
		config->file_bytes = SP_CONFIG_ALL_MAX;
}

bool sp_config_parse(char *const *environment, struct sp_config *config,
		     struct sp_config_error *err)
{
	bool has_period = false;

	memset(err, 0, sizeof(*err));
	config->has_max_file = false;
	config->labels_refused = NULL;
	for (size_t i = 0; i < KNOBS; i++)
		set_default(&knobs[i], config);
	for (; environment && *environment; environment++) {
		const char *name = *environment + sizeof(prefix) - 1;
		const struct knob *k;
		const char *value;

		if (strncmp(*environment, prefix, sizeof(prefix) - 1) != 0 ||
		    strncmp(name, password, sizeof(password) - 1) == 0)
			continue;
		k = find_knob(name);
		value = strchr(name, '=');
		if (!k || !value) {
			if (!err->unknown)
				err->unknown = *environment;
		} else if (!value[1]) {
			/* As if it was not set: some can only set an empty
			 * value where they want none. */
			continue;
		} else if (!set_knob(k, config, value + 1) && !err->name) {
			err->name = k->name;
			err->variable = *environment;
			describe_range(k, err->expected, sizeof(err->expected));
		}
		has_period |= k && k->field == FIELD(period_bytes);
		config->has_max_file |= k && k->field == FIELD(max_file_bytes);
	}
	settle_period(config, has_period);
	settle_file(config);
	return !err->name;
}

void sp_config_describe(const struct sp_config *config,
			void (*emit)(void *arg, const char *key,
				     const char *value),
			void *arg)
{
	for (size_t i = 0; i < KNOBS; i++) {
		const struct knob *k = &knobs[i];
		const void *field = const_field_of(config, k);
		char key[64] = "setting.";
		char value[32] = "";
		const char *text = value;
		uint64_t number;
		unsigned int choice;

		add_text(key, sizeof(key), k->name);
		for (char *p = key; *p; p++)
			if (*p >= 'A' && *p <= 'Z')
				*p = (char)(*p - 'A' + 'a');
		if (is_text(k)) {
			text = field;
		} else if (k->type == KNOB_CHOICE) {
			memcpy(&choice, field, sizeof(choice));
			add_choice(value, sizeof(value), k->text, choice);
		} else {
			memcpy(&number, field, sizeof(number));
			if (k->type == KNOB_RATE)
				add_rate(value, sizeof(value), number);
			else if (k->type == KNOB_FRACTION)
				add_fraction(value, sizeof(value), number);
			else
				add_number(value, sizeof(value), number);
		}
		emit(arg, key, text);
	}
}

void sp_config_help(void (*emit)(void *arg, const char *line), void *arg)
{
	for (size_t i = 0; i < KNOBS; i++) {
		const struct knob *k = &knobs[i];
		char range[160], line[400] = "  SAMPLEPROF_";

		add_text(line, sizeof(line), k->name);
		add_text(line, sizeof(line), "=");
		if (is_text(k))
			add_text(line, sizeof(line), k->text);
		else if (k->type == KNOB_CHOICE)
			add_choice(line, sizeof(line), k->text,
				   (unsigned int)k->number);
		else if (k->type == KNOB_RATE)
			add_rate(line, sizeof(line), k->number);
		else if (k->type == KNOB_FRACTION)
			add_fraction(line, sizeof(line), k->number);
		else if (k->type == KNOB_SIZE)
			add_size(line, sizeof(line), k->number);
		else
			add_number(line, sizeof(line), k->number);
		describe_range(k, range, sizeof(range));
		add_text(line, sizeof(line), "  (");
		add_text(line, sizeof(line), range);
		add_text(line, sizeof(line), ") ");
		add_text(line, sizeof(line), k->help);
		emit(arg, line);
	}
}
