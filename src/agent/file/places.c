/* SPDX-License-Identifier: MIT */
#include "agent/file/places.h"

#include <stdatomic.h>

#include "agent/file/chunks.h"
#include "agent/file/idtable.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/python.h"

#include "agent/sys/poison.h"

/* Numbers of places, in the one segment that permanent records are in.  Threads
 * that meet a new place at the same moment both give it a number. */
static struct sp_idtable table;
static _Atomic uint32_t last_number;

#define FOR_GOOD 1u /* any but 0 */

/* An object where no address is, so that no place of another one is near. */
static struct sp_module_entry object = {
	.start = 1ull << 63,
	.end = 3ull << 62,
	.bias = 1ull << 63,
	.name = SP_FORMAT_PYTHON,
	.path = SP_FORMAT_PYTHON,
};

static void write_object(struct sp_lane *lane)
{
	uint32_t none = 0;

	/* Another thread may be first. */
	if (!atomic_load(&object.id))
		atomic_compare_exchange_strong(&object.id, &none,
					       sp_modules_take_id());
	sp_writer_module(lane, &object);
}

/* 0: there is no room in the file. */
static uint32_t write_place(struct sp_lane *lane,
			    const struct sp_python_frame *frame)
{
	struct sp_record r = {.type = SP_RECORD_CODE};
	const uint32_t number = atomic_fetch_add(&last_number, 1) + 1;
	struct sp_python_name name;

	if (!sp_python_name(lane, frame, &name))
		return 0;
	r.u.code = (struct sp_record_code){
		.frame = {object.id, number},
		.line = name.line,
		.function = name.function,
		.function_bytes = name.function_bytes,
		.file = name.file,
		.file_bytes = name.file_bytes,
	};
	if (number == 0 || !sp_writer_append(lane, &r)) {
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
		return 0;
	}
	return number;
}

static uint32_t place_of(struct sp_lane *lane,
			 const struct sp_python_frame *frame)
{
	const struct sp_idtable_key key = sp_idtable_key(
		&table, 0, 0, frame->print, sp_python_line(lane, frame));
	uint32_t number = sp_idtable_find(&table, &key, FOR_GOOD);

	if (number)
		return number;
	number = write_place(lane, frame);
	if (number)
		sp_idtable_put(&table, &key, number, FOR_GOOD);
	return number;
}

/* The number of each Python frame goes where its hash was, 0 if the file has no
 * room.  Returns how many have one. */
static unsigned int number_frames(struct sp_lane *lane)
{
	struct sp_python *python = lane->python;
	unsigned int n = 0;

	for (unsigned int i = 0; i < python->n; i++) {
		python->frames[i].print = place_of(lane, &python->frames[i]);
		n += python->frames[i].print != 0;
	}
	return n;
}

void sp_places_merge(struct sp_lane *lane, unsigned int depth,
		     struct sp_stack_walk *walk)
{
	const struct sp_python *python = walk->python;
	unsigned int from = walk->n, i = python->n, to;

	write_object(lane);
	to = walk->n + number_frames(lane);
	if (to > depth)
		walk->flags = SP_STACK_TRUNCATED;
	walk->n = to < depth ? to : depth;
	/* From the outermost on, so that none is overwritten before it moved.
	 */
	while (from--) {
		for (; i && python->frames[i - 1].run_by == from; i--)
			if (python->frames[i - 1].print && --to < depth)
				lane->frames[to] = (struct sp_record_frame){
					object.id, python->frames[i - 1].print};
		if (--to < depth)
			lane->frames[to] = lane->frames[from];
	}
}

void sp_places_reset(void)
{
	sp_idtable_reset(&table);
}
