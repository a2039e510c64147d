/* SPDX-License-Identifier: MIT */
/*
 * I1  A thread changes its own frames only, and here it stands still.  So what
 *     its frames lead to is alive, and its memory is there: a page is asked
 *     about when it is first met, in case that an offset is wrong.
 * I2  Nothing is said of a frame unless its code object has the type of code
 *     objects, and the interpreter's record of the C frame that runs it lies
 *     within that C frame, further out than the last.
 */
#include "agent/unwind/python.h"

#include <string.h>

#include "agent/sys/arch.h"
#include "agent/sys/arena.h"
#include "agent/unwind/python_layout.h"
#include "agent/unwind/stack_bounds.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

#define TEXT_PRINTED 64u /* bytes of a text that tell it from others */
#define TABLE_MAX    65536u
#define STEPS_MAX    20000u /* frames of Python */

/* Frames of these owners are the loop's own. */
#define OWNER_LOOP 3u

/* How the state of a text says what it is. */
#define STATE_KIND    2u /* bits below it */
#define STATE_COMPACT (1u << 5)
#define STATE_ASCII   (1u << 6)

enum { UNKNOWN, MEETING, KNOWN };

static _Atomic int state;
static struct sp_python_interpreter interpreter;
static char unread[8]; /* a version, such as "3.12" */

bool sp_python_is_known(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == KNOWN;
}

const char *sp_python_unread(void)
{
	return unread;
}

/* ---- reading ---- */

static bool is_readable(struct sp_python *python, uintptr_t at, size_t bytes)
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

static bool read_word(struct sp_python *python, uintptr_t at, uintptr_t *ret)
{
	if (!is_readable(python, at, sizeof(*ret)))
		return false;
	*ret = *(const sp_stack_bounds_word *)at;
	return true;
}

static uint8_t byte_at(uintptr_t at)
{
	return *(const uint8_t *)at;
}

static uint32_t half_at(uintptr_t at)
{
	uint32_t half;

	memcpy(&half, (const void *)at, sizeof(half));
	return half;
}

/* ---- texts and bytes ---- */

struct text {
	uintptr_t at;
	size_t n;           /* characters */
	unsigned int width; /* bytes of each */
};

static bool read_text(struct sp_python *python, uintptr_t object,
		      struct text *ret)
{
	uintptr_t length;
	uint32_t bits;

	if (!is_readable(python, object, interpreter.layout.text_other) ||
	    !read_word(python, object + interpreter.layout.text_length,
		       &length))
		return false;
	bits = half_at(object + interpreter.layout.text_state);
	ret->width = bits >> STATE_KIND & 7;
	ret->n = length;
	ret->at = object + (bits & STATE_ASCII ? interpreter.layout.text_ascii
					       : interpreter.layout.text_other);
	return bits & STATE_COMPACT &&
	       (ret->width == 1 || ret->width == 2 || ret->width == 4) &&
	       length <= TABLE_MAX &&
	       is_readable(python, ret->at, length * ret->width);
}

static uint64_t hash_text(uint64_t h, const struct text *t)
{
	const size_t bytes = t->n * t->width;
	const size_t n = bytes < TEXT_PRINTED ? bytes : TEXT_PRINTED;

	/* The ends of paths differ. */
	return sp_hash_word(
		sp_hash_bytes(h, (const uint8_t *)t->at + bytes - n, n), bytes);
}

