/* SPDX-License-Identifier: MIT */
/*
 * Lengths of instructions, where they go on, and whether they change one of two
 * registers: all that compilers make, and what is in use by hand.  What is not
 * known for certain is SP_INSN_LOST, or a change.
 */
#include "agent/unwind/insn_x86_64.h"

#include <stddef.h>

#include "agent/sys/poison.h"

#define BYTES_MAX 15u

/* What is being read. */
struct reading {
	struct sp_insn i;
	const uint8_t *start, *at, *end;
	uint8_t rex; /* its bits, also as another prefix has them */
	bool failed;
};

static uint8_t take_byte(struct reading *r)
{
	if (r->at >= r->end) {
		r->failed = true;
		return 0;
	}
	return *r->at++;
}

static int32_t take_number(struct reading *r, unsigned int bytes)
{
	uint32_t word = 0;

	for (unsigned int n = 0; n < bytes; n++)
		word |= (uint32_t)take_byte(r) << 8 * (n & 3);
	if (bytes == 1)
		return (int8_t)word;
	return bytes == 2 ? (int16_t)word : (int32_t)word;
}

static bool is_in(uint8_t op, uint8_t from, uint8_t to)
{
	return op >= from && op <= to;
}

/* ---- shapes ---- */

static bool has_modrm(const struct sp_insn *i)
{
	const uint8_t op = i->op;

	switch (i->map) {
	case 1:
		if (op < 0x40)
			return (op & 7) < 4;
		return op == 0x63 || op == 0x69 || op == 0x6b ||
		       is_in(op, 0x80, 0x8f) || op == 0xc0 || op == 0xc1 ||
		       op == 0xc6 || op == 0xc7 || is_in(op, 0xd0, 0xd3) ||
		       is_in(op, 0xd8, 0xdf) || op == 0xf6 || op == 0xf7 ||
		       op >= 0xfe;
	case 2:
		return !(is_in(op, 0x05, 0x0b) || op == 0x0e ||
			 is_in(op, 0x30, 0x37) || op == 0x77 ||
			 is_in(op, 0x80, 0x8f) || is_in(op, 0xa0, 0xa2) ||
			 is_in(op, 0xa8, 0xaa) || is_in(op, 0xc8, 0xcf));
	default:
		return true;
	}
}

/* Bytes of the constant at its end. */
static unsigned int immediate_bytes(const struct sp_insn *i, bool is_wide)
{
	const uint8_t op = i->op;
	const unsigned int full = i->is_narrow ? 2 : 4;

	if (i->map == 2 && is_in(op, 0x80, 0x8f))
		return i->is_vex ? 0 : 4;
	if (i->map == 2)
		return op == 0x0f || is_in(op, 0x70, 0x73) || op == 0xa4 ||
		       op == 0xac || op == 0xba || op == 0xc2 || op == 0xc4 ||
		       op == 0xc5 || op == 0xc6;
	if (i->map != 1)
		return i->map == 4;
	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? full : 0;
	if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7)
		return full;
	if (is_in(op, 0xb8, 0xbf))
		return is_wide ? 8 : full;
	if (is_in(op, 0xa0, 0xa3))
		return 8;
	if (op == 0xe8 || op == 0xe9)
		return 4;
	if (op == 0xc2 || op == 0xca)
		return 2;
	if (op == 0xf6 || op == 0xf7)
		return i->extension > 1 ? 0 : op == 0xf6 ? 1 : full;
	return op == 0x6a || op == 0x6b || is_in(op, 0x70, 0x7f) ||
	       op == 0x80 || op == 0x82 || op == 0x83 || op == 0xa8 ||
	       is_in(op, 0xb0, 0xb7) || op == 0xc0 || op == 0xc1 ||
	       op == 0xc6 || op == 0xcd || is_in(op, 0xe0, 0xe7) || op == 0xeb;
}

/* Not in 64 bits, or of the kernel, or too rare. */
static bool is_refused(const struct sp_insn *i)
{
	const uint8_t op = i->op;

	if (i->map != 1)
		return false;
	return (op < 0x40 && (op & 7) > 5) || is_in(op, 0x60, 0x62) ||
	       op == 0x82 || op == 0x9a || op == 0xc8 || op == 0xca ||
	       op == 0xcb || is_in(op, 0xcd, 0xcf) || is_in(op, 0xd4, 0xd6) ||
	       op == 0xea || op == 0xf1 || (op == 0x8f && i->extension) ||
	       (op == 0xff &&
		(i->extension == 3 || i->extension == 5 || i->extension == 7));
}

/* ---- parts ---- */

