/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where an instruction goes on. */
enum sp_insn_flow {
	SP_INSN_NEXT,
	SP_INSN_CALL, /* elsewhere, and then at the next one if that returns */
	SP_INSN_JUMP, /* at the target */
	SP_INSN_BRANCH, /* at the target, or at the next one */
	SP_INSN_RETURN,
	SP_INSN_HALT, /* nowhere: behind an exit */
	SP_INSN_LOST, /* nowhere, or that cannot be said, or it is none */
};

#define SP_INSN_SP   4u
#define SP_INSN_BP   5u
#define SP_INSN_NONE 255u

/* An instruction of x86-64, as far as it matters for the stack. */
struct sp_insn {
	uint8_t bytes;
	enum sp_insn_flow flow;
	bool is_known;        /* all of it was there, in 64 bits, for users */
	uint8_t rip_at;       /* where the displacement from the next
				 instruction stands that is its operand, or 0 */
	uintptr_t target;     /* of a jump or a branch */
	uint8_t map;          /* 1: of one byte; 2: behind 0x0f; 3 and 4: behind
				 0x0f38 and 0x0f3a */
	uint8_t op;           /* its last byte */
	bool is_vex;          /* with one of the prefixes of vectors */
	bool has_rex;         /* then a byte of 4 and 5 is of rsp and rbp */
	bool is_narrow;       /* of 16 bits */
	uint8_t extension;    /* three bits of ModRM, part of the operation */
	uint8_t reg;          /* the same, as a register, or none */
	uint8_t rm;           /* the other register; none if that is memory */
	uint8_t base;         /* of memory, if it has no index; or none */
	uint8_t vvvv, in_op;  /* further registers, or none */
	int32_t displacement; /* of memory */
	int32_t immediate;
};

/* The instruction at `at`, of which what is before `end` is readable. */
struct sp_insn sp_insn_read(const uint8_t *at, const uint8_t *end);

/* May it change that register, other than as all pushes, pops, calls and
 * returns change the stack pointer? */
bool sp_insn_changes(const struct sp_insn *i, uint8_t reg);
