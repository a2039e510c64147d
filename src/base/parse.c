/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <stddef.h>

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
