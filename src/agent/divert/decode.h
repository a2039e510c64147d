/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an instruction means for a copy of it elsewhere. */
enum sp_instruction_kind {
	SP_INSTRUCTION_UNKNOWN,
	SP_INSTRUCTION_PLAIN, /* the same everywhere */
	SP_INSTRUCTION_RIP,   /* an operand is at a distance from it */
	SP_INSTRUCTION_JMP,   /* direct, as the next three are */
	SP_INSTRUCTION_JCC,   /* on a condition; also cbz, tbz */
	SP_INSTRUCTION_CALL,
	SP_INSTRUCTION_LOOP,     /* loop, loopcc, jrcxz: a byte of distance */
	SP_INSTRUCTION_INDIRECT, /* a jump; `field` may be its operand's */
	SP_INSTRUCTION_INDIRECT_CALL, /* likewise; pushes where it stands */
	SP_INSTRUCTION_RET,
	SP_INSTRUCTION_TRAP,  /* int3, ud2, hlt, brk: does not go on */
	SP_INSTRUCTION_ENDBR, /* a landing pad: endbr64; bti, paciasp, pacibsp
			       */
};

struct sp_instruction {
	uint8_t length; /* bytes */
	uint8_t kind;
	/* The distance that has to be mended in a copy elsewhere.  x86-64: the
	 * offset of its bytes, and how many they are.  aarch64: its lowest bit,
	 * and how many bits; that of adr has two more in bits 29 and 30.  The
	 * size is 0 if there is none. */
	uint8_t field;
	uint8_t field_size;
	/* From the instruction's start to what the distance leads to; of adrp
	 * from the start of its 4 KiB. */
	int64_t target_offset;
};

/*
 * The instruction at the beginning of `code`, of which n bytes are readable.
 * False: it is not understood, or cut; *ret is then of kind UNKNOWN, without
 * a length.
 * Context: any; nothing is written but *ret.
 */
bool sp_decode(const uint8_t *code, size_t n, struct sp_instruction *ret);

/* Does the processor keep a stack of return addresses of its own?  Only a call
 * adds to that. */
bool sp_decode_has_shadow_stack(void);
