/* SPDX-License-Identifier: MIT */
/*
 * I1  A thread changes its own frames only, and here it stands still: so what
 *     they lead to is alive (python_memory.h).
 * I2  Nothing is said of a frame unless its code object has the type of code
 *     objects, and the interpreter's record of the C frame that runs it lies
 *     within that C frame, further out than the last.  Where there is no such
 *     record there are as many frames as invocations of the loop.
 */
#include "agent/unwind/python.h"

#include <pthread.h>

#include "agent/sys/arena.h"
#include "agent/sys/diag.h"
#include "agent/unwind/python_memory.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

#define INTERPRETERS 8u
#define TEXT_PRINTED 64u    /* bytes of a text that tell it from others */
#define STEPS_MAX    20000u /* frames of Python */

/* Frames of these owners are the loop's own. */
#define OWNER_LOOP 3u

/* In the order of their meeting; each stays as it was then. */
static struct sp_python_interpreter interpreters[INTERPRETERS];
static _Atomic unsigned int n_interpreters;
static _Atomic bool is_meeting;
static _Atomic uint64_t unread; /* a text */

unsigned int sp_python_count(void)
{
	return atomic_load_explicit(&n_interpreters, memory_order_acquire);
}

bool sp_python_unread(char ret[SP_PYTHON_VERSION_MAX])
{
	const uint64_t text = atomic_load(&unread);

	memcpy(ret, &text, sizeof(text));
	return text != 0;
}

/* ---- frames ---- */

static uint64_t hash_text(uint64_t h, const struct sp_python_text *t)
{
	const size_t bytes = t->n * t->width;
	const size_t n = bytes < TEXT_PRINTED ? bytes : TEXT_PRINTED;

	/* The ends of paths differ. */
	return sp_hash_word(
		sp_hash_bytes(h, (const uint8_t *)t->at + bytes - n, n), bytes);
}

/* A hash of what a code object says; false: it is none, or, which is a loss, it
 * cannot be read. */
static bool read_code(struct sp_python *python, uintptr_t code,
		      uint64_t *ret_print)
{
	const struct sp_python_layout *layout = &python->in->layout;
	uintptr_t file, name;
	struct sp_python_text name_text, file_text;
	uint64_t h;

	if (!sp_python_is_readable(python, code, layout->code_bytes)) {
		python->is_lost = true;
		return false;
	}
	file = sp_python_word(code + layout->code_file);
	name = sp_python_word(code + layout->code_name);
	/* The interpreter's own, which end a call, have one for both. */
	if (sp_python_word(code + layout->object_type) !=
		    python->in->type_of_code ||
	    file == name)
		return false;
	if (!sp_python_read_text(python, name, &name_text) ||
	    !sp_python_read_text(python, file, &file_text)) {
		python->is_lost = true;
		return false;
	}
	h = sp_hash_word(sp_hash_word(0, code),
			 sp_python_word(code + layout->code_table));
	h = sp_hash_word(h, sp_python_half(code + layout->code_line));
	*ret_print = hash_text(hash_text(h, &name_text), &file_text);
	return true;
}

/*
 * Where the instructions of a frame are; 0: not known.  Without a lock each
 * thread may run a copy of its own.  The table of the copies may be another's
 * to free, unless this thread is in the interpreter.
 */
static uintptr_t find_instructions(struct sp_python *python, uintptr_t at,
				   uintptr_t code)
{
	const struct sp_python_layout *layout = &python->in->layout;
	uintptr_t copies, n, copy;
	uint32_t index;

	if (layout->frame_copy == SP_PYTHON_NONE ||
	    !sp_python_is_readable(python, at + layout->frame_copy,
				   sizeof(index)))
		return code + layout->code_bytes;
	index = sp_python_half(at + layout->frame_copy);
	if (!index)
		return code + layout->code_bytes;
	return python->in->present_thread && python->in->present_thread() &&
			       sp_python_read(python,
					      code + layout->code_copies,
					      &copies) &&
			       sp_python_read(python, copies, &n) &&
			       index < n &&
			       sp_python_read(python,
					      copies + (index + 1) *
							       sizeof(copy),
					      &copy)
		       ? copy
		       : 0;
}

