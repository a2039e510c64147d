/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an entry becomes, and what stands there now. */
#define SP_ENTRY_JUMP       5u
#define SP_ENTRY_TRAMPOLINE 96u

struct sp_entry_plan {
	uintptr_t at;     /* the bytes that become a jump: behind an endbr64 */
	size_t displaced; /* whole instructions from there on */
	uint8_t trampoline[SP_ENTRY_TRAMPOLINE];
	size_t bytes; /* of it */
};

/*
 * The function of `bytes` bytes at `entry`: which bytes are displaced, and what
 * does the same at `to`, from where it goes on behind them.  NULL, or why it is
 * refused.  `entry` is readable, as far as the function goes.  Context: cold.
 */
const char *sp_entry_plan(uintptr_t entry, size_t bytes, uintptr_t to,
			  struct sp_entry_plan *ret);

/* Where a function ends that is too short to be diverted, if that is a jump
 * behind what only computes; else 0.  Readable as above. */
uintptr_t sp_entry_follow(uintptr_t entry, size_t bytes);

/* jmp from `at` to `to`; false: that is too far. */
bool sp_entry_jump(uint8_t code[SP_ENTRY_JUMP], uintptr_t at, uintptr_t to);