static void read_prefixes(struct reading *r)
{
	for (;;) {
		const uint8_t byte = r->at < r->end ? *r->at : 0;

		if (byte == 0x66)
			r->i.is_narrow = true;
		else if (byte != 0x67 && byte != 0xf2 && byte != 0xf3 &&
			 byte != 0xf0 && byte != 0x2e && byte != 0x36 &&
			 byte != 0x3e && byte != 0x26 && byte != 0x64 &&
			 byte != 0x65)
			break;
		r->at++;
	}
	if (r->at < r->end && (*r->at & 0xf0) == 0x40) {
		r->rex = *r->at++ & 0x0f;
		r->i.has_rex = true;
	}
}

static void read_vex(struct reading *r, uint8_t first)
{
	uint8_t byte = take_byte(r), map = 1;

	r->i.is_vex = true;
	r->rex = (uint8_t)(~byte >> 5 & 4);
	if (first != 0xc5) {
		map = byte & (first == 0x62 ? 7 : 0x1f);
		r->rex = (uint8_t)(~byte >> 5 & 7);
		byte = take_byte(r);
	}
	r->i.vvvv = (uint8_t)(~byte >> 3 & 15);
	if (first == 0x62)
		take_byte(r);
	r->i.map = (uint8_t)(map + 1);
	if (map < 1 || map > 3)
		r->failed = true;
	r->i.op = take_byte(r);
}

static void read_op(struct reading *r)
{
	uint8_t byte = take_byte(r);

	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
		read_vex(r, byte);
		return;
	}
	r->i.map = 1;
	if (byte == 0x0f) {
		r->i.map = 2;
		byte = take_byte(r);
		if (byte == 0x38 || byte == 0x3a) {
			r->i.map = byte == 0x38 ? 3 : 4;
			byte = take_byte(r);
		}
	}
	r->i.op = byte;
}

static void read_modrm(struct reading *r)
{
	const uint8_t byte = take_byte(r), mod = byte >> 6;
	uint8_t rm = byte & 7, sib;

	r->i.extension = byte >> 3 & 7;
	r->i.reg = r->i.extension | (r->rex & 4) << 1;
	if (mod == 3) {
		r->i.rm = rm | (r->rex & 1) << 3;
		return;
	}
	if (mod == 0 && rm == 5) {
		r->i.rip_at = (uint8_t)(r->at - r->start);
		r->i.displacement = take_number(r, 4);
		return;
	}
	r->i.base = rm | (r->rex & 1) << 3;
	if (rm == 4) {
		sib = take_byte(r);
		r->i.base = (sib & 7) | (r->rex & 1) << 3;
		if ((sib >> 3 & 7) != 4 || r->rex & 2)
			r->i.base = SP_INSN_NONE;
		if (mod == 0 && (sib & 7) == 5) {
			r->i.base = SP_INSN_NONE;
			take_number(r, 4);
		}
	}
	if (mod)
		r->i.displacement = take_number(r, mod == 1 ? 1 : 4);
}

static enum sp_insn_flow flow_of(const struct sp_insn *i)
{
	const uint8_t op = i->op;

	if (i->is_vex)
		return SP_INSN_NEXT;
	if (i->map == 2) {
		if (is_in(op, 0x80, 0x8f))
			return SP_INSN_BRANCH;
		return op == 0x07 || op == 0x0b || op == 0x34 || op == 0x35 ||
				       op == 0xb9 || op == 0xff
			       ? SP_INSN_LOST
			       : SP_INSN_NEXT;
	}
	if (i->map != 1)
		return SP_INSN_NEXT;
	if (is_in(op, 0x70, 0x7f) || is_in(op, 0xe0, 0xe3))
		return SP_INSN_BRANCH;
	if (op == 0xe9 || op == 0xeb)
		return SP_INSN_JUMP;
	if (op == 0xe8 || (op == 0xff && i->extension == 2))
		return SP_INSN_CALL;
	if (op == 0xc3 || op == 0xc2)
		return SP_INSN_RETURN;
	if (op == 0xf4)
		return SP_INSN_HALT;
	return op == 0xcc || (op == 0xff && i->extension == 4) ? SP_INSN_LOST
							       : SP_INSN_NEXT;
}

struct sp_insn sp_insn_read(const uint8_t *at, const uint8_t *end)
{
	struct reading r = {
		.i = {.reg = SP_INSN_NONE,
		      .rm = SP_INSN_NONE,
		      .base = SP_INSN_NONE,
		      .vvvv = SP_INSN_NONE,
		      .in_op = SP_INSN_NONE},
		.start = at,
		.at = at,
		.end = end,
	};