static uint32_t find_unit(struct sp_python *python, uintptr_t at,
			  uintptr_t code)
{
	const struct sp_python_layout *layout = &python->in->layout;
	const bool is_number = layout->way >= SP_PYTHON_BY_RECORD;
	uintptr_t instruction, begin;

	if (!sp_python_is_readable(python, at + layout->frame_instruction,
				   sizeof(instruction)))
		return SP_PYTHON_NOWHERE;
	if (is_number) {
		const int32_t last =
			(int32_t)sp_python_half(at + layout->frame_instruction);

		return last < 0                           ? SP_PYTHON_BEGIN
		       : layout->way == SP_PYTHON_BY_LOOP ? (uint32_t)last / 2
							  : (uint32_t)last;
	}
	begin = find_instructions(python, at, code);
	instruction = sp_python_word(at + layout->frame_instruction);
	if (begin && instruction < begin)
		return SP_PYTHON_BEGIN;
	return begin && (instruction - begin) / 2 < SP_PYTHON_NOWHERE
		       ? (uint32_t)((instruction - begin) / 2)
		       : SP_PYTHON_NOWHERE;
}

/* The frame at `at` as one of the walk.  False: it cannot be read, or there is
 * no room. */
static bool take_frame(struct sp_python *python, uintptr_t at)
{
	struct sp_python_frame *frame = &python->frames[python->n];
	uintptr_t code;

	if (python->n == SP_LANE_DEPTH ||
	    !sp_python_read(python, at + python->in->layout.frame_code, &code))
		return false;
	/* Its lowest bits may say who holds it. */
	frame->code = code &= ~(uintptr_t)7;
	if (!read_code(python, code, &frame->print))
		return true; /* no function: passed over */
	frame->unit = find_unit(python, at, code);
	python->n++;
	return true;
}

/* A walk, and the frame of it that is looked at. */
struct place {
	const struct sp_walk_registers *c;
	void *const *pcs;
	unsigned int n, i;
	const struct sp_module_entry *module;
};

/* Is the C frame one of the interpreter's? */
static bool is_in_interpreter(const struct place *at)
{
	const uintptr_t pc = (uintptr_t)at->pcs[at->i] - 1;

	return pc - at->module->code_start <
	       at->module->code_end - at->module->code_start;
}

/* Go out to the frame of the C stack that `record` lies in; false: it is in
 * none, or in the last one, of which it is not known where it ends. */
static bool go_out(struct place *at, uintptr_t record)
{
	if (record < at->c[at->i].sp)
		return false;
	while (at->i + 1 < at->n && at->c[at->i + 1].sp <= record)
		at->i++;
	return at->i + 1 < at->n;
}

static void set_c_frame(struct sp_python *python, unsigned int from,
			unsigned int run_by)
{
	for (unsigned int k = from; k < python->n; k++)
		python->frames[k].run_by = run_by;
}

/* Each invocation of the loop has a record, and its outermost frame a mark. */
static void follow_entries(struct sp_python *python, struct place *at,
			   uintptr_t record)
{
	const struct sp_python_layout *layout = &python->in->layout;
	unsigned int steps = 0;
	uintptr_t frame;

	while (go_out(at, record) && is_in_interpreter(at) &&
	       sp_python_read(python, record + layout->record_frame, &frame)) {
		const unsigned int from = python->n;
		bool is_entry = false;

		while (frame && !is_entry) {
			if (steps++ == STEPS_MAX || !take_frame(python, frame))
				break;
			is_entry =
				sp_python_byte(frame + layout->frame_is_entry);
			if (!sp_python_read(python,
					    frame + layout->frame_previous,
					    &frame))
				frame = 0;
		}
		set_c_frame(python, from, at->i++);
		if (!is_entry ||
		    !sp_python_read(python, record + layout->record_previous,
				    &record))
			break;
	}
}

/* Each invocation of the loop has a frame of its own on the C stack, behind the
 * outermost one that it runs. */