/* As UTF-8; what does not fit is left out, at the beginning if `keeps_end`. */
static size_t write_text(char *to, size_t room, const struct text *t,
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

/* ---- frames ---- */

/* A hash of what a code object says; false: it is none. */
static bool read_code(struct sp_python *python, uintptr_t code,
		      uintptr_t *ret_bytes, uint64_t *ret_print)
{
	uintptr_t type, file, name, table;
	struct text text;
	uint64_t h;

	if (!is_readable(python, code, interpreter.layout.code_bytes) ||
	    !read_word(python, code + interpreter.layout.object_type, &type) ||
	    type != interpreter.type_of_code)
		return false;
	file = *(const sp_stack_bounds_word *)(code +
					       interpreter.layout.code_file);
	name = *(const sp_stack_bounds_word *)(code +
					       interpreter.layout.code_name);
	table = *(const sp_stack_bounds_word *)(code +
						interpreter.layout.code_table);
	/* The interpreter's own, which end a call. */
	if (file == name)
		return false;
	h = sp_hash_word(sp_hash_word(0, code), table);
	h = sp_hash_word(h, half_at(code + interpreter.layout.code_line));
	if (!read_text(python, name, &text))
		return false;
	h = hash_text(h, &text);
	if (!read_text(python, file, &text))
		return false;
	*ret_print = hash_text(h, &text);
	*ret_bytes = code + interpreter.layout.code_bytes;
	return true;
}

/* The frame at `at` as one of the walk.  False: it cannot be read. */
static bool take_frame(struct sp_python *python, uintptr_t at)
{
	struct sp_python_frame *frame = &python->frames[python->n];
	uintptr_t code, bytes, instruction, units;

	if (python->n == SP_LANE_DEPTH ||
	    !read_word(python, at + interpreter.layout.frame_code, &code) ||
	    !read_word(python, at + interpreter.layout.frame_instruction,
		       &instruction))
		return false;
	/* Its lowest bits may say who holds it. */
	code &= ~(uintptr_t)7;
	frame->code = code;
	frame->unit = SP_PYTHON_BEGIN;
	if (!read_code(python, code, &bytes, &frame->print))
		return true; /* no function: passed over */
	units = (instruction - bytes) / 2;
	if (instruction >= bytes && units < SP_PYTHON_BEGIN)
		frame->unit = (uint32_t)units;
	python->n++;
	return true;
}

/* The frame of the C stack, from *i on, that `at` lies in; false: none of the
 * interpreter's does. */
static bool find_c_frame(const struct sp_walk *walk, unsigned int n,
			 uintptr_t at, unsigned int *i)
{
	const struct sp_walk_registers *c = &walk->at[walk->first];
	void *const *pcs = &walk->pcs[walk->first];
	uintptr_t pc;

	if (at < c[*i].sp)
		return false;
	while (*i + 1 < n && c[*i + 1].sp <= at)
		++*i;
	/* Of the last one it is not known where it ends. */
	if (*i + 1 == n)
		return false;
	pc = (uintptr_t)pcs[*i] - 1;
	return pc >= interpreter.module->code_start &&
	       pc < interpreter.module->code_end;
}

static void set_c_frame(struct sp_python *python, unsigned int from,
			unsigned int run_by)
{
	for (unsigned int k = from; k < python->n; k++)
		python->frames[k].run_by = run_by;
}

/* Each invocation of the loop has a record, and its outermost frame a mark. */
static void follow_records(struct sp_python *python, const struct sp_walk *walk,
			   unsigned int n, uintptr_t record)
{
	unsigned int i = 0, steps = 0;
	uintptr_t frame;

	while (find_c_frame(walk, n, record, &i) &&
	       read_word(python, record + interpreter.layout.record_frame,
			 &frame)) {
		const unsigned int from = python->n;
		bool is_entry = false;

		while (frame && !is_entry) {
			if (steps++ == STEPS_MAX || !take_frame(python, frame))
				break;
			is_entry = byte_at(frame +
					   interpreter.layout.frame_is_entry);
			if (!read_word(
				    python,
				    frame + interpreter.layout.frame_previous,
				    &frame))
				frame = 0;
		}
		set_c_frame(python, from, i);
		if (!is_entry ||
		    !read_word(python,
			       record + interpreter.layout.record_previous,
			       &record))
			break;
		i++;
	}
}

/* Each invocation of the loop has a frame of its own on the C stack, behind the
 * outermost one that it runs. */
static void follow_frames(struct sp_python *python, const struct sp_walk *walk,
			  unsigned int n, uintptr_t frame)
{
	unsigned int i = 0, from = 0, steps = 0;

	/* Those beyond the depth are passed over: whose the others are is known
	 * at the end. */
	while (frame && steps++ < STEPS_MAX &&
	       is_readable(python, frame,
			   interpreter.layout.frame_owner + 1u)) {
		if (byte_at(frame + interpreter.layout.frame_owner) <
		    OWNER_LOOP) {
			if (python->n < SP_LANE_DEPTH &&
			    !take_frame(python, frame))
				break;
		} else {
			if (!find_c_frame(walk, n, frame, &i))
				break;
			set_c_frame(python, from, i++);
			from = python->n;
		}
		if (!read_word(python,
			       frame + interpreter.layout.frame_previous,
			       &frame))
			break;
	}
	/* Whose they are is not known. */
	python->n = from;
}

/*
 * When the interpreter ends, it frees what it knows of other threads, which may
 * go on where they do not need it: without its lock.  It says so before.
 */
static bool is_ended(uintptr_t thread)
{
	const uintptr_t ending = *(
		const sp_stack_bounds_word *)(interpreter.state +
					      interpreter.layout.ending_thread);

	return ending && ending != thread;
}

/* Is the interpreter's code in the walk, and the object still there? */
static bool meets_code(const struct sp_walk *walk, unsigned int n)
{
	void *const *pcs = &walk->pcs[walk->first];

	for (unsigned int i = 0; i < n; i++) {
		const uintptr_t pc = (uintptr_t)pcs[i] - 1;

		if (pc - interpreter.module->code_start <
		    interpreter.module->code_end -
			    interpreter.module->code_start)
			return interpreter.module->permanent ||
			       (sp_modules_find(pc, NULL) ==
					interpreter.module &&
				interpreter.module->id ==
					interpreter.module_id);
	}
	return false;
}

const struct sp_python *sp_python_walk(struct sp_lane *lane,
				       const struct sp_walk *walk,
				       unsigned int n,
				       struct sp_walk_hash *hash)
{
	struct sp_python *python = lane->python;
	uintptr_t thread, at;

	if (!sp_python_is_known() || !walk->at || !meets_code(walk, n))
		return NULL;
	if (!python)
		lane->python = python =
			sp_arena_get(SP_ARENA_PYTHON, sizeof(*python));
	if (!python)
		return NULL;
	python->n = 0;
	thread = (uintptr_t)interpreter.this_thread();
	if (!thread || is_ended(thread) ||
	    !read_word(python, thread + interpreter.layout.thread_id, &at) ||
	    at != sp_arch_thread())
		return NULL;
	if (interpreter.layout.thread_record != SP_PYTHON_NONE) {
		if (read_word(python, thread + interpreter.layout.thread_record,
			      &at))
			follow_records(python, walk, n, at);
	} else if (read_word(python, thread + interpreter.layout.thread_frame,
			     &at)) {
		follow_frames(python, walk, n, at);
	}
	if (!python->n)
		return NULL;
	for (unsigned int i = 0; i < python->n; i++) {
		const struct sp_python_frame *f = &python->frames[i];

		*hash = sp_walk_hash_add(
			*hash, (const void *)(f->print + f->unit +
					      ((uint64_t)f->run_by << 48)));
	}
	return python;
}

/* ---- names ---- */

/* An entry of the table of lines: a number of 6-bit pieces, the lowest first.
 */
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

/* 0: not known. */
static uint32_t line_of(struct sp_python *python,
			const struct sp_python_frame *frame)
{
	uint32_t line = half_at(frame->code + interpreter.layout.code_line);
	uint64_t units = 0;
	uintptr_t table, length;
	const uint8_t *at, *end;

	if (frame->unit == SP_PYTHON_BEGIN)
		return line;
	if (!read_word(python, frame->code + interpreter.layout.code_table,
		       &table) ||
	    !read_word(python, table + interpreter.layout.bytes_length,
		       &length) ||
	    length > TABLE_MAX ||
	    !is_readable(python, table + interpreter.layout.bytes_data, length))
		return 0;
	at = (const uint8_t *)(table + interpreter.layout.bytes_data);
	end = at + length;
	while (at < end) {
		const unsigned int form = *at >> 3 & 15;

		units += (*at++ & 7) + 1u;
		if (form != FORM_NO_LINE)
			line += (uint32_t)take_step(&at, end, form);
		if (units > frame->unit)
			return form == FORM_NO_LINE ? 0 : line;
	}
	return 0;
}

bool sp_python_name(struct sp_lane *lane, const struct sp_python_frame *frame,
		    struct sp_python_name *ret)
{
	static const char start[] = "py::";
	struct sp_python *python = lane->python;
	const size_t n = sizeof(start) - 1;
	uintptr_t name, file;
	struct text text;

	if (!read_word(python, frame->code + interpreter.layout.code_name,
		       &name) ||
	    !read_word(python, frame->code + interpreter.layout.code_file,
		       &file) ||
	    !read_text(python, name, &text))
		return false;
	memcpy(python->function, start, n);
	*ret = (struct sp_python_name){
		.function = python->function,
		.function_bytes = n + write_text(python->function + n,
						 sizeof(python->function) - n,
						 &text, false),
		.file = python->file,
	};
	if (!read_text(python, file, &text))
		return false;
	ret->file_bytes =
		write_text(python->file, sizeof(python->file), &text, true);
	ret->line = line_of(python, frame);
	return true;
}

/* ---- which interpreter ---- */

void sp_python_meet(struct sp_module_entry *e)
{
	int was = UNKNOWN;

	/* Another thread may be asking: then it is for the next walk. */
	if (sp_python_is_known() ||
	    !atomic_compare_exchange_strong(&state, &was, MEETING))
		return;
	atomic_store(&e->was_asked_for_python, true);
	atomic_store_explicit(&state,
			      sp_python_layout_find(e, &interpreter, unread)
				      ? KNOWN
				      : UNKNOWN,
			      memory_order_release);
}
