/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/cfi_program.h"
#include "base/bytes.h"

/*
 * Where the caller of a function is, as its instructions say it: for code
 * without unwind tables.  They are followed along all branches.
 */
#define SP_FLOW_FRAMES_MAX 4
#define SP_FLOW_PATHS_MAX  32
#define SP_FLOW_STORES_MAX 8
#define SP_FLOW_SEEN       256 /* a power of two */
#define SP_FLOW_SLOTS_MAX  4

/* What is in a register or a word. */
struct sp_flow_value {
	enum sp_flow_kind {
		SP_FLOW_UNKNOWN,
		SP_FLOW_OF_SP, /* the stack pointer at the beginning + offset */
		SP_FLOW_OF_BP, /* the same of the frame pointer */
		SP_FLOW_AT_SP, /* the word at that address */
		SP_FLOW_AT_BP,
	} kind;
	int32_t offset;
};

/* A way through the code under way. */
struct sp_flow_path {
	uintptr_t at;
	bool crossed; /* a call, of which it is not known whether it returns */
	uint8_t n_stores;
	struct sp_flow_value sp, bp;
	/* What was stored on the stack. */
	struct sp_flow_store {
		int32_t at; /* SP_FLOW_OF_SP */
		struct sp_flow_value value;
	} stores[SP_FLOW_STORES_MAX];
};

struct sp_flow_frame {
	struct sp_cfi_rule rule;
	bool is_sure; /* no call is on the way: code that surely follows */
};

/* Scratch memory, and what came out. */
struct sp_flow {
	struct sp_flow_frame frames[SP_FLOW_FRAMES_MAX];
	unsigned int n;
	bool is_end; /* it surely ends the thread */

	struct sp_slice code;
	uintptr_t goal;
	bool is_return; /* the goal */
	struct sp_flow_path paths[SP_FLOW_PATHS_MAX];
	unsigned int n_paths;
	unsigned int budget; /* instructions */
	bool is_found, has_halt, has_more;
	uint32_t seen[SP_FLOW_SEEN]; /* offsets of targets, plus 1 */
	unsigned int n_seen;
	/* Words with functions that it becomes: it jumps there with its
	 * caller's registers. */
	uintptr_t slots[SP_FLOW_SLOTS_MAX];
	unsigned int n_slots;
};

/*
 * On from `at`, an instruction in `code`, which is readable, to where the
 * function returns: flow->frames, those that are sure first.  None if all are
 * contradictory or there is none.
 */
void sp_flow_onwards(struct sp_flow *flow, struct sp_slice code, uintptr_t at);

/* From the start of a function to the instruction at `at`: the rule there.
 * False: it is not reached, or the stack is not known there.  With `is_return`
 * only by the call in front: if that never returns, ways that jump to `at` are
 * not of this frame. */
bool sp_flow_from_start(struct sp_flow *flow, struct sp_slice code,
			uintptr_t start, uintptr_t at, bool is_return,
			struct sp_cfi_rule *ret);

/* From the start of a function to the ends of all its ways: flow->slots. */
void sp_flow_leaves(struct sp_flow *flow, struct sp_slice code,
		    uintptr_t start);

/* What the call that ends at `pc` calls, if the instruction says it; 0: in
 * another way.  A word that it is loaded from is at *slot, else that is 0. */
uintptr_t sp_flow_called(uintptr_t pc, uintptr_t low, uintptr_t *slot);

/* The same of a jump at `at`, as a procedure linkage table has it: where the
 * word is that it is loaded from, or 0. */
uintptr_t sp_flow_jumped(uintptr_t at, uintptr_t end);
