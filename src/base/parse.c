/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <stddef.h>
#include <string.h>

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* Digits in `base` from text; NULL if there is none or on overflow, else the
 * first character that is no digit. */
static const char *parse_digits(const char *text, unsigned int base,
				uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = text;

	for (; digit_value(*p) < (int)base; p++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit_value(*p), &v))
			return NULL;
	}
	if (p == text)
		return NULL;
	*ret = v;
	return p;
}

bool sp_parse_u64(const char *text, uint64_t *ret)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t v;
	const char *end =
		parse_digits(hex ? text + 2 : text, hex ? 16 : 10, &v);

	if (!end || *end)
		return false;
	*ret = v;
	return true;
}

static unsigned int suffix_shift(char c)
{
	switch (c) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	case 't':
	case 'T':
		return 40;
	default:
		return 0;
	}
}

bool sp_parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t v;
	unsigned int shift;
	const char *end = parse_digits(text, 10, &v);

	if (!end)
		return false;
	shift = suffix_shift(*end);
	if (shift) {
		end++;
		if (end[0] == 'i' && end[1] == 'B')
			end += 2;
	}
	if (*end || (shift && v >> (64 - shift)))
		return false;
	*ret_bytes = v << shift;
	return true;
}

/* Nanoseconds of the unit at text; 0 if there is none, or if it comes before
 * *next in order.  "ms" is tried before "m". */
static uint64_t time_unit(const char **text, unsigned int *next)
{
	static const struct {
		char name[3];
		unsigned int order;
		uint64_t ns;
	} units[] = {
		{"h", 0, 3600000000000}, {"ms", 3, 1000000},
		{"m", 1, 60000000000},   {"s", 2, 1000000000},
		{"us", 4, 1000},         {"ns", 5, 1},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(units[i].name);

		if (strncmp(*text, units[i].name, n) != 0)
			continue;
		if (units[i].order < *next)
			return 0;
		*next = units[i].order + 1;
		*text += n;
		return units[i].ns;
	}
	return 0;
}

bool sp_parse_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t sum = 0;
	unsigned int next = 0;

	do {
		uint64_t v, unit;

		text = parse_digits(text, 10, &v);
		if (!text)
			return false;
		unit = time_unit(&text, &next);
		if (!unit || __builtin_mul_overflow(v, unit, &v) ||
		    __builtin_add_overflow(sum, v, &sum))
			return false;
	} while (*text);
	*ret_ns = sum;
	return true;
}

bool sp_parse_rate(const char *text, uint64_t *ret_per_s)
{
	uint64_t v = 0;
	const char *end;

	if (strcmp(text, "off") != 0) {
		end = parse_digits(text, 10, &v);
		if (!end || strcmp(end, "/s") != 0 || v == 0 ||
		    v > SP_PARSE_RATE_MAX)
			return false;
	}
	*ret_per_s = v;
	return true;
}

/* A number with at most `places` digits after the point, in units of the last
 * of them: NULL, or what follows it. */
static const char *parse_decimal(const char *text, int places, uint64_t *ret)
{
	uint64_t v, fraction = 0, unit = 1;
	const char *end = parse_digits(text, 10, &v);

	for (int i = 0; i < places; i++)
		unit *= 10;
	if (!end || __builtin_mul_overflow(v, unit, &v))
		return NULL;
	if (*end == '.') {
		const char *digits = end + 1;

		end = parse_digits(digits, 10, &fraction);
		if (!end || end - digits > places)
			return NULL;
		for (; digits < end; digits++)
			unit /= 10;
		fraction *= unit;
	}
	if (__builtin_add_overflow(v, fraction, &v))
		return NULL;
	*ret = v;
	return end;
}

bool sp_parse_milli(const char *text, uint64_t *ret_thousandths)
{
	uint64_t v;
	const char *end = parse_decimal(text, 3, &v);

	if (!end || *end)
		return false;
	*ret_thousandths = v;
	return true;
}

bool sp_parse_fraction(const char *text, uint64_t *ret_millionths)
{
	uint64_t v;
	const char *end = parse_decimal(text, 4, &v);

	if (!end || end[0] != '%' || end[1] || !v || v > SP_PARSE_FRACTION_ALL)
		return false;
	*ret_millionths = v;
	return true;
}
