/* SPDX-License-Identifier: MIT */
/*
 * Which instructions go by their own address: adr, loads of literals and direct
 * branches have a place of their own in the encoding.  What is not allocated
 * there is not understood, nor are signatures of the program counter.
 */
#include "agent/divert/decode.h"

#include "agent/sys/poison.h"

#define BYTES 4u

/* A class of instructions: those whose bits of `mask` are `value`. */
struct form {
	uint32_t mask, value;
	uint8_t kind;
	uint8_t field, field_size; /* in bits */
	uint8_t shift;             /* the distance is so many bits larger */
};

/* The first one counts. */
static const struct form forms[] = {
	{0x9f000000, 0x10000000, SP_INSTRUCTION_RIP, 5, 19, 0},  /* adr */
	{0x9f000000, 0x90000000, SP_INSTRUCTION_RIP, 5, 19, 12}, /* adrp */
	{0xff000000, 0xdc000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0},
	{0x3b000000, 0x18000000, SP_INSTRUCTION_RIP, 5, 19, 2}, /* ldr, prfm */
	{0xfc000000, 0x14000000, SP_INSTRUCTION_JMP, 0, 26, 2},
	{0xfc000000, 0x94000000, SP_INSTRUCTION_CALL, 0, 26, 2},
	{0x7e000000, 0x34000000, SP_INSTRUCTION_JCC, 5, 19, 2}, /* cbz, cbnz */
	{0x7e000000, 0x36000000, SP_INSTRUCTION_JCC, 5, 14, 2}, /* tbz, tbnz */
	{0xff000000, 0x54000000, SP_INSTRUCTION_JCC, 5, 19, 2}, /* b.cond */
	{0xfefff000, 0xd61f0000, SP_INSTRUCTION_INDIRECT, 0, 0, 0},
	{0xfefff000, 0xd63f0000, SP_INSTRUCTION_INDIRECT_CALL, 0, 0, 0},
	{0xfffff000, 0xd65f0000, SP_INSTRUCTION_RET, 0, 0, 0},
	{0xffffff3f, 0xd503241f, SP_INSTRUCTION_ENDBR, 0, 0, 0}, /* bti */
	{0xffffffbf, 0xd503233f, SP_INSTRUCTION_ENDBR, 0, 0, 0}, /* pacixsp */
	{0xffe0001f, 0xd4000001, SP_INSTRUCTION_PLAIN, 0, 0, 0}, /* svc */
	{0xffe0001f, 0xd4200000, SP_INSTRUCTION_TRAP, 0, 0, 0},  /* brk */
	{0xffe0001f, 0xd4400000, SP_INSTRUCTION_TRAP, 0, 0, 0},  /* hlt */
	{0xff000000, 0xd5000000, SP_INSTRUCTION_PLAIN, 0, 0, 0}, /* system */
	{0x1c000000, 0x14000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0},
	{0xffff0000, 0x00000000, SP_INSTRUCTION_TRAP, 0, 0, 0}, /* udf */
	{0x1c000000, 0x00000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0},
	{0x1e000000, 0x06000000, SP_INSTRUCTION_UNKNOWN, 0, 0, 0},
	{0xffffdbff, 0xdac183fe, SP_INSTRUCTION_UNKNOWN, 0, 0,
	 0}, /* pacix... */
	{0xff800000, 0xf3800000, SP_INSTRUCTION_UNKNOWN, 0, 0,
	 0}, /* autix... */
	{0, 0, SP_INSTRUCTION_PLAIN, 0, 0, 0},
};

/* A number of so many bits, with its sign. */
static int64_t signed_of(uint32_t bits, unsigned int n)
{
	return (int64_t)((uint64_t)bits << (64 - n)) >> (64 - n);
}

static uint32_t word_of(const uint8_t *code)
{
	return (uint32_t)code[0] | (uint32_t)code[1] << 8 |
	       (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
}

bool sp_decode(const uint8_t *code, size_t n, struct sp_instruction *ret)
{
	const struct form *form = forms;
	uint32_t word, field;

	*ret = (struct sp_instruction){.kind = SP_INSTRUCTION_UNKNOWN};
	if (n < BYTES)
		return false;
	word = word_of(code);
	while ((word & form->mask) != form->value)
		form++;
	if (form->kind == SP_INSTRUCTION_UNKNOWN)
		return false;
	*ret = (struct sp_instruction){
		.length = BYTES,
		.kind = form->kind,
		.field = form->field,
		.field_size = form->field_size,
	};
	if (!form->field_size)
		return true;
	field = word >> form->field & ((1u << form->field_size) - 1);
	if ((word & 0x1f000000) == 0x10000000) /* adr, adrp */
		ret->target_offset =
			signed_of(field << 2 | (word >> 29 & 3), 21) *
			((int64_t)1 << form->shift);
	else
		ret->target_offset = signed_of(field, form->field_size) *
				     ((int64_t)1 << form->shift);
	return true;
}
