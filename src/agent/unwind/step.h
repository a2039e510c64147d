/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/arch.h"
#include "agent/unwind/cfi.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/stack_bounds.h"

/* A record that is further away may be on another stack. */
#define SP_STEP_NEAR_BYTES (1ul << 20)

/* What matters of a thread that goes on at pc (an address as in cfi.h). */
struct sp_step_position {
	uintptr_t pc;
	struct sp_walk_registers at;
};

enum sp_step_outcome {
	SP_STEP_WENT,  /* there is a caller, and the position is there */
	SP_STEP_ENDED, /* this was the outermost frame */
	SP_STEP_LOST,  /* there is one, which cannot be found */
	SP_STEP_WRONG, /* this is no frame: a caller was not found before */
};

/* One way up the stack. */
struct sp_step_way {
	struct sp_lane *lane;
	const struct sp_call_frame *from;  /* where it begins */
	struct sp_stack_bounds_span stack; /* what is known to be readable */
	struct sp_stack_bounds_span code;  /* likewise, of code in no object */
	struct sp_module_entry *module;    /* of the last address */
	uintptr_t checked; /* the address that was last found to be code */
	uintptr_t
		interrupted; /* that of the last frame that a signal came to */
	/* Of the frame at which all were needed last, if has_registers. */
	struct sp_cfi_registers registers;
	bool has_registers;
};

/* Where the program called, and the way from there. */
static inline struct sp_step_position sp_step_begin(
	struct sp_step_way *way, struct sp_lane *lane,
	const struct sp_call_frame *from)
{
	way->lane = lane;
	way->from = from;
	way->stack = sp_stack_bounds_around(lane->stacks, (uintptr_t)from);
	way->code = (struct sp_stack_bounds_span){0, 0, 0};
	way->module = NULL;
	way->checked = (uintptr_t)from->pc;
	way->interrupted = 0;
	way->has_registers = false;
	return (struct sp_step_position){
		.pc = (uintptr_t)from->pc,
		.at = {sp_call_frame_end(from), (uintptr_t)from->up, NULL,
		       NULL},
	};
}

/*
 * To the caller of a frame whose rule is `known`, none of those that two loads
 * and an addition follow; SP_CFI_UNKNOWN: it is looked up, and kept once it has
 * led to where a caller can be.  *recorded is the frame's address as the walk
 * has it, and made one more if the frame's is that of an instruction itself.
 * Context: sampled.
 */
enum sp_step_outcome sp_step_slowly(struct sp_step_way *way,
				    struct sp_step_position *p,
				    const struct sp_cfi_rule *known,
				    void **recorded);

/* Is `at` on the stack of `sp`, above it, as far as that is known? */
static inline bool sp_step_is_above(struct sp_step_way *way, uintptr_t sp,
				    uintptr_t at)
{
	return at - sp <= SP_STEP_NEAR_BYTES ||
	       sp_stack_bounds_reach(&way->stack, sp, at);
}

/* Can this be the address of a frame?  Then it is checked.  Context: sampled.
 */
bool sp_step_is_code(struct sp_step_way *way, uintptr_t pc);

/* Is that what a signal handler returns to?  If so, in whichever object. */
bool sp_step_is_trampoline(struct sp_step_way *way, uintptr_t pc);

/* Can a call have left this address?  It is behind one, in the code of an
 * object.  Context: sampled. */
bool sp_step_find_return_address(struct sp_lane *lane, uintptr_t pc);

/* The same; most of them are known. */
static inline bool sp_step_is_return_address(struct sp_lane *lane, uintptr_t pc)
{
	return (pc && lane->returns[(pc >> 1) % SP_LANE_RETURNS] == pc) ||
	       sp_step_find_return_address(lane, pc);
}

/* To the caller's, whose stack pointer and return address that are; false: the
 * latter cannot be read. */
static inline bool sp_step_to(struct sp_step_way *way,
			      struct sp_step_position *p, uintptr_t sp,
			      uintptr_t pc_at)
{
	uintptr_t pc;

	if (!sp_stack_bounds_read(&way->stack, pc_at, &pc))
		return false;
	p->pc = sp_arch_return(pc);
	p->at.sp = sp;
	p->at.pc_at = (const uintptr_t *)pc_at;
	return true;
}

/* To the caller's by what most rules say: false: that is no frame.  Context:
 * sampled. */
static inline bool sp_step_simply(struct sp_step_way *way,
				  struct sp_step_position *p,
				  const struct sp_cfi_rule *rule)
{
	uintptr_t cfa = (rule->kind == SP_CFI_BP ? p->at.bp : p->at.sp) +
			(uintptr_t)(intptr_t)rule->cfa_bytes;

	if (cfa <= p->at.sp || cfa > way->stack.end || cfa % 8)
		return false;
	p->at.bp_at = NULL;
	if (rule->bp_bytes) {
		uintptr_t at = cfa + (uintptr_t)(intptr_t)rule->bp_bytes;

		if (!sp_stack_bounds_read(&way->stack, at, &p->at.bp))
			return false;
		p->at.bp_at = (const uintptr_t *)at;
	}
	return sp_step_to(way, p, cfa,
			  cfa + (uintptr_t)(intptr_t)rule->pc_bytes);
}
