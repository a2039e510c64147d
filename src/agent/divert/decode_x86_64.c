/* SPDX-License-Identifier: MIT */
/*
 * Lengths are read as for the unwinder (unwind/insn_x86_64.c).  Here an error
 * would change what a program does, so an instruction is understood only if its
 * operation is in a list, and if all processors agree on its prefixes.  Not in
 * the lists: what only a kernel uses, 3DNow, XOP, SSE4a, transactions, and what
 * no processor has had before AVX512-FP16.
 */
#include "agent/divert/decode.h"

#include "agent/unwind/insn_x86_64.h"

#include "agent/sys/poison.h"

enum { NARROW = 1, ADDRESS = 2, REPEAT = 4, OTHER = 8 };

/* Operations: a row is of sixteen, the first one is the lowest bit. */
typedef uint16_t operations[16];

static const operations of_one_byte = {
	0x3f3f, 0x3f3f, 0x3f3f, 0x3f3f, 0x0000, 0xffff, 0x0f08, 0xffff,
	0xfffb, 0xfbff, 0xffff, 0xffff, 0x12cf, 0xff8f, 0x0b0f, 0xf3f0,
};
/* Behind 0x0f, without and with a prefix of vectors. */
static const operations of_two_bytes = {
	0x282e, 0xffff, 0xff00, 0x000a, 0xffff, 0xffff, 0xffff, 0xf0ff,
	0xffff, 0xffff, 0xfb3f, 0xfdff, 0xffff, 0xffff, 0xffff, 0x7fff,
};
static const operations of_vectors = {
	0x0000, 0x00ff, 0xff00, 0x0000, 0x0cf6, 0xffff, 0xffff, 0xffff,
	0x0000, 0x030f, 0x4000, 0x0000, 0x0074, 0xffff, 0xffff, 0x7fff,
};
/* Behind 0x0f38 and 0x0f3a.  With a prefix of vectors all are alike. */
static const operations of_0f38 = {
	0x0fff, 0x70b1, 0x0f3f, 0xffbf, 0x0003, 0x0000, 0x0000, 0x0000,
	0x0000, 0x0000, 0x0000, 0x0000, 0xbf00, 0xf800, 0x0000, 0x0343,
};
static const operations of_0f3a = {
	0xff00, 0x00f0, 0x0007, 0x0000, 0x0017, 0x0000, 0x000f, 0x0000,
	0x0000, 0x0000, 0x0000, 0x0000, 0xd000, 0x8000, 0x0000, 0x0000,
};

/* The prefixes before the one that is part of the operation, and where they
 * end. */
static unsigned int find_prefixes(const uint8_t *code, size_t n, size_t *ret_at)
{
	unsigned int found = 0;
	size_t at = 0;

	for (; at < n; at++) {
		const uint8_t byte = code[at];

		if (byte == 0x66)
			found |= NARROW;
		else if (byte == 0x67)
			found |= ADDRESS;
		else if (byte == 0xf3)
			found |= REPEAT;
		else if (byte == 0xf2 || byte == 0xf0)
			found |= OTHER;
		else if ((byte & 0xe7) != 0x26 && (byte & 0xfe) != 0x64)
			break;
	}
	*ret_at = at;
	return found;
}

static bool is_in_list(const struct sp_insn *i)
{
	static const uint16_t *const lists[] = {of_one_byte, of_two_bytes,
						of_0f38, of_0f3a};
	const uint16_t *list = lists[i->map - 1];

	if (i->is_vex && i->map > 2)
		return true;
	if (i->is_vex)
		list = of_vectors;
	return list[i->op >> 4] >> (i->op & 15) & 1;
}

/* Is nothing wrong with an operation that is in a list? */
static bool is_sound(const struct sp_insn *i, unsigned int prefixes,
		     const uint8_t *vex)
{
	if (i->is_vex) {
		/* What follows 0x62 has two bits that never change. */
		if (*vex == 0x62 && (vex[1] & 8 || !(vex[2] & 4)))
			return false;
		return !i->has_rex && !(prefixes & ~(unsigned int)ADDRESS);
	}
	/* An address of 32 bits. */
	if (prefixes & ADDRESS &&
	    (i->rip_at || (i->map == 1 && (i->op & 0xfc) == 0xa0)))
		return false;
	/* popcnt, else another one. */
	if (i->map == 2)
		return i->op != 0xb8 || prefixes & REPEAT;
	if (i->map == 1 && (i->op == 0xc6 || i->op == 0xc7))
		return i->extension == 0;
	return i->map != 1 || i->op != 0xfe || i->extension < 2;
}

