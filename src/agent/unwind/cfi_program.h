/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/arch.h"
#include "base/bytes.h"

struct sp_stack_bounds_span;

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

/* Registers of one frame, by DWARF's numbers; those in the mask `known` mean
 * something. */
struct sp_cfi_registers {
	uint64_t value[SP_ARCH_REGISTERS];
	uint64_t known;
};

/* Where a register of the caller is. */
enum sp_cfi_where {
	SP_CFI_UNTOUCHED,
	SP_CFI_UNDEFINED,
	SP_CFI_SAVED,      /* at CFA + value */
	SP_CFI_OFFSET,     /* is CFA + value */
	SP_CFI_REGISTER,   /* in register `value` */
	SP_CFI_SAVED_BY,   /* at what the expression says */
	SP_CFI_COMPUTED_BY /* is what the expression says */
};

/* The frame of a function at one address. */
struct sp_cfi_state {
	/* CFA = register + offset, or by the expression. */
	uint64_t cfa_register;
	int64_t cfa_offset;
	const uint8_t *cfa_expression;
	uint8_t where[SP_ARCH_REGISTERS];
	union sp_cfi_place {
		int64_t value;
		/* Its length and itself, inside of the tables. */
		const uint8_t *expression;
	} place[SP_ARCH_REGISTERS];
};

#define SP_CFI_SAVED_STATES 8

/* A program of call frame instructions under way. */
struct sp_cfi_run {
	struct sp_slice code;
	uintptr_t at;     /* the address that the state is about */
	uintptr_t target; /* the one it is wanted for */
	uint64_t code_align;
	int64_t data_align;
	struct sp_cfi_state now, initial;
	struct sp_cfi_state saved[SP_CFI_SAVED_STATES];
	unsigned int n_saved;
	bool failed;
};

/* Signed numbers of variable length, and little-endian ones of 1 to 8 bytes. */
int64_t sp_cfi_read_sleb(struct sp_slice *s);
uint64_t sp_cfi_read_fixed(struct sp_slice *s, unsigned int bytes);

/*
 * Execute `code` up to the state at run->target: run->now.  False: it has an
 * instruction that is not known, or does what makes no sense.
 */
bool sp_cfi_program_run(struct sp_cfi_run *run, struct sp_slice code);

/*
 * The value of a DWARF expression, as a state has it.  `cfa` (may be NULL) is
 * on its stack when it begins.  False: it reads what cannot be read, wants a
 * register that is not known, or is none.
 */
bool sp_cfi_evaluate(const uint8_t *expression,
		     const struct sp_cfi_registers *registers,
		     const uint64_t *cfa, struct sp_stack_bounds_span *memory,
		     uint64_t *ret);
