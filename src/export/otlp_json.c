/* SPDX-License-Identifier: MIT */
/*
 * The messages of otlp.c as JSON: names are in camel case, 64-bit integers are
 * text, ids are hexadecimal digits.  A table says what the fields are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/otlp.h"
#include "text/json.h"

enum kind {
	INDEX = 1, /* a number */
	LONG,      /* a number of 64 bits */
	FIXED,     /* the same, always in 8 bytes */
	DOUBLE,
	TEXT,
	ID,      /* bytes */
	INDICES, /* packed */
	LONGS,   /* packed */
	MESSAGE,
	MESSAGES, /* the field is repeated, here and below */
	TEXTS,
};

struct field {
	unsigned int number;
	enum kind kind;
	const char *name;
	const struct field *fields; /* of a message; ends with a number of 0 */
};

static const struct field any_value[] = {
	{OTLP_ANY_STRING, TEXT, "stringValue", NULL},
	{OTLP_ANY_INT, LONG, "intValue", NULL},
	{OTLP_ANY_DOUBLE, DOUBLE, "doubleValue", NULL},
	{0},
};

static const struct field key_value[] = {
	{OTLP_KEY_VALUE_KEY, TEXT, "key", NULL},
	{OTLP_KEY_VALUE_VALUE, MESSAGE, "value", any_value},
	{0},
};

static const struct field resource[] = {
	{OTLP_RESOURCE_ATTRIBUTES, MESSAGES, "attributes", key_value},
	{0},
};

static const struct field scope[] = {
	{OTLP_SCOPE_NAME, TEXT, "name", NULL},
	{OTLP_SCOPE_VERSION, TEXT, "version", NULL},
	{0},
};

static const struct field value_type[] = {
	{OTLP_TYPE_NAME, INDEX, "typeStrindex", NULL},
	{OTLP_TYPE_UNIT, INDEX, "unitStrindex", NULL},
	{0},
};

static const struct field sample[] = {
	{OTLP_SAMPLE_STACK, INDEX, "stackIndex", NULL},
	{OTLP_SAMPLE_ATTRIBUTES, INDICES, "attributeIndices", NULL},
	{OTLP_SAMPLE_VALUES, LONGS, "values", NULL},
	{0},
};

static const struct field profile[] = {
	{OTLP_PROFILE_TYPE, MESSAGE, "sampleType", value_type},
	{OTLP_PROFILE_SAMPLES, MESSAGES, "samples", sample},
	{OTLP_PROFILE_TIME, FIXED, "timeUnixNano", NULL},
	{OTLP_PROFILE_DURATION, LONG, "durationNano", NULL},
	{OTLP_PROFILE_PERIOD_TYPE, MESSAGE, "periodType", value_type},
	{OTLP_PROFILE_PERIOD, LONG, "period", NULL},
	{OTLP_PROFILE_ID, ID, "profileId", NULL},
	{OTLP_PROFILE_ATTRIBUTES, INDICES, "attributeIndices", NULL},
	{0},
};

static const struct field scopes[] = {
	{OTLP_SCOPES_SCOPE, MESSAGE, "scope", scope},
	{OTLP_SCOPES_PROFILES, MESSAGES, "profiles", profile},
	{0},
};

static const struct field resources[] = {
	{OTLP_RESOURCES_RESOURCE, MESSAGE, "resource", resource},
	{OTLP_RESOURCES_SCOPES, MESSAGES, "scopeProfiles", scopes},
	{0},
};

static const struct field mapping[] = {
	{1, LONG, "memoryStart", NULL},
	{2, LONG, "memoryLimit", NULL},
	{4, INDEX, "filenameStrindex", NULL},
	{OTLP_MAPPING_ATTRIBUTES, INDICES, "attributeIndices", NULL},
	{0},
};

static const struct field line[] = {
	{1, INDEX, "functionIndex", NULL},
	{2, LONG, "line", NULL},
	{0},
};

static const struct field location[] = {
	{1, INDEX, "mappingIndex", NULL},
	{2, LONG, "address", NULL},
	{3, MESSAGES, "lines", line},
	{0},
};

static const struct field function[] = {
	{1, INDEX, "nameStrindex", NULL},
	{3, INDEX, "filenameStrindex", NULL},
	{0},
};

static const struct field link[] = {
	{OTLP_LINK_TRACE, ID, "traceId", NULL},
	{OTLP_LINK_SPAN, ID, "spanId", NULL},
	{0},
};

static const struct field attribute[] = {
	{OTLP_ATTRIBUTE_KEY, INDEX, "keyStrindex", NULL},
	{OTLP_ATTRIBUTE_VALUE, MESSAGE, "value", any_value},
	{OTLP_ATTRIBUTE_UNIT, INDEX, "unitStrindex", NULL},
	{0},
};

static const struct field stack[] = {
	{OTLP_STACK_LOCATIONS, INDICES, "locationIndices", NULL},
	{0},
};