static enum sp_instruction_kind kind_of(const struct sp_insn *i,
					const uint8_t *at)
{
	const bool is_plain = i->is_vex || i->map > 2;

	if (!is_plain && i->map == 2) {
		if ((i->op & 0xf0) == 0x80)
			return SP_INSTRUCTION_JCC;
		if (i->op == 0x0b)
			return SP_INSTRUCTION_TRAP;
		if (i->op == 0x1e && at[2] == 0xfa)
			return SP_INSTRUCTION_ENDBR;
	} else if (!is_plain) {
		if ((i->op & 0xf0) == 0x70)
			return SP_INSTRUCTION_JCC;
		if ((i->op & 0xfc) == 0xe0)
			return SP_INSTRUCTION_LOOP;
		if (i->op == 0xe9 || i->op == 0xeb)
			return SP_INSTRUCTION_JMP;
		if (i->op == 0xe8)
			return SP_INSTRUCTION_CALL;
		if (i->op == 0xc2 || i->op == 0xc3)
			return SP_INSTRUCTION_RET;
		if (i->op == 0xcc || i->op == 0xf4)
			return SP_INSTRUCTION_TRAP;
		if (i->op == 0xff && i->extension == 2)
			return SP_INSTRUCTION_INDIRECT_CALL;
		if (i->op == 0xff && i->extension == 4)
			return SP_INSTRUCTION_INDIRECT;
	}
	return i->rip_at ? SP_INSTRUCTION_RIP : SP_INSTRUCTION_PLAIN;
}

static bool is_direct(enum sp_instruction_kind kind)
{
	return kind == SP_INSTRUCTION_JMP || kind == SP_INSTRUCTION_JCC ||
	       kind == SP_INSTRUCTION_CALL || kind == SP_INSTRUCTION_LOOP;
}

static bool is_way(enum sp_instruction_kind kind)
{
	return is_direct(kind) || kind == SP_INSTRUCTION_RET ||
	       kind == SP_INSTRUCTION_INDIRECT ||
	       kind == SP_INSTRUCTION_INDIRECT_CALL;
}

bool sp_decode(const uint8_t *code, size_t n, struct sp_instruction *ret)
{
	const struct sp_insn i = sp_insn_read(code, code + n);
	size_t at;
	const unsigned int prefixes = find_prefixes(code, n, &at);
	enum sp_instruction_kind kind;

	*ret = (struct sp_instruction){.kind = SP_INSTRUCTION_UNKNOWN};
	if (!i.is_known || !is_in_list(&i) ||
	    !is_sound(&i, prefixes, code + at))
		return false;
	kind = kind_of(&i, code + at + i.has_rex);
	if (kind == SP_INSTRUCTION_ENDBR && !(prefixes & REPEAT))
		kind = SP_INSTRUCTION_PLAIN;
	/* Of 16 bits for some processors. */
	if (i.is_narrow && is_way(kind))
		return false;
	ret->length = i.bytes;
	ret->kind = (uint8_t)kind;
	if (is_direct(kind)) {
		ret->field_size = i.map == 2 || (i.op & 0xfe) == 0xe8 ? 4 : 1;
		ret->field = (uint8_t)(i.bytes - ret->field_size);
		ret->target_offset = (int64_t)i.bytes + i.immediate;
	} else if (i.rip_at) {
		ret->field_size = 4;
		ret->field = i.rip_at;
		ret->target_offset = (int64_t)i.bytes + i.displacement;
	}
	return true;
}

/* rdsspq %rax, or an instruction that does nothing. */
bool sp_decode_has_shadow_stack(void)
{
	uint64_t top = 0;

	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(top));
	return top;
}
