/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <string.h>

#include "agent/unwind/python_layout.h"
#include "base/rng.h"
#include "support/test.h"

/*
 * Objects of Python as a layout has them, at random, in memory that is used
 * again with used = 0.
 */
#define UNITS 400

static struct sp_rng rng;

static unsigned int draw(unsigned int n)
{
	return (unsigned int)(sp_rng_next(&rng) % n);
}

static uint8_t memory[1 << 20];
static size_t used;

/* The least memory that is zero, so that what is read beyond it is not. */
static uintptr_t make(size_t bytes)
{
	uint8_t *at = memory + used;

	used += (bytes + 15) / 16 * 16;
	assert_true(used <= sizeof(memory));
	memset(at, 0, bytes);
	return (uintptr_t)at;
}

static void put_word(uintptr_t at, uintptr_t word)
{
	memcpy((void *)at, &word, sizeof(word));
}

static void put_half(uintptr_t at, uint32_t half)
{
	memcpy((void *)at, &half, sizeof(half));
}

/* A text of a random width, and the same as UTF-8. */
static uintptr_t make_text(const struct sp_python_layout *o, char *ret)
{
	static const uint32_t sets[4] = {'a', 0xe4, 0x416, 0x1f40d};
	static const unsigned int widths[4] = {1, 1, 2, 4};
	const unsigned int kind = draw(4), width = widths[kind],
			   n = 1 + draw(30);
	const uintptr_t text = make(o->text_other + 4 * n),
			data = text + (kind ? o->text_other : o->text_ascii);

	put_half(text + o->text_state, (width | 8 | (kind ? 0 : 16))
					       << o->text_state_bit);
	put_word(text + o->text_length, n);
	for (unsigned int i = 0; i < n; i++) {
		const uint32_t c = draw(3) ? 'a' + draw(26) : sets[kind];

		memcpy((void *)(data + i * width), &c, width);
		if (c >= 0x10000)
			*ret++ = (char)(0xf0 | c >> 18),
			*ret++ = (char)(0x80 | (c >> 12 & 63));
		else if (c >= 0x800)
			*ret++ = (char)(0xe0 | c >> 12);
		if (c >= 0x800)
			*ret++ = (char)(0x80 | (c >> 6 & 63));
		else if (c >= 0x80)
			*ret++ = (char)(0xc0 | c >> 6);
		*ret++ = (char)(c < 0x80 ? c : 0x80 | (c & 63));
	}
	*ret = '\0';
	return text;
}

struct code {
	uintptr_t at;
	char name[200], file[200];
	unsigned int first, units;
	unsigned int line[UNITS]; /* of each unit; 0: none */
};

static uint8_t *put_number(uint8_t *to, uint32_t v)
{
	for (; v > 63; v >>= 6)
		*to++ = (uint8_t)(64 | (v & 63));
	*to++ = (uint8_t)v;
	return to;
}

/* One entry of 3.11's table, in any of the forms that can say it. */
static uint8_t *put_location(uint8_t *to, unsigned int units, bool has_line,
			     int step)
{
	const uint8_t count = (uint8_t)(units - 1);
	unsigned int form = has_line ? 13 + draw(2) : 15;

	if (has_line && step >= 0 && step <= 2 && draw(2))
		form = 10 + (unsigned int)step;
	if (has_line && !step && draw(2))
		form = draw(10);
	*to++ = (uint8_t)(0x80 | form << 3 | count);
	if (form < 10)
		*to++ = (uint8_t)draw(128);
	else if (form < 13)
		for (int i = 0; i < 2; i++)
			*to++ = (uint8_t)draw(128);
	if (form == 13 || form == 14)
		to = put_number(to, step < 0 ? (uint32_t)-step << 1 | 1
					     : (uint32_t)step << 1);
	for (int i = 0; form == 14 && i < 3; i++)
		to = put_number(to, draw(5000));
	return to;
}

static uint8_t *put_pair(uint8_t *to, unsigned int bytes, int step)
{
	*to++ = (uint8_t)bytes;
	*to++ = (uint8_t)step;
	return to;
}

/* A run of units of one line, `step` away from the last one that had any. */
static uint8_t *put_run(uint8_t *to, enum sp_python_lines lines,
			unsigned int units, bool has_line, int step)
{
	const int limit = step < 0 ? -127 : 127;

	switch (lines) {
	case SP_PYTHON_LOCATIONS:
		for (; units; has_line ? step = 0 : 0) {
			const unsigned int n = 1 + draw(units < 8 ? units : 8);

			to = put_location(to, n, has_line, step);
			units -= n;
		}
		return to;
	case SP_PYTHON_RANGES:
		for (; has_line && abs(step) > 127; step -= limit)
			to = put_pair(to, 0, limit);
		for (; units > 127; units -= 127, step = 0)
			to = put_pair(to, 254, has_line ? step : -128);
		return put_pair(to, 2 * units, has_line ? step : -128);
	case SP_PYTHON_STEPS: /* the way to the run, and the step there */
		for (; units > 127; units -= 127)
			to = put_pair(to, 254, 0);
		for (; abs(step) > 127; step -= limit, units = 0)
			to = put_pair(to, 2 * units, limit);
		return put_pair(to, 2 * units, step);
	}
	return to;
}

static void make_table(const struct sp_python_layout *o, struct code *code)
{
	static uint8_t table[8 * UNITS];
	uint8_t *to = table;
	int line = (int)code->first;
	unsigned int last = 0;
	uintptr_t bytes;

	code->units = 0;
	while (code->units < UNITS) {
		unsigned int n = 1 + draw(draw(8) ? 12 : 300);
		int step = (int)draw(7) - 2;
		bool has_line =
			o->lines == SP_PYTHON_STEPS || !code->units || draw(6);

		if (!draw(9))
			step = (int)draw(2000) - 400;
		if (line + step < 1 || !has_line)
			step = 0;
		if (n > UNITS - code->units)
			n = UNITS - code->units;
		line += step;
		to = put_run(to, o->lines,
			     o->lines == SP_PYTHON_STEPS ? last : n, has_line,
			     step);
		for (last = n; n; n--)
			code->line[code->units++] =
				has_line ? (unsigned int)line : 0;
	}
	bytes = make(o->bytes_data + (size_t)(to - table));
	put_word(bytes + o->bytes_length, (uintptr_t)(to - table));
	memcpy((void *)(bytes + o->bytes_data), table, (size_t)(to - table));
	put_word(code->at + o->code_table, bytes);
}

/* `type`: that of code objects. */
static void make_code(const struct sp_python_layout *o, uintptr_t type,
		      struct code *ret)
{
	ret->at = make(o->code_bytes + 2 * UNITS);
	ret->first = 500 + draw(1000);
	put_word(ret->at + o->object_type, type);
	put_half(ret->at + o->code_line, ret->first);
	put_word(ret->at + o->code_name, make_text(o, ret->name));
	put_word(ret->at + o->code_file, make_text(o, ret->file));
	make_table(o, ret);
}