static const struct field dictionary[] = {
	{OTLP_DICTIONARY_MAPPINGS, MESSAGES, "mappingTable", mapping},
	{OTLP_DICTIONARY_LOCATIONS, MESSAGES, "locationTable", location},
	{OTLP_DICTIONARY_FUNCTIONS, MESSAGES, "functionTable", function},
	{OTLP_DICTIONARY_LINKS, MESSAGES, "linkTable", link},
	{OTLP_DICTIONARY_STRINGS, TEXTS, "stringTable", NULL},
	{OTLP_DICTIONARY_ATTRIBUTES, MESSAGES, "attributeTable", attribute},
	{OTLP_DICTIONARY_STACKS, MESSAGES, "stackTable", stack},
	{0},
};

static const struct field data[] = {
	{OTLP_DATA_RESOURCES, MESSAGES, "resourceProfiles", resources},
	{OTLP_DATA_DICTIONARY, MESSAGE, "dictionary", dictionary},
	{0},
};

/* ---- reading what was just written ---- */

/* A field of a message.  The messages are ours: nothing in them is wrong. */
struct part {
	unsigned int number;
	uint64_t value;       /* or the number of bytes */
	const uint8_t *bytes; /* NULL: it is a number */
};

static uint64_t take_varint(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		const uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

static struct part take_part(const uint8_t **at)
{
	const uint64_t key = take_varint(at);
	struct part part = {.number = (unsigned int)(key >> 3)};

	switch (key & 7) {
	case 0:
		part.value = take_varint(at);
		break;
	case 1:
		for (unsigned int i = 0; i < 8; i++)
			part.value |= (uint64_t) * (*at)++ << 8 * i;
		break;
	default:
		part.value = take_varint(at);
		part.bytes = *at;
		*at += part.value;
	}
	return part;
}

static const struct field *field_of(const struct field *fields,
				    unsigned int number)
{
	while (fields->number && fields->number != number)
		fields++;
	return fields;
}

/* ---- writing ---- */

static void put_long(struct sp_json *json, const char *name, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	sp_json_string(json, name, digits);
}

static void put_double(struct sp_json *json, const char *name, uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	sp_json_double(json, name, value);
}

static void put_id(struct sp_json *json, const char *name,
		   const struct part *part)
{
	char digits[33] = "";

	for (size_t i = 0; i < part->value && i < 16; i++)
		snprintf(digits + 2 * i, 3, "%02x", part->bytes[i]);
	sp_json_string(json, name, digits);
}

static int put_text(struct sp_json *json, const char *name,
		    const struct part *part)
{
	char *text = strndup((const char *)part->bytes, part->value);

	if (!text)
		return -ENOMEM;
	sp_json_string(json, name, text);
	free(text);
	return 0;
}

static void put_numbers(struct sp_json *json, const char *name,
			const struct part *part, enum kind kind)
{
	const uint8_t *at = part->bytes;

	sp_json_open(json, name, '[');
	while (at < part->bytes + part->value)
		if (kind == LONGS)
			put_long(json, NULL, take_varint(&at));
		else
			sp_json_u64(json, NULL, take_varint(&at));
	sp_json_close(json, ']');
}

static int put_message(struct sp_json *json, const char *name,
		       const uint8_t *bytes, size_t n,
		       const struct field *fields);

static int put_part(struct sp_json *json, const char *name,
		    const struct field *field, const struct part *part)
{
	switch (field->kind) {
	case INDEX:
		sp_json_u64(json, name, part->value);
		return 0;
	case LONG:
	case FIXED:
		put_long(json, name, part->value);
		return 0;
	case DOUBLE:
		put_double(json, name, part->value);
		return 0;
	case ID:
		put_id(json, name, part);
		return 0;
	case INDICES:
	case LONGS:
		put_numbers(json, name, part, field->kind);
		return 0;
	case TEXT:
	case TEXTS:
		return put_text(json, name, part);
	case MESSAGE:
	case MESSAGES:
		break;
	}
	return put_message(json, name, part->bytes, part->value, field->fields);
}

/* The entries of a repeated field follow each other. */
static int put_message(struct sp_json *json, const char *name,
		       const uint8_t *bytes, size_t n,
		       const struct field *fields)
{
	const struct field *open = NULL;
	const uint8_t *at = bytes;
	int r = 0;

	sp_json_open(json, name, '{');
	while (at < bytes + n && r >= 0) {
		const struct part part = take_part(&at);
		const struct field *f = field_of(fields, part.number);
		const bool is_list = f->kind == MESSAGES || f->kind == TEXTS;

		if (open && f != open)
			sp_json_close(json, ']');
		if (is_list && f != open)
			sp_json_open(json, f->name, '[');
		open = is_list ? f : NULL;
		r = put_part(json, is_list ? NULL : f->name, f, &part);
	}
	if (open)
		sp_json_close(json, ']');
	sp_json_close(json, '}');
	return r;
}

int sp_otlp_write_json(FILE *out, const uint8_t *message, size_t n)
{
	struct sp_json json = {.out = out, .is_first = true, .flat = 1};
	const int r = put_message(&json, NULL, message, n, data);

	putc('\n', out);
	return r;
}
