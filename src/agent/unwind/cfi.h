/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/cfi_program.h"
#include "agent/unwind/modules.h"

/*
 * The rule at address `pc`, in object `e`, which is loaded.  Takes no lock and
 * reads only what is in the object's segments.  `run` is scratch memory.
 * Context: sampled.
 */
struct sp_cfi_rule sp_cfi_find(struct sp_cfi_run *run,
			       struct sp_module_entry *e, uintptr_t pc);

/* Where object `e` has its table of functions, if that is of the usual kind: a
 * header of SP_CFI_HEADER_BYTES, and *ret_count pairs of 4-byte distances from
 * it.  NULL: it has none.  Context: sampled. */
#define SP_CFI_HEADER_BYTES 12
const uint8_t *sp_cfi_table(const struct sp_module_entry *e,
			    uint32_t *ret_count);

/*
 * By all that the tables say: from the registers of a frame, which is at `pc`
 * in object `e`, to those of its caller.  `memory` is what of the stack is
 * known to be readable.  *is_signal: the caller is what a signal interrupted.
 * False: they do not say it.  Context: as above.
 */
bool sp_cfi_step(struct sp_cfi_run *run, struct sp_module_entry *e,
		 struct sp_cfi_registers *registers,
		 struct sp_stack_bounds_span *memory, bool *is_signal);
