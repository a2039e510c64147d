/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_FILE_STACK_H
#define SP_AGENT_FILE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread/frame.h"
#include "agent/unwind/lane.h"

/* A call stack on its way to an id. */
struct sp_stack_walk {
	/* Return addresses, innermost first, without this library's own: of
	 * the lane. */
	void *const *pcs;
	unsigned int n; /* 0: there was no memory for it */
	uint32_t flags; /* SP_STACK_* */
	/* Of these and of the next one outside, if that was cut off. */
	struct sp_walk_hash hash;
	unsigned int modules; /* that were known when it began */
	/* Of a resolved walk: all its frames are in objects that are never
	 * unloaded, so that the addresses always mean the same. */
	bool is_permanent;
};

/* Follow frame pointers from now on, and nothing else.  Context: cold. */
void sp_stack_follow_pointers(void);

/* Who finds the stacks: "tables" or "fp". */
const char *sp_stack_unwinder(void);

/*
 * The program's call stack above `frame`, at most `depth` frames of it.
 * Context: sampled.
 */
void sp_stack_walk(struct sp_lane *lane, unsigned int depth,
		   const struct sp_call_frame *frame,
		   struct sp_stack_walk *ret);

/*
 * Resolve each address to its object: lane->frames[0..n).  If the stack was not
 * unwound it is the one frame that `frame` returns to.  May have to walk again,
 * since walking through an object that nobody knew was guesswork.  Afterwards n
 * is 1..depth.  Context: as above.
 */
void sp_stack_resolve(struct sp_lane *lane, unsigned int depth,
		      const struct sp_call_frame *frame,
		      struct sp_stack_walk *walk);

#endif
