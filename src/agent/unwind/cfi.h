/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/cfi_program.h"
#include "agent/unwind/modules.h"

/*
 * How to get from a function's frame to its caller's, as the unwind tables of
 * its object (.eh_frame) say it.  The canonical frame address (CFA) is the
 * caller's stack pointer.
 *
 * Everywhere a frame's address is one that is behind its instruction: a return
 * address, or the address of an instruction that a signal interrupted, plus 1.
 */
enum sp_cfi_kind {
	SP_CFI_UNKNOWN,   /* not looked up yet */
	SP_CFI_OTHER,     /* not to be said in this way: sp_cfi_step */
	SP_CFI_SP,        /* CFA = stack pointer + cfa_bytes */
	SP_CFI_BP,        /* CFA = frame pointer + cfa_bytes */
	SP_CFI_REALIGNED, /* CFA is the word at frame pointer + cfa_bytes */
	SP_CFI_SIGNAL,    /* what a signal interrupted: sp_arch_context() */
	SP_CFI_NONE,      /* there are no tables for it */
	SP_CFI_END,       /* the outermost frame: it has no caller */
};

struct sp_cfi_rule {
	enum sp_cfi_kind kind;
	int32_t cfa_bytes;
	/* The caller's frame pointer is at CFA + bp_bytes; 0: it was not
	 * touched.  Of a realigned frame, at frame pointer + bp_bytes. */
	int32_t bp_bytes;
	int32_t pc_bytes; /* the return address is at CFA + pc_bytes */
	/* No call has left the address there: it is that of an instruction
	 * itself, the first of a function.  The frame's is one more. */
	bool is_exact;
};

/*
 * The rule at address `pc`, in object `e`, which is loaded.  Takes no lock and
 * reads only what is in the object's segments.  `run` is scratch memory.
 * Context: sampled.
 */
struct sp_cfi_rule sp_cfi_find(struct sp_cfi_run *run,
			       const struct sp_module_entry *e, uintptr_t pc);

/*
 * By all that the tables say: from the registers of a frame, which is at `pc`
 * in object `e`, to those of its caller.  `memory` is what of the stack is
 * known to be readable.  *is_signal: the caller is what a signal interrupted.
 * False: they do not say it.  Context: as above.
 */
bool sp_cfi_step(struct sp_cfi_run *run, const struct sp_module_entry *e,
		 struct sp_cfi_registers *registers,
		 struct sp_stack_bounds_span *memory, bool *is_signal);
