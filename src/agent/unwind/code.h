/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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

/* Is this the code that a signal handler returns to (rt_sigreturn)?  Memory is
 * readable up to `high`. */
bool sp_code_is_trampoline(uintptr_t pc, uintptr_t high);

/* From the stack pointer to that of the caller, to the return address, and to
 * the caller's frame pointer, negative if that is not loaded. */
struct sp_code_epilogue {
	int32_t cfa_bytes;
	int32_t pc_bytes;
	int32_t bp_bytes;
};

/*
 * Is `code`, of which n bytes are readable, an epilogue: does the function only
 * give its stack back and return?  Then *ret says where its caller is, with or
 * without a frame pointer.
 */
bool sp_code_find_epilogue(const uint8_t *code, size_t n,
			   struct sp_code_epilogue *ret);
