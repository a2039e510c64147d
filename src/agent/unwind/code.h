/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_UNWIND_CODE_H
#define SP_AGENT_UNWIND_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/modules.h"
#include "base/bytes.h"

/*
 * The loaded segment of an object that has the byte at `at` and these flags
 * (PF_*).  False: none has; there may be holes between segments, where memory
 * of others is.
 */
bool sp_code_segment(const struct sp_module_entry *e, uintptr_t at,
		     uint32_t flags, struct sp_slice *ret);

/* Does an instruction that calls end at pc?  Memory from `low` on up to there
 * is readable. */
bool sp_code_is_behind_call(uintptr_t pc, uintptr_t low);

/* Is that the code which a signal handler returns to, and which asks the kernel
 * to go back to what the signal interrupted?  Readable up to `high`. */
bool sp_code_is_trampoline(uintptr_t pc, uintptr_t high);

#endif
