/* SPDX-License-Identifier: MIT */
#include "agent/file/places.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/file/idtable.h"
#include "agent/file/writer.h"
#include "agent/sys/arena.h"
#include "agent/sys/diag.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/python.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

/*
 * A place is a line of a function, by a hash of what it is called: the same in
 * all processes.  Which of them the file has is in a table; in front of that is
 * what was found last, so that a place has to be named once.
 *
 * I1  The two words of a pair prove each other: the first is the key exclusive-
 *     or the second, the place.  No place is 0.
 */
static struct sp_idtable table;

#define PAIRS    4096u /* a power of two */
#define FOR_GOOD 1u    /* the segment of all permanent records */
#define WRITTEN  1u

struct pair {
	_Atomic uint64_t check, place;
};

/* NULL: not needed so far, or there was no memory. */
static _Atomic(struct pair *) pairs;

static _Atomic bool has_said_unread;

static struct pair *get_pairs(void)
{
	struct pair *none = NULL,
		    *all = atomic_load_explicit(&pairs, memory_order_acquire);

	if (all)
		return all;
	all = sp_arena_get(SP_ARENA_PYTHON, PAIRS * sizeof(*all));
	/* Another thread may be first: then some memory is lost. */
	if (all && !atomic_compare_exchange_strong(&pairs, &none, all))
		all = none;
	return all;
}

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

static uint64_t hash_name(const struct sp_python_name *name)
{
	uint64_t h = sp_hash_word(name->function_bytes, name->line);

	h = sp_hash_bytes(h, name->function, name->function_bytes);
	h = sp_hash_bytes(h, name->file, name->file_bytes);
	return h >> 2 | 1; /* within the object */
}

static bool write_place(struct sp_lane *lane, uint64_t place,
			const struct sp_python_name *name)
{
	struct sp_record r = {.type = SP_RECORD_CODE};

	r.u.code = (struct sp_record_code){
		.frame = {object.id, place},
		.line = name->line,
		.function = name->function,
		.function_bytes = name->function_bytes,
		.file = name->file,
		.file_bytes = name->file_bytes,
	};
	return sp_writer_append(lane, &r);
}

/* Of a frame that is not in a pair; 0: it has no name, or no room. */
static uint64_t find_place(struct sp_lane *lane,
			   const struct sp_python_frame *frame)
{
	struct sp_python_name name;
	struct sp_idtable_key key;
	uint64_t place;

	if (!sp_python_name(lane, frame, &name)) {
		sp_diag_lose(SP_LOSS_PYTHON, 1);
		return 0;
	}
	place = hash_name(&name);
	key = sp_idtable_key(&table, 0, 0, place, 0);
	if (sp_idtable_find(&table, &key, FOR_GOOD))
		return place;
	if (!write_place(lane, place, &name)) {
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
		return 0;
	}
	sp_idtable_put(&table, &key, WRITTEN, FOR_GOOD);
	return place;
}

static uint64_t place_of(struct sp_lane *lane,
			 const struct sp_python_frame *frame)
{
	const uint64_t key =
		sp_idtable_key(&table, 0, 0, frame->print, frame->unit).check;
	struct pair *all = get_pairs(), *pair;
	uint64_t place;

	if (!all)
		return find_place(lane, frame);
	pair = &all[(key >> 40) % PAIRS];
	place = atomic_load_explicit(&pair->place, memory_order_relaxed);
	if (place && (atomic_load_explicit(&pair->check, memory_order_relaxed) ^
		      place) == key)
		return place;
	place = find_place(lane, frame);
	if (place) {
		atomic_store_explicit(&pair->check, key ^ place,
				      memory_order_relaxed);
		atomic_store_explicit(&pair->place, place,
				      memory_order_relaxed);
	}
	return place;
}

/* The place of each Python frame goes where its hash was, 0 if the file has no
 * room.  Returns how many have one. */
static unsigned int place_frames(struct sp_lane *lane)
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
	to = walk->n + place_frames(lane);
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

void sp_places_say_unread(struct sp_lane *lane)
{
	char version[SP_PYTHON_VERSION_MAX];

	if (sp_python_unread(version) && !atomic_load(&has_said_unread) &&
	    sp_writer_is_open() && !atomic_exchange(&has_said_unread, true))
		sp_writer_info(lane, "python.unread", version, strlen(version));
}

void sp_places_reset(void)
{
	sp_python_reset();
	atomic_store(&has_said_unread, false);
	sp_idtable_reset(&table);
}
