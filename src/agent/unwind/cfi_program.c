/* SPDX-License-Identifier: MIT */
/*
 * Call frame instructions: a small program for each function, which says at
 * every address where the caller's registers are.
 */
#include "agent/unwind/cfi_program.h"

#include <stddef.h>
#include <string.h>

#include "agent/sys/poison.h"

int64_t sp_cfi_read_sleb(struct sp_slice *s)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = sp_slice_u8(s);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !s->failed);
	if (shift < 64 && byte & 0x40)
		v |= ~0ull << shift;
	return (int64_t)v;
}

uint64_t sp_cfi_read_fixed(struct sp_slice *s, unsigned int bytes)
{
	const uint8_t *p = sp_slice_take(s, bytes);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, bytes);
	return v;
}

/* An expression, which is as long as it says, inside of the tables. */
static const uint8_t *read_expression(struct sp_slice *s)
{
	const uint8_t *expression = s->at;

	sp_slice_take(s, sp_slice_varint(s));
	return expression;
}

/* Of other registers (vectors, flags) nothing is wanted. */
static void set_place(struct sp_cfi_run *r, uint64_t reg,
		      enum sp_cfi_where where, union sp_cfi_place place)
{
	if (reg >= SP_ARCH_REGISTERS)
		return;
	r->now.where[reg] = (uint8_t)where;
	r->now.place[reg] = place;
}

static void set_saved(struct sp_cfi_run *r, uint64_t reg, int64_t factored)
{
	int64_t offset =
		(int64_t)((uint64_t)factored * (uint64_t)r->data_align);

	set_place(r, reg, SP_CFI_SAVED, (union sp_cfi_place){offset});
}

static void restore_rule(struct sp_cfi_run *r, uint64_t reg)
{
	if (reg < SP_ARCH_REGISTERS)
		set_place(r, reg, r->initial.where[reg], r->initial.place[reg]);
}

static void set_cfa(struct sp_cfi_run *r, uint64_t reg, int64_t offset)
{
	r->now.cfa_register = reg;
	r->now.cfa_offset = offset;
	r->now.cfa_expression = NULL;
}

static void push_state(struct sp_cfi_run *r)
{
	if (r->n_saved == SP_CFI_SAVED_STATES)
		r->failed = true;
	else
		r->saved[r->n_saved++] = r->now;
}

static void pop_state(struct sp_cfi_run *r)
{
	if (r->n_saved == 0)
		r->failed = true;
	else
		r->now = r->saved[--r->n_saved];
}

static int64_t read_factored(struct sp_cfi_run *r)
{
	return (int64_t)((uint64_t)sp_cfi_read_sleb(&r->code) *
			 (uint64_t)r->data_align);
}

/* Where the CFA is. */
static void execute_cfa(struct sp_cfi_run *r, uint8_t op)
{
	struct sp_slice *s = &r->code;
	uint64_t reg;

	switch (op) {
	case 0x0c: /* def_cfa */
		reg = sp_slice_varint(s);
		set_cfa(r, reg, (int64_t)sp_slice_varint(s));
		break;
	case 0x12: /* def_cfa_sf */
		reg = sp_slice_varint(s);
		set_cfa(r, reg, read_factored(r));
		break;
	case 0x0d: /* def_cfa_register */
		set_cfa(r, sp_slice_varint(s), r->now.cfa_offset);
		break;
	case 0x0e: /* def_cfa_offset */
		r->now.cfa_offset = (int64_t)sp_slice_varint(s);
		break;
	case 0x13: /* def_cfa_offset_sf */
		r->now.cfa_offset = read_factored(r);
		break;
	case 0x0f: /* def_cfa_expression */
		r->now.cfa_expression = read_expression(s);
		break;
	default:
		r->failed = true;
	}
}

/* Where registers are. */
static void execute_register(struct sp_cfi_run *r, uint8_t op)
{
	struct sp_slice *s = &r->code;
	uint64_t reg = sp_slice_varint(s);
	union sp_cfi_place place = {0};

	switch (op) {
	case 0x05: /* offset_extended */
		set_saved(r, reg, (int64_t)sp_slice_varint(s));
		return;
	case 0x11: /* offset_extended_sf */
		set_saved(r, reg, sp_cfi_read_sleb(s));
		return;
	case 0x2f: /* GNU_negative_offset_extended */
		set_saved(r, reg, (int64_t)(0 - sp_slice_varint(s)));
		return;
	case 0x06: /* restore_extended */
		restore_rule(r, reg);
		return;
	case 0x07: /* undefined */
		set_place(r, reg, SP_CFI_UNDEFINED, place);
		return;
	case 0x08: /* same_value */
		set_place(r, reg, SP_CFI_UNTOUCHED, place);
		return;
	case 0x09: /* register */
		place.value = (int64_t)sp_slice_varint(s);
		set_place(r, reg, SP_CFI_REGISTER, place);
		return;
	case 0x14: /* val_offset */
		place.value =
			(int64_t)(sp_slice_varint(s) * (uint64_t)r->data_align);
		set_place(r, reg, SP_CFI_OFFSET, place);
		return;
	case 0x15: /* val_offset_sf */
		place.value = read_factored(r);
		set_place(r, reg, SP_CFI_OFFSET, place);
		return;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		place.expression = read_expression(s);
		set_place(r, reg,
			  op == 0x10 ? SP_CFI_SAVED_BY : SP_CFI_COMPUTED_BY,
			  place);
		return;
	default:
		r->failed = true;
	}
}

/* One with its operand in the low bits: 1 advance, 2 offset, 3 restore. */
static void execute_short(struct sp_cfi_run *r, uint8_t op)
{
	uint8_t operand = op & 0x3f;

	if (op >> 6 == 1)
		r->at += operand * r->code_align;
	else if (op >> 6 == 2)
		set_saved(r, operand, (int64_t)sp_slice_varint(&r->code));
	else
		restore_rule(r, operand);
}

static void execute_program(struct sp_cfi_run *r)
{
	uint8_t op = sp_slice_u8(&r->code);

	if (op & 0xc0) {
		execute_short(r, op);
		return;
	}
	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x01: /* set_loc: no compiler makes it, and no PIC can have it */
		r->failed = true;
		break;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		r->at += sp_cfi_read_fixed(&r->code, 1u << (op - 2)) *
			 r->code_align;
		break;
	case 0x0a:
		push_state(r);
		break;
	case 0x0b:
		pop_state(r);
		break;
	case 0x2e: /* GNU_args_size */
		sp_slice_varint(&r->code);
		break;
	case SP_ARCH_SIGNS: /* every return address is taken for a signed one */
		break;
	default:
		if ((op >= 0x0c && op <= 0x0f) || op == 0x12 || op == 0x13)
			execute_cfa(r, op);
		else
			execute_register(r, op);
	}
}

bool sp_cfi_program_run(struct sp_cfi_run *run, struct sp_slice code)
{
	run->code = code;
	while (run->code.at < run->code.end) {
		execute_program(run);
		if (run->failed || run->code.failed)
			return false;
		if (run->at > run->target)
			break;
	}
	return true;
}
