/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/arch.h"
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
	/* What Python runs in these frames, or NULL: of the lane. */
	const struct sp_python *python;
	unsigned int modules; /* that were known when it began */
	uint32_t unloads;     /* sp_modules_unloads() then */
	/* Of a resolved walk: all its frames are in objects that are never
	 * unloaded, or not without a change of `unloads`, so that the addresses
	 * mean the same. */
	bool is_permanent;
};

/* How stacks are found from now on.  Context: cold. */
enum sp_stack_way { SP_STACK_TABLES, SP_STACK_POINTERS, SP_STACK_LIBUNWIND };
void sp_stack_follow(enum sp_stack_way way);

/* The name of that: "tables", "fp" or "libunwind". */
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
 * since walking through an unknown object was guesswork.  Afterwards n
 * is 1..depth.  Context: as above.
 */
void sp_stack_resolve(struct sp_lane *lane, unsigned int depth,
		      const struct sp_call_frame *frame,
		      struct sp_stack_walk *walk);
