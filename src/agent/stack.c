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

static void resolve(struct sp_lane *lane, void *const *pcs, unsigned int n)
{
	struct sp_module_entry *e = NULL, *last = NULL;

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t pc = (uintptr_t)pcs[i];

		/* The call is before the return address; a call at the very
		 * end of an object must not fall into the next one. */
		e = sp_modules_find(pc - 1, last);
		if (e && e != last)
			sp_writer_module(lane, e);
		last = e;
		lane->frames[i].module = e ? e->id : 0;
		lane->frames[i].offset = e ? pc - e->start : pc;
	}
}

static unsigned int caller_only(struct sp_lane *lane, const void *caller,
				uint32_t *ret_flags)
{
	void *pc = (void *)(uintptr_t)caller;

	resolve(lane, &pc, 1);
	*ret_flags = SP_STACK_CALLER_ONLY;
	sp_diag_lose(sp_unwinder_why() ? SP_LOSS_UNWIND_EARLY
				       : SP_LOSS_UNWIND_FAILED,
		     1);
	return 1;
}

unsigned int sp_stack_capture(struct sp_lane *lane, unsigned int depth,
			      const void *caller, uint32_t *ret_flags)
{
	for (int attempt = 0;; attempt++) {
		unsigned int known = sp_modules_count();
		int n = sp_unwinder_trace(lane, (int)depth + OWN_FRAMES);
		int own = 0;
		unsigned int kept;

		while (own < n && sp_modules_is_self((uintptr_t)lane->pcs[own]))
			own++;
		if (n - own <= 0)
			return caller_only(lane, caller, ret_flags);
		kept = (unsigned int)(n - own);
		*ret_flags = 0;
		if (kept > depth || n == (int)depth + OWN_FRAMES) {
			*ret_flags = SP_STACK_TRUNCATED;
			if (kept > depth)
				kept = depth;
		}
		resolve(lane, lane->pcs + own, kept);
		/* Walking through an object that was not in the snapshot was
		 * guesswork. */
		if (sp_modules_count() == known || attempt == RETRIES)
			return kept;
	}
}