	if ((size_t)(end - at) > BYTES_MAX)
		r.end = at + BYTES_MAX;
	read_prefixes(&r);
	read_op(&r);
	if (r.rex & 8)
		r.i.is_narrow = false;
	r.i.in_op = (r.i.op & 7) | (r.rex & 1) << 3;
	if (has_modrm(&r.i) && !(r.i.is_vex && r.i.map == 2 && r.i.op == 0x77))
		read_modrm(&r);
	r.i.immediate = take_number(&r, immediate_bytes(&r.i, r.rex & 8));
	r.i.bytes = (uint8_t)(r.at - at);
	r.i.is_known = !r.failed && !is_refused(&r.i);
	r.i.flow = r.i.is_known ? flow_of(&r.i) : SP_INSN_LOST;
	if (r.i.flow == SP_INSN_JUMP || r.i.flow == SP_INSN_BRANCH ||
	    (r.i.flow == SP_INSN_CALL && r.i.op == 0xe8))
		r.i.target =
			(uintptr_t)r.at + (uintptr_t)(intptr_t)r.i.immediate;
	return r.i;
}

/* ---- changes ---- */

enum { REG = 1, RM = 2, IN_OP = 4, VVVV = 8, BYTE = 16 };

/* Which of its registers an instruction of one byte writes. */
static unsigned int written_by_one(const struct sp_insn *i)
{
	const uint8_t op = i->op, last = op & 7;
	const unsigned int byte = op & 1 ? 0 : BYTE;

	if (op < 0x38)
		return last < 2 ? RM | byte : last < 4 ? REG | byte : 0;
	if (op < 0x40 || op == 0x84 || op == 0x85)
		return 0;
	if (op == 0x63 || op == 0x69 || op == 0x6b || op == 0x8b || op == 0x8d)
		return REG;
	if (op == 0x8a)
		return REG | BYTE;
	if (is_in(op, 0x80, 0x83))
		return i->extension == 7 ? 0 : RM | byte;
	if (op == 0x86 || op == 0x87)
		return REG | RM | byte;
	if (op == 0x8c || op == 0x8f)
		return RM;
	if (op == 0x88 || op == 0x89 || op == 0xc0 || op == 0xc1 ||
	    op == 0xc6 || op == 0xc7 || is_in(op, 0xd0, 0xd3))
		return RM | byte;
	if (is_in(op, 0x91, 0x97) || is_in(op, 0xb8, 0xbf))
		return IN_OP;
	if (is_in(op, 0xb0, 0xb7))
		return IN_OP | BYTE;
	if (op == 0xf6 || op == 0xf7)
		return is_in(i->extension, 2, 3) ? RM | byte : 0;
	if (op >= 0xfe)
		return i->extension < 2 ? RM | byte : 0;
	return 0;
}

static unsigned int written_by_two(const struct sp_insn *i)
{
	const uint8_t op = i->op;

	if (op == 0x02 || op == 0x03 || is_in(op, 0x2c, 0x2d) || op == 0x50 ||
	    is_in(op, 0x78, 0x79) || op == 0x93 || op == 0xc5 || op == 0xd7)
		return REG;
	if (op == 0x7e)
		return RM;
	if (i->is_vex)
		return 0;
	if (is_in(op, 0x40, 0x4f) || op == 0xaf || is_in(op, 0xb2, 0xb8) ||
	    is_in(op, 0xbc, 0xbf))
		return op == 0xb3 ? RM : REG;
	if (is_in(op, 0x90, 0x9f))
		return RM | BYTE;
	if (op == 0xba)
		return i->extension == 4 ? 0 : RM;
	if (op == 0xc0 || op == 0xc1)
		return REG | RM;
	if (is_in(op, 0xc8, 0xcf))
		return IN_OP;
	return op < 0x02 || op == 0x20 || op == 0x21 || op == 0xa4 ||
			       op == 0xa5 || is_in(op, 0xab, 0xad) ||
			       op == 0xb0 || op == 0xb1 || op == 0xbb ||
			       op == 0xc7
		       ? RM
		       : 0;
}

static unsigned int written_by(const struct sp_insn *i)
{
	if (i->map == 1)
		return written_by_one(i);
	if (i->map == 2)
		return written_by_two(i);
	if (i->map == 3)
		return is_in(i->op, 0xf0, 0xf7) ? REG | VVVV : 0;
	return is_in(i->op, 0x14, 0x17) ? RM : i->op == 0xf0 ? REG : 0;
}

bool sp_insn_changes(const struct sp_insn *i, uint8_t reg)
{
	const unsigned int written = written_by(i);

	/* Without a prefix those are ah to bh. */
	if (written & BYTE && !i->has_rex)
		return false;
	return (written & REG && i->reg == reg) ||
	       (written & RM && i->rm == reg) ||
	       (written & IN_OP && i->in_op == reg) ||
	       (written & VVVV && i->vvvv == reg);
}
