/* SPDX-License-Identifier: MIT */
#include "agent/stack.h"

#include "agent/diag.h"
#include "agent/modules.h"
#include "agent/unwinder.h"
#include "agent/writer.h"

#include "agent/poison.h"

/* Frames of this library on top of the program's: a few, with room. */
#define OWN_FRAMES 8
/* Objects that a single stack may bring along before it is taken as it is. */
#define RETRIES 16

/* True: all of them are in permanent objects. */
static bool resolve(struct sp_lane *lane, void *const *pcs, unsigned int n)
{
	struct sp_module_entry *e = NULL, *last = NULL;
	bool is_permanent = true;

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t pc = (uintptr_t)pcs[i];

		/* The call is before the return address; a call at the very
		 * end of an object must not fall into the next one. */
		e = sp_modules_find(pc - 1, last);
		if (e && e != last)
			sp_writer_module(lane, e);
		last = e;
		is_permanent &= e && e->permanent;
		lane->frames[i].module = e ? e->id : 0;
		lane->frames[i].offset = e ? pc - e->start : pc;
	}
	return is_permanent;
}

static void caller_only(struct sp_lane *lane, const void *caller,
			struct sp_stack_walk *walk)
{
	lane->pcs[0] = (void *)(uintptr_t)caller;
	resolve(lane, lane->pcs, 1);
	*walk = (struct sp_stack_walk){
		.pcs = lane->pcs, .n = 1, .flags = SP_STACK_CALLER_ONLY};
	sp_diag_lose(sp_unwinder_why() ? SP_LOSS_UNWIND_EARLY
				       : SP_LOSS_UNWIND_FAILED,
		     1);
}

void sp_stack_walk(struct sp_lane *lane, unsigned int depth,
		   struct sp_stack_walk *ret)
{
	unsigned int max = depth + OWN_FRAMES, n, own = 0;

	ret->modules = sp_modules_count();
	n = (unsigned int)sp_unwinder_trace(lane, (int)max);
	while (own < n && sp_modules_is_self((uintptr_t)lane->pcs[own]))
		own++;
	ret->pcs = lane->pcs + own;
	ret->n = n - own;
	ret->flags = n == max || ret->n > depth ? SP_STACK_TRUNCATED : 0;
	if (ret->n > depth)
		ret->n = depth;
	ret->is_permanent = false;
}

void sp_stack_resolve(struct sp_lane *lane, unsigned int depth,
		      const void *caller, struct sp_stack_walk *walk)
{
	for (int attempt = 0; walk->n; attempt++) {
		bool is_permanent = resolve(lane, walk->pcs, walk->n);

		if (sp_modules_count() == walk->modules || attempt == RETRIES) {
			walk->is_permanent = is_permanent;
			return;
		}
		sp_stack_walk(lane, depth, walk);
	}
	caller_only(lane, caller, walk);
}
