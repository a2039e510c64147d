/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions, as unwind tables have them: a machine with a stack, of
 * what compilers and the C library's assembly use.  It ends after a bounded
 * number of steps whatever it is given.
 */
#include <stddef.h>

#include "agent/unwind/cfi_program.h"
#include "agent/unwind/stack_bounds.h"

#include "agent/sys/poison.h"

#define DEPTH_MAX 16
#define STEPS_MAX 256

struct machine {
	struct sp_slice code;
	const uint8_t *begin;
	const struct sp_cfi_registers *registers;
	struct sp_stack_bounds_span *memory;
	uint64_t stack[DEPTH_MAX];
	unsigned int n;
	bool failed;
};

static void push_value(struct machine *m, uint64_t value)
{
	if (m->n == DEPTH_MAX)
		m->failed = true;
	else
		m->stack[m->n++] = value;
}

static uint64_t pop_value(struct machine *m)
{
	if (m->n > 0)
		return m->stack[--m->n];
	m->failed = true;
	return 0;
}

/* The element that is `i` below the top. */
static void pick_value(struct machine *m, unsigned int i)
{
	if (i < m->n)
		push_value(m, m->stack[m->n - 1 - i]);
	else
		m->failed = true;
}

static void push_register(struct machine *m, uint64_t reg)
{
	int64_t offset = sp_cfi_read_sleb(&m->code);

	if (reg >= SP_ARCH_REGISTERS || !(m->registers->known >> reg & 1))
		m->failed = true;
	else
		push_value(m, m->registers->value[reg] + (uint64_t)offset);
}

/* const1u, const1s, const2u ... const8s */
static void push_constant(struct machine *m, uint8_t op)
{
	const unsigned int bytes = 1u << (op - 0x08) / 2;
	uint64_t value = sp_cfi_read_fixed(&m->code, bytes);

	if ((op & 1) && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~0ull << 8 * bytes;
	push_value(m, value);
}

static void read_memory(struct machine *m, unsigned int bytes)
{
	uintptr_t value = 0;

	if (bytes < 1 || bytes > 8 ||
	    !sp_stack_bounds_read(m->memory, pop_value(m), &value)) {
		m->failed = true;
		return;
	}
	push_value(m, bytes < 8 ? value & ((1ull << 8 * bytes) - 1) : value);
}

/* The first two, or the first three, change places. */
static void rotate_values(struct machine *m, unsigned int n)
{
	uint64_t top;

	if (m->n < n) {
		m->failed = true;
		return;
	}
	top = m->stack[m->n - 1];
	for (unsigned int i = m->n - 1; i > m->n - n; i--)
		m->stack[i] = m->stack[i - 1];
	m->stack[m->n - n] = top;
}

static void jump_ahead(struct machine *m, bool is_taken)
{
	int16_t offset = (int16_t)sp_cfi_read_fixed(&m->code, 2);
	ptrdiff_t at = m->code.at - m->begin + offset;

	if (!is_taken)
		return;
	if (at < 0 || at > m->code.end - m->begin)
		m->failed = true;
	else
		m->code.at = m->begin + at;
}

/* Of two values, the second of which was on top. */
static uint64_t combine_values(struct machine *m, uint8_t op, uint64_t a,
			       uint64_t b)
{
	const int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case 0x1a:
		return a & b;
	case 0x1c:
		return a - b;
	case 0x1e:
		return a * b;
	case 0x21:
		return a | b;
	case 0x22:
		return a + b;
	case 0x24:
		return b < 64 ? a << b : 0;
	case 0x25:
		return b < 64 ? a >> b : 0;
	case 0x26:
		return (uint64_t)(sa >> (b < 64 ? b : 63));
	case 0x27:
		return a ^ b;
	case 0x29:
		return a == b;
	case 0x2a:
		return sa >= sb;
	case 0x2b:
		return sa > sb;
	case 0x2c:
		return sa <= sb;
	case 0x2d:
		return sa < sb;
	case 0x2e:
		return a != b;
	default:
		m->failed = true;
		return 0;
	}
}

static void execute_stack(struct machine *m, uint8_t op)
{
	uint64_t top;

	switch (op) {
	case 0x10: /* constu */
		push_value(m, sp_slice_varint(&m->code));
		break;
	case 0x11: /* consts */
		push_value(m, (uint64_t)sp_cfi_read_sleb(&m->code));
		break;
	case 0x12: /* dup */
		pick_value(m, 0);
		break;
	case 0x13: /* drop */
		pop_value(m);
		break;
	case 0x14: /* over */
		pick_value(m, 1);
		break;
	case 0x15: /* pick */
		pick_value(m, sp_slice_u8(&m->code));
		break;
	case 0x16: /* swap */
		rotate_values(m, 2);
		break;
	case 0x17: /* rot */
		rotate_values(m, 3);
		break;
	default:
		top = pop_value(m);
		push_value(m, combine_values(m, op, pop_value(m), top));
	}
}

static void execute_expression(struct machine *m)
{
	uint8_t op = sp_slice_u8(&m->code);

	if (op >= 0x30 && op <= 0x4f) { /* lit0 ... lit31 */
		push_value(m, op - 0x30u);
	} else if (op >= 0x70 && op <= 0x8f) { /* breg0 ... breg31 */
		push_register(m, op - 0x70u);
	} else if (op >= 0x08 && op <= 0x0f) {
		push_constant(m, op);
	} else if (op == 0x92) { /* bregx */
		push_register(m, sp_slice_varint(&m->code));
	} else if (op == 0x06) { /* deref */
		read_memory(m, 8);
	} else if (op == 0x94) { /* deref_size */
		read_memory(m, sp_slice_u8(&m->code));
	} else if (op == 0x23) { /* plus_uconst */
		push_value(m, pop_value(m) + sp_slice_varint(&m->code));
	} else if (op == 0x1f || op == 0x20) { /* neg, not */
		push_value(m, op == 0x1f ? 0 - pop_value(m) : ~pop_value(m));
	} else if (op == 0x28) { /* bra */
		jump_ahead(m, pop_value(m));
	} else if (op == 0x2f) { /* skip */
		jump_ahead(m, true);
	} else if (op != 0x96) { /* nop */
		execute_stack(m, op);
	}
}

bool sp_cfi_evaluate(const uint8_t *expression,
		     const struct sp_cfi_registers *registers,
		     const uint64_t *cfa, struct sp_stack_bounds_span *memory,
		     uint64_t *ret)
{
	/* Both were inside of the tables when the program was read. */
	struct sp_slice head = {expression, expression + SP_VARINT_MAX_BYTES,
				false};
	uint64_t bytes = sp_slice_varint(&head);
	struct machine m = {.code = {head.at, head.at + bytes, false},
			    .begin = head.at,
			    .registers = registers,
			    .memory = memory};

	if (cfa)
		push_value(&m, *cfa);
	for (unsigned int i = 0; m.code.at < m.code.end; i++) {
		execute_expression(&m);
		if (m.failed || m.code.failed || i == STEPS_MAX)
			return false;
	}
	*ret = pop_value(&m);
	return !m.failed;
}
