/* SPDX-License-Identifier: MIT */
#include "text/json.h"

#include <inttypes.h>
#include <string.h>

#include "text/figures.h"
#include "text/text.h"

/* A bit for each character that stands for itself: most do. */
static const uint64_t plain_bits[4] = {
	~0ull << ' ' & ~(1ull << '"' | 1ull << '&' | 1ull << '<' | 1ull << '>'),
	~(1ull << ('\\' - 64) | 1ull << 63),
};

static size_t plain_length(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	while (plain_bits[*c / 64] >> *c % 64 & 1)
		c++;
	return (size_t)((const char *)c - text);
}

static void put_text(struct sp_json *json, const char *text)
{
	putc_unlocked('"', json->out);
	for (;;) {
		const size_t plain = plain_length(text);
		uint32_t code = 0;
		unsigned int n;

		fwrite_unlocked(text, 1, plain, json->out);
		text += plain;
		if (!*text)
			break;
		n = sp_text_decode_utf8(text, &code);
		if (!n)
			fputs_unlocked("\\ufffd", json->out);
		else if (code == '"' || code == '\\')
			fprintf(json->out, "\\%c", (char)code);
		else if (sp_text_is_unsafe(code) || code == '<' ||
			 code == '>' || code == '&')
			fprintf(json->out, "\\u%04" PRIx32, code);
		else
			fwrite_unlocked(text, 1, n, json->out);
		text += n ? n : 1;
	}
	putc_unlocked('"', json->out);
}

static void break_line(struct sp_json *json)
{
	if (!json->flat)
		fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

/* Whatever comes before a value; `key` is NULL in an array. */
static void begin_value(struct sp_json *json, const char *key)
{
	if (!json->is_first)
		fputs_unlocked(json->flat ? ", " : ",", json->out);
	json->is_first = false;
	if (json->depth)
		break_line(json);
	if (key) {
		put_text(json, key);
		fputs_unlocked(": ", json->out);
	}
}

void sp_json_open(struct sp_json *json, const char *key, char bracket)
{
	begin_value(json, key);
	putc_unlocked(bracket, json->out);
	json->depth++;
	json->is_first = true;
}

void sp_json_open_flat(struct sp_json *json, const char *key, char bracket)
{
	sp_json_open(json, key, bracket);
	if (!json->flat)
		json->flat = json->depth;
}

void sp_json_close(struct sp_json *json, char bracket)
{
	bool was_flat = json->flat;

	if (json->flat == json->depth)
		json->flat = 0;
	json->depth--;
	if (!was_flat && !json->is_first)
		break_line(json);
	putc_unlocked(bracket, json->out);
	json->is_first = false;
}

struct sp_json sp_json_begin(FILE *out)
{
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open(&json, NULL, '{');
	return json;
}

void sp_json_end(struct sp_json *json)
{
	sp_json_close(json, '}');
	putc('\n', json->out);
}

void sp_json_string(struct sp_json *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (text)
		put_text(json, text);
	else
		fputs_unlocked("null", json->out);
}

void sp_json_u64(struct sp_json *json, const char *key, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	begin_value(json, key);
	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, json->out);
}

void sp_json_bool(struct sp_json *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs_unlocked(value ? "true" : "false", json->out);
}

static void put_digits(struct sp_json *json, const char *key,
		       struct sp_text_cell digits)
{
	begin_value(json, key);
	fputs_unlocked(*digits.text ? digits.text : "null", json->out);
	if (*digits.text && !strpbrk(digits.text, ".e"))
		fputs_unlocked(".0", json->out);
}

void sp_json_double(struct sp_json *json, const char *key, double value)
{
	put_digits(json, key, sp_figure_digits(value));
}

void sp_json_limits(struct sp_json *json, struct sp_interval interval)
{
	const struct sp_figure_limits cells = sp_figure_limits(interval);

	put_digits(json, "value", cells.value);
	put_digits(json, "lo", cells.lo);
	put_digits(json, "hi", cells.hi);
}

void sp_json_interval(struct sp_json *json, const char *key,
		      struct sp_interval interval)
{
	sp_json_open_flat(json, key, '{');
	sp_json_limits(json, interval);
	sp_json_close(json, '}');
}

void sp_json_null(struct sp_json *json, const char *key)
{
	begin_value(json, key);
	fputs_unlocked("null", json->out);
}

void sp_json_u64_if(struct sp_json *json, const char *key, bool is_there,
		    uint64_t value)
{
	if (is_there)
		sp_json_u64(json, key, value);
	else
		sp_json_null(json, key);
}

void sp_json_time(struct sp_json *json, const char *key, uint64_t ns)
{
	if (ns == UINT64_MAX)
		sp_json_null(json, key);
	else
		sp_json_u64(json, key, ns);
}
