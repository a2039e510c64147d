/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_CFI_H
#define SP_AGENT_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules.h"

/*
 * How to get from a function's frame to its caller's, as the unwind tables of
 * its object (.eh_frame) say it for one return address.  The canonical frame
 * address (CFA) is the caller's stack pointer; the return address is right
 * below it.
 */
enum sp_cfi_kind {
	SP_CFI_OTHER, /* not to be said in this way, or not known */
	SP_CFI_SP,    /* CFA = rsp + cfa_bytes */
	SP_CFI_BP,    /* CFA = rbp + cfa_bytes */
	SP_CFI_END,   /* the outermost frame: nobody called */
};

struct sp_cfi_rule {
	enum sp_cfi_kind kind;
	int32_t cfa_bytes;
	/* The caller's rbp is at CFA + bp_bytes; 0: it was not touched. */
	int16_t bp_bytes;
};

/*
 * The rule at return address `pc`, in object `e`, which is loaded.  The kind is
 * SP_CFI_OTHER also for what is right but rare: other registers than rsp and
 * rbp, expressions, frames of signal handlers, tables of unusual encodings.
 * Takes no lock and needs 500 bytes of stack.  Context: sampled.
 */
struct sp_cfi_rule sp_cfi_find(const struct sp_module_entry *e, uintptr_t pc);

#endif