static void follow_frames(struct sp_python *python, struct place *at,
			  uintptr_t frame)
{
	const struct sp_python_layout *layout = &python->in->layout;
	unsigned int from = 0, steps = 0;

	/* Those beyond the depth are passed over: whose the others are is known
	 * at the end. */
	while (frame && steps++ < STEPS_MAX &&
	       sp_python_is_readable(python, frame, layout->frame_owner + 1u)) {
		if (sp_python_byte(frame + layout->frame_owner) < OWNER_LOOP) {
			if (python->n < SP_LANE_DEPTH &&
			    !take_frame(python, frame))
				break;
		} else {
			if (!go_out(at, frame) || !is_in_interpreter(at))
				break;
			set_c_frame(python, from, at->i++);
			from = python->n;
		}
		if (!sp_python_read(python, frame + layout->frame_previous,
				    &frame))
			break;
	}
	/* Whose they are is not known. */
	python->n = from;
}

/* Go out to the C frame of the next invocation of the loop, by the records.
 * One beyond the walk is taken on trust: nothing is said of it. */
static bool go_to_record(struct sp_python *python, struct place *at,
			 uintptr_t *record, uintptr_t root)
{
	while (*record && *record != root) {
		if (at->i < at->n && !go_out(at, *record))
			at->i = at->n;
		if (!sp_python_read(python,
				    *record +
					    python->in->layout.record_previous,
				    record))
			return false;
		/* A library that switches stacks has a record of its own. */
		if (at->i == at->n || is_in_interpreter(at))
			return true;
	}
	return false;
}

static bool is_loop(const struct sp_python_interpreter *in, const void *pc)
{
	return (uintptr_t)pc - 1 - in->loop < in->loop_bytes;
}

/* The same by the addresses. */
static bool go_to_loop(const struct sp_python *python, struct place *at)
{
	while (at->i < at->n && !is_loop(python->in, at->pcs[at->i]))
		at->i++;
	return at->i < at->n;
}

/* An invocation of the loop runs one frame.  Whether each has its own shows at
 * the end. */
static void follow_pairs(struct sp_python *python, struct place *at,
			 uintptr_t thread, uintptr_t record, uintptr_t frame)
{
	const struct sp_python_layout *layout = &python->in->layout;
	const uintptr_t root = thread + layout->thread_root;
	const bool is_by_record = layout->way == SP_PYTHON_BY_RECORD;
	bool is_paired = true;

	for (unsigned int steps = 0;
	     is_paired &&
	     (is_by_record ? go_to_record(python, at, &record, root)
			   : go_to_loop(python, at));
	     steps++) {
		const unsigned int from = python->n;

		is_paired =
			frame && steps < STEPS_MAX &&
			(at->i == at->n || from == SP_LANE_DEPTH ||
			 take_frame(python, frame)) &&
			sp_python_read(python, frame + layout->frame_previous,
				       &frame);
		if (at->i < at->n)
			set_c_frame(python, from, at->i++);
	}
	if (!is_paired || frame)
		python->n = 0;
}

/* ---- a walk ---- */

/*
 * When the interpreter ends, it frees what it knows of other threads, which may
 * go on where they do not need it: without its lock.  It says so before.
 */
static bool is_ended(const struct sp_python_interpreter *in, uintptr_t thread)
{
	const uintptr_t ending =
		sp_python_word((uintptr_t)in->state + in->layout.ending_thread);

	return ending && ending != thread;
}

/* The interpreter whose code is in the walk, if the object is still there. */
static const struct sp_python_interpreter *find_interpreter(
	const struct sp_walk *walk, unsigned int n)
{
	const unsigned int known = sp_python_count();
	void *const *pcs = &walk->pcs[walk->first];

	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = known; k-- > 0;) {
			const struct sp_python_interpreter *in =
				&interpreters[k];
			const struct sp_module_entry *module = in->module;
			const uintptr_t pc = (uintptr_t)pcs[i] - 1;

			if (pc - module->code_start <
				    module->code_end - module->code_start &&
			    module->id == in->module_id &&
			    (module->permanent ||
			     sp_modules_find(pc, NULL) == module))
				return in;
		}
	return NULL;
}

