/* SPDX-License-Identifier: MIT */
#include "agent/file/stack.h"

#include "agent/file/places.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/unwind/cfi_index.h"
#include "agent/unwind/framewalk.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/peer.h"
#include "agent/unwind/python.h"

#include "agent/sys/poison.h"

/* Objects that a single stack may bring along before it is taken as it is. */
#define RETRIES 16

static enum sp_stack_way way;

/* True: all of them are in objects that stay; `watched`: those of which an
 * unloading is noticed do. */
static bool resolve_pcs(struct sp_lane *lane, void *const *pcs, unsigned int n,
			bool watched)
{
	struct sp_module_entry *e = NULL, *last = NULL;
	bool is_permanent = true;

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t pc = (uintptr_t)pcs[i];

		/* The call is before the return address; a call at the very
		 * end of an object must not fall into the next one. */
		e = sp_modules_find(pc - 1, last);
		if (e && e != last) {
			sp_writer_module(lane, e);
			if (e->asked_for_python != e->id)
				sp_python_meet(e);
		}
		last = e;
		is_permanent &= e && (watched || e->permanent);
		lane->frames[i].module = e ? e->id : 0;
		lane->frames[i].offset = e ? pc - e->start : pc;
	}
	return is_permanent;
}

static void caller_only(struct sp_lane *lane, const struct sp_call_frame *frame,
			struct sp_stack_walk *walk)
{
	lane->caller = frame->pc;
	resolve_pcs(lane, &lane->caller, 1, false);
	sp_diag_lose(SP_LOSS_UNWIND_FAILED, 1);
	*walk = (struct sp_stack_walk){
		.pcs = &lane->caller, .n = 1, .flags = SP_STACK_CALLER_ONLY};
}

void sp_stack_follow(enum sp_stack_way wanted)
{
	way = wanted;
	if (way == SP_STACK_POINTERS)
		sp_cfi_index_forbid();
}

const char *sp_stack_unwinder(void)
{
	static const char *const names[] = {
		[SP_STACK_TABLES] = "tables",
		[SP_STACK_POINTERS] = "fp",
		[SP_STACK_LIBUNWIND] = "libunwind",
	};

	return names[way];
}

static __attribute__((noinline)) const struct sp_walk *walk_otherwise(
	struct sp_lane *lane, const struct sp_call_frame *frame,
	unsigned int max, bool *is_cut)
{
	const struct sp_walk *walk;

	if (way == SP_STACK_POINTERS)
		return sp_framewalk_pointers(lane, frame, max, is_cut);
	walk = sp_framewalk_tables(lane, frame, max, is_cut);
	return walk ? sp_peer_walk(lane, frame, max, walk, is_cut) : NULL;
}

void sp_stack_walk(struct sp_lane *lane, unsigned int depth,
		   const struct sp_call_frame *frame, struct sp_stack_walk *ret)
{
	const uint32_t unloads = sp_modules_unloads();
	const struct sp_walk *walk;
	bool is_cut = false;

	if (way == SP_STACK_TABLES)
		walk = sp_framewalk_tables(lane, frame, depth + 1, &is_cut);
	else
		walk = walk_otherwise(lane, frame, depth + 1, &is_cut);
	if (!walk) {
		*ret = (struct sp_stack_walk){.n = 0};
		return;
	}
	*ret = (struct sp_stack_walk){
		.pcs = walk->pcs + walk->first,
		.n = walk->n,
		.flags = is_cut ? SP_STACK_NO_POINTER : 0,
		.hash = walk->hashes[walk->first],
		.modules = walk->modules,
		.unloads = unloads,
	};
	if (walk->n > depth) {
		ret->n = depth;
		ret->flags = SP_STACK_TRUNCATED;
	}
	if (sp_python_count())
		ret->python = sp_python_walk(lane, walk, ret->n, &ret->hash);
}

void sp_stack_resolve(struct sp_lane *lane, unsigned int depth,
		      const struct sp_call_frame *frame,
		      struct sp_stack_walk *walk)
{
	for (int attempt = 0; walk->n; attempt++) {
		const unsigned int pythons = sp_python_count();
		bool is_permanent =
			resolve_pcs(lane, walk->pcs, walk->n, walk->unloads);

		if ((sp_modules_count() == walk->modules &&
		     sp_python_count() == pythons) ||
		    attempt == RETRIES) {
			walk->is_permanent = is_permanent;
			sp_places_say_unread(lane);
			if (walk->python)
				sp_places_merge(lane, depth, walk);
			return;
		}
		sp_stack_walk(lane, depth, frame, walk);
	}
	caller_only(lane, frame, walk);
}
