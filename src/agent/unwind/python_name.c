/* SPDX-License-Identifier: MIT */
#include "agent/unwind/python.h"

#include <string.h>

#include "agent/unwind/python_memory.h"

#include "agent/sys/poison.h"

/* As UTF-8; what does not fit is left out, at the beginning if `keeps_end`. */
static size_t write_text(char *to, size_t room, const struct sp_python_text *t,
			 bool keeps_end)
{
	size_t i = 0, n = 0;

	/* A character has at most four bytes, of ASCII one. */
	if (keeps_end && t->n > room / (t->width == 1 ? 2 : 4))
		i = t->n - room / (t->width == 1 ? 2 : 4);
	for (; i < t->n && n + 4 <= room; i++) {
		uint32_t c = 0;

		memcpy(&c, (const uint8_t *)t->at + i * t->width, t->width);
		if (c < 0x80) {
			to[n++] = (char)c;
			continue;
		}
		if (c >= 0x10000) {
			to[n++] = (char)(0xf0 | (c >> 18 & 7));
			to[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		} else if (c >= 0x800) {
			to[n++] = (char)(0xe0 | c >> 12);
		}
		to[n++] = (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f)
					    : 0xc0 | c >> 6);
		to[n++] = (char)(0x80 | (c & 0x3f));
	}
	return n;
}

/* ---- lines: of the table [at, end), whose first line is `line` ---- */

/* An entry of the table of locations: a number of 6-bit pieces, the lowest
 * first. */
static uint32_t take_number(const uint8_t **at, const uint8_t *end)
{
	uint32_t v = 0;

	for (unsigned int shift = 0; *at < end && shift < 32; shift += 6) {
		const uint8_t piece = *(*at)++;

		v |= (uint32_t)(piece & 0x3f) << shift;
		if (!(piece & 0x40))
			break;
	}
	return v;
}

/* How an entry changes the line; its columns are passed over. */
static int32_t take_step(const uint8_t **at, const uint8_t *end,
			 unsigned int form)
{
	uint32_t v;

	if (form < 10) { /* columns alone */
		*at += 1;
		return 0;
	}
	if (form < 13) { /* and up to two lines */
		*at += 2;
		return (int32_t)form - 10;
	}
	v = take_number(at, end);
	if (form == 14)
		for (int i = 0; i < 3; i++)
			take_number(at, end);
	return v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
}

#define FORM_NO_LINE 15u

static uint32_t line_by_locations(const uint8_t *at, const uint8_t *end,
				  uint32_t line, uint32_t unit)
{
	uint64_t units = 0;

	while (at < end) {
		const unsigned int form = *at >> 3 & 15;

		units += (*at++ & 7) + 1u;
		if (form != FORM_NO_LINE)
			line += (uint32_t)take_step(&at, end, form);
		if (units > unit)
			return form == FORM_NO_LINE ? 0 : line;
	}
	return 0;
}

#define STEP_NO_LINE (-128)

static uint32_t line_by_ranges(const uint8_t *at, const uint8_t *end,
			       uint32_t line, uint32_t unit)
{
	uint64_t bytes = 0;

	for (; end - at > 1; at += 2) {
		const int8_t step = (int8_t)at[1];

		bytes += at[0];
		if (step != STEP_NO_LINE)
			line += (uint32_t)step;
		if (bytes > 2ull * unit)
			return step == STEP_NO_LINE ? 0 : line;
	}
	return 0;
}

static uint32_t line_by_steps(const uint8_t *at, const uint8_t *end,
			      uint32_t line, uint32_t unit)
{
	uint64_t bytes = 0;

	for (; end - at > 1; at += 2) {
		bytes += at[0];
		if (bytes > 2ull * unit)
			break;
		line += (uint32_t)(int8_t)at[1];
	}
	return line;
}

/* 0: not known. */
static uint32_t line_of(struct sp_python *python,
			const struct sp_python_frame *frame)
{
	static uint32_t (*const by[])(const uint8_t *at, const uint8_t *end,
				      uint32_t line, uint32_t unit) = {
		[SP_PYTHON_LOCATIONS] = line_by_locations,
		[SP_PYTHON_RANGES] = line_by_ranges,
		[SP_PYTHON_STEPS] = line_by_steps,
	};
	const struct sp_python_layout *layout = &python->in->layout;
	const uint32_t line = sp_python_half(frame->code + layout->code_line);
	uintptr_t table, length;
	const uint8_t *at;

	if (frame->unit == SP_PYTHON_BEGIN)
		return line;
	if (frame->unit == SP_PYTHON_NOWHERE ||
	    !sp_python_read(python, frame->code + layout->code_table, &table) ||
	    !sp_python_read(python, table + layout->bytes_length, &length) ||
	    length > SP_PYTHON_TABLE_MAX ||
	    !sp_python_is_readable(python, table + layout->bytes_data, length))
		return 0;
	at = (const uint8_t *)(table + layout->bytes_data);
	return by[layout->lines](at, at + length, line, frame->unit);
}

bool sp_python_name(struct sp_lane *lane, const struct sp_python_frame *frame,
		    struct sp_python_name *ret)
{
	static const char start[] = "py::";
	struct sp_python *python = lane->python;
	const struct sp_python_layout *layout = &python->in->layout;
	const size_t n = sizeof(start) - 1;
	uintptr_t name, file;
	struct sp_python_text text;

	if (!sp_python_read(python, frame->code + layout->code_name, &name) ||
	    !sp_python_read(python, frame->code + layout->code_file, &file) ||
	    !sp_python_read_text(python, name, &text))
		return false;
	memcpy(python->function, start, n);
	*ret = (struct sp_python_name){
		.function = python->function,
		.function_bytes = n + write_text(python->function + n,
						 sizeof(python->function) - n,
						 &text, false),
		.file = python->file,
	};
	if (!sp_python_read_text(python, file, &text))
		return false;
	ret->file_bytes =
		write_text(python->file, sizeof(python->file), &text, true);
	ret->line = line_of(python, frame);
	return true;
}