static void follow_thread(struct sp_python *python, const struct sp_walk *walk,
			  unsigned int n)
{
	const struct sp_python_layout *layout = &python->in->layout;
	const uintptr_t thread = (uintptr_t)python->in->this_thread();
	struct place at = {
		.c = &walk->at[walk->first],
		.pcs = &walk->pcs[walk->first],
		.n = n,
		.module = python->in->module,
	};
	uintptr_t id, record = 0, frame = 0;

	if (!thread || is_ended(python->in, thread) ||
	    !sp_python_read(python, thread + layout->thread_id, &id) ||
	    id != (uintptr_t)pthread_self() ||
	    (layout->thread_record != SP_PYTHON_NONE &&
	     !sp_python_read(python, thread + layout->thread_record,
			     &record)) ||
	    (layout->thread_frame != SP_PYTHON_NONE &&
	     !sp_python_read(python, thread + layout->thread_frame, &frame)))
		return;
	switch (layout->way) {
	case SP_PYTHON_BY_OWNER:
		if (!record ||
		    sp_python_read(python, record + layout->record_frame,
				   &frame))
			follow_frames(python, &at, frame);
		break;
	case SP_PYTHON_BY_ENTRY:
		follow_entries(python, &at, record);
		break;
	case SP_PYTHON_BY_RECORD:
	case SP_PYTHON_BY_LOOP:
		follow_pairs(python, &at, thread, record, frame);
		break;
	}
}

/* Has an invocation of the loop no function of Python? */
static bool lacks_functions(const struct sp_python *python,
			    const struct sp_walk *walk, unsigned int n)
{
	void *const *pcs = &walk->pcs[walk->first];
	unsigned int k = 0;

	for (unsigned int i = 0; i < n && python->n < SP_LANE_DEPTH; i++) {
		while (k < python->n && python->frames[k].run_by < i)
			k++;
		if (is_loop(python->in, pcs[i]) &&
		    (k == python->n || python->frames[k].run_by != i))
			return true;
	}
	return false;
}

const struct sp_python *sp_python_walk(struct sp_lane *lane,
				       const struct sp_walk *walk,
				       unsigned int n,
				       struct sp_walk_hash *hash)
{
	const struct sp_python_interpreter *in = find_interpreter(walk, n);
	struct sp_python *python = lane->python;

	if (!in)
		return NULL;
	if (!python)
		lane->python = python =
			sp_arena_get(SP_ARENA_PYTHON, sizeof(*python));
	if (!python) {
		sp_diag_lose(SP_LOSS_PYTHON, 1);
		return NULL;
	}
	python->in = in;
	python->is_lost = false;
	python->n = 0;
	/* A walk of libunwind's may lack the registers. */
	if (walk->at)
		follow_thread(python, walk, n);
	if (python->is_lost || lacks_functions(python, walk, n))
		sp_diag_lose(SP_LOSS_PYTHON, 1);
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

/* ---- which interpreter ---- */

static void add_interpreter(struct sp_module_entry *e)
{
	const unsigned int n = sp_python_count();
	char text[SP_PYTHON_VERSION_MAX] = "";
	struct sp_python_interpreter found;
	uint64_t version;

	if (sp_python_layout_find(e, &found, text)) {
		if (n == INTERPRETERS) {
			sp_diag_lose(SP_LOSS_PYTHON, 1);
			return;
		}
		interpreters[n] = found;
		atomic_store_explicit(&n_interpreters, n + 1,
				      memory_order_release);
	}
	memcpy(&version, text, sizeof(version));
	if (version)
		atomic_store(&unread, version);
}

void sp_python_meet(struct sp_module_entry *e)
{
	/* Another thread may be asking: then it is for the next walk. */
	if (atomic_exchange(&is_meeting, true))
		return;
	atomic_store(&e->asked_for_python, e->id);
	add_interpreter(e);
	atomic_store(&is_meeting, false);
}

void sp_python_reset(void)
{
	atomic_store(&is_meeting, false);
}
