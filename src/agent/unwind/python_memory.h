/* SPDX-License-Identifier: MIT */
#pragma once

#include <string.h>

#include "agent/sys/arch.h"
#include "agent/unwind/python.h"
#include "agent/unwind/python_layout.h"
#include "agent/unwind/stack_bounds.h"

/*
 * Reading objects of Python.  A thread changes its own frames only, and here it
 * stands still.  So what its frames lead to is alive, and its memory is there:
 * a page is asked about when it is first met, in case that an offset is wrong.
 */
#define SP_PYTHON_TABLE_MAX 65536u /* bytes, and characters of a text */

/* How the state of a text says what it is, above other bits. */
#define SP_PYTHON_TEXT_WIDTH   7u
#define SP_PYTHON_TEXT_COMPACT (1u << 3)
#define SP_PYTHON_TEXT_ASCII   (1u << 4)

static inline bool sp_python_is_readable(struct sp_python *python, uintptr_t at,
					 size_t bytes)
{
	const uintptr_t mask = ~(uintptr_t)(SP_ARCH_PAGE_MIN - 1);

	if (at < SP_ARCH_PAGE_MIN || at + bytes < at)
		return false;
	for (uintptr_t page = at & mask; page < at + bytes;
	     page += SP_ARCH_PAGE_MIN) {
		uintptr_t *known =
			&python->pages[(page / SP_ARCH_PAGE_MIN * 0x9e3779b1u >>
					20) %
				       SP_PYTHON_PAGES];

		if (*known == page)
			continue;
		if (!sp_stack_bounds_probe(page))
			return false;
		*known = page;
	}
	return true;
}

/* Words, halves and bytes of what can be read. */
static inline uintptr_t sp_python_word(uintptr_t at)
{
	return *(const sp_stack_bounds_word *)at;
}

static inline uint32_t sp_python_half(uintptr_t at)
{
	uint32_t half;

	memcpy(&half, (const void *)at, sizeof(half));
	return half;
}

static inline uint8_t sp_python_byte(uintptr_t at)
{
	return *(const uint8_t *)at;
}

static inline bool sp_python_read(struct sp_python *python, uintptr_t at,
				  uintptr_t *ret)
{
	if (!sp_python_is_readable(python, at, sizeof(*ret)))
		return false;
	*ret = sp_python_word(at);
	return true;
}

struct sp_python_text {
	uintptr_t at;
	size_t n;           /* characters */
	unsigned int width; /* bytes of each */
};

static inline bool sp_python_read_text(struct sp_python *python,
				       uintptr_t object,
				       struct sp_python_text *ret)
{
	const struct sp_python_layout *layout = &python->in->layout;
	uint32_t bits;

	if (!sp_python_is_readable(python, object, layout->text_other))
		return false;
	bits = sp_python_half(object + layout->text_state) >>
	       layout->text_state_bit;
	ret->width = bits & SP_PYTHON_TEXT_WIDTH;
	ret->n = sp_python_word(object + layout->text_length);
	ret->at = object + (bits & SP_PYTHON_TEXT_ASCII ? layout->text_ascii
							: layout->text_other);
	return bits & SP_PYTHON_TEXT_COMPACT &&
	       (ret->width == 1 || ret->width == 2 || ret->width == 4) &&
	       ret->n <= SP_PYTHON_TABLE_MAX &&
	       sp_python_is_readable(python, ret->at, ret->n * ret->width);
}
