/* SPDX-License-Identifier: MIT */
/*
 * The format is DWARF's call frame information as the x86-64 ABI and the Linux
 * Standard Base have it: .eh_frame_hdr is a sorted table of (function, entry),
 * an entry (FDE) refers to what it has in common with others (CIE), and both
 * are small programs that describe the frame, instruction by instruction.
 */
#include "agent/cfi.h"

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"

#include "agent/poison.h"

/* How pointers are encoded (DW_EH_PE_*): all that linkers and compilers write
 * for position-independent code. */
#define PCREL_SDATA4      0x1b
#define DATAREL_SDATA4    0x3b
#define UDATA4            0x03
#define FORMAT_MASK       0x0f
#define HEADER_BYTES      12
#define HEADER_PAIR_BYTES 8

/* DWARF's numbers of registers. */
#define REGISTER_BP 6
#define REGISTER_SP 7
#define REGISTER_RA 16

#define SAVED_STATES_MAX 8

/* Where the value of a register in the caller is. */
enum where { UNTOUCHED, SAVED, UNDEFINED, ELSEWHERE };

struct place {
	enum where where;
	int64_t offset; /* from the CFA, of a saved one */
};

struct state {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool has_cfa; /* by register and offset */
	struct place bp, ra;
};

/* A program under way. */
struct run {
	struct sp_slice code;
	uintptr_t at;     /* the address that the state is about */
	uintptr_t target; /* the one it is wanted for */
	uint64_t code_align;
	int64_t data_align;
	struct state now, initial;
	struct state saved[SAVED_STATES_MAX];
	unsigned int n_saved;
	bool failed;
};

static int64_t read_sleb(struct sp_slice *s)
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

static uint64_t read_fixed(struct sp_slice *s, size_t bytes)
{
	const uint8_t *p = sp_slice_take(s, bytes);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, bytes);
	return v;
}

/* An address relative to where it stands. */
static uintptr_t read_relative(struct sp_slice *s)
{
	uintptr_t here = (uintptr_t)s->at;

	return here + (uintptr_t)(int64_t)(int32_t)read_fixed(s, 4);
}

static void skip_expression(struct sp_slice *s)
{
	sp_slice_take(s, sp_slice_varint(s));
}

/* ---- the instructions ---- */

static void set_place(struct run *r, uint64_t reg, enum where where,
		      int64_t factored)
{
	struct place *place = reg == REGISTER_BP   ? &r->now.bp
			      : reg == REGISTER_RA ? &r->now.ra
						   : NULL;

	if (place)
		*place = (struct place){where, factored * r->data_align};
}

static void restore(struct run *r, uint64_t reg)
{
	if (reg == REGISTER_BP)
		r->now.bp = r->initial.bp;
	else if (reg == REGISTER_RA)
		r->now.ra = r->initial.ra;
}

static void set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->now.cfa_register = reg;
	r->now.cfa_offset = offset;
	r->now.has_cfa = true;
}

static void push_state(struct run *r)
{
	if (r->n_saved == SAVED_STATES_MAX)
		r->failed = true;
	else
		r->saved[r->n_saved++] = r->now;
}

static void pop_state(struct run *r)
{
	if (r->n_saved == 0)
		r->failed = true;
	else
		r->now = r->saved[--r->n_saved];
}

/* Where the CFA is. */
static void execute_cfa(struct run *r, uint8_t op)
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
		set_cfa(r, reg, read_sleb(s) * r->data_align);
		break;
	case 0x0d: /* def_cfa_register */
		r->now.cfa_register = sp_slice_varint(s);
		break;
	case 0x0e: /* def_cfa_offset */
		r->now.cfa_offset = (int64_t)sp_slice_varint(s);
		break;
	case 0x13: /* def_cfa_offset_sf */
		r->now.cfa_offset = read_sleb(s) * r->data_align;
		break;
	case 0x0f: /* def_cfa_expression */
		skip_expression(s);
		r->now.has_cfa = false;
		break;
	default:
		r->failed = true;
	}
}

/* Where registers are. */
static void execute_register(struct run *r, uint8_t op)
{
	struct sp_slice *s = &r->code;
	uint64_t reg = sp_slice_varint(s);

	switch (op) {
	case 0x05: /* offset_extended */
		set_place(r, reg, SAVED, (int64_t)sp_slice_varint(s));
		break;
	case 0x11: /* offset_extended_sf */
		set_place(r, reg, SAVED, read_sleb(s));
		break;
	case 0x06: /* restore_extended */
		restore(r, reg);
		break;
	case 0x07: /* undefined */
		set_place(r, reg, UNDEFINED, 0);
		break;
	case 0x08: /* same_value */
		set_place(r, reg, UNTOUCHED, 0);
		break;
	case 0x09: /* register */
	case 0x14: /* val_offset */
		sp_slice_varint(s);
		set_place(r, reg, ELSEWHERE, 0);
		break;
	case 0x15: /* val_offset_sf */
		read_sleb(s);
		set_place(r, reg, ELSEWHERE, 0);
		break;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		skip_expression(s);
		set_place(r, reg, ELSEWHERE, 0);
		break;
	default:
		r->failed = true;
	}
}

/* One with its operand in the low bits: 1 advance, 2 offset, 3 restore. */
static void execute_short(struct run *r, uint8_t op)
{
	uint8_t operand = op & 0x3f;

	if (op >> 6 == 1)
		r->at += operand * r->code_align;
	else if (op >> 6 == 2)
		set_place(r, operand, SAVED,
			  (int64_t)sp_slice_varint(&r->code));
	else
		restore(r, operand);
}

static void execute(struct run *r)
{
	uint8_t op = sp_slice_u8(&r->code);

	if (op & 0xc0) {
		execute_short(r, op);
		return;
	}
	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		r->at += read_fixed(&r->code, 1ul << (op - 2)) * r->code_align;
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
	default:
		if ((op >= 0x0c && op <= 0x0f) || op == 0x12 || op == 0x13)
			execute_cfa(r, op);
		else
			execute_register(r, op);
	}
}

/* Up to the state at the wanted address; false: not understood. */
static bool run_program(struct run *r, struct sp_slice code)
{
	r->code = code;
	while (r->code.at < r->code.end && !r->failed && !r->code.failed) {
		execute(r);
		if (r->at > r->target)
			break;
	}
	return !r->failed && !r->code.failed;
}

/* ---- the entries ---- */

/* The bytes of the entry at p, behind its length; `end` bounds it.  Empty: not
 * of the usual kind. */
static struct sp_slice entry_at(const uint8_t *p, const uint8_t *end)
{
	struct sp_slice s = {p, end, false};
	uint64_t bytes = read_fixed(&s, 4);

	if (s.failed || bytes >= 0xfffffff0u || bytes > sp_slice_left(&s))
		return (struct sp_slice){end, end, true};
	s.end = s.at + bytes;
	return s;
}

/* The letters of a CIE's augmentation behind its z: what is there besides.
 * Only the encoding of functions' addresses matters. */
static bool read_augmentation(struct sp_slice *s, const char *letters)
{
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			if (sp_slice_u8(s) != PCREL_SDATA4)
				return false;
			break;
		case 'P':
			encoding = sp_slice_u8(s) & FORMAT_MASK;
			if (encoding == 0x0 || encoding == 0x4 ||
			    encoding == 0xc)
				sp_slice_take(s, 8);
			else if (encoding == 0x3 || encoding == 0xb)
				sp_slice_take(s, 4);
			else
				return false;
			break;
		case 'L':
			sp_slice_u8(s);
			break;
		default: /* also S, the frame of a signal handler */
			return false;
		}
	}
	return !s->failed;
}

/* The common part: alignments and the state that functions begin with. */
static bool read_cie(struct run *r, struct sp_slice s)
{
	const char *letters;
	struct sp_slice data = {.failed = false};
	uint64_t bytes;

	if (read_fixed(&s, 4) != 0 || sp_slice_u8(&s) != 1)
		return false;
	letters = (const char *)s.at;
	while (sp_slice_u8(&s))
		;
	if (s.failed || letters[0] != 'z')
		return false;
	r->code_align = sp_slice_varint(&s);
	r->data_align = read_sleb(&s);
	if (sp_slice_varint(&s) != REGISTER_RA)
		return false;
	bytes = sp_slice_varint(&s);
	data.at = sp_slice_take(&s, bytes);
	if (!data.at)
		return false;
	data.end = data.at + bytes;
	if (!read_augmentation(&data, letters + 1))
		return false;
	r->at = 0;
	r->target = UINTPTR_MAX;
	if (!run_program(r, s))
		return false;
	r->initial = r->now;
	return true;
}

/* The state at pc by the entry of its function. */
static bool read_fde(struct run *r, const uint8_t *p, uintptr_t pc,
		     const struct sp_module_entry *e)
{
	const uint8_t *end = (const uint8_t *)e->end;
	struct sp_slice s = entry_at(p, end);
	uintptr_t cie = (uintptr_t)s.at, start;
	uint64_t bytes, back = read_fixed(&s, 4);

	if (s.failed || back == 0 || back > cie - e->start)
		return false;
	if (!read_cie(r, entry_at((const uint8_t *)(cie - back), end)))
		return false;
	start = read_relative(&s);
	bytes = read_fixed(&s, 4);
	if (s.failed || pc < start || pc - start >= bytes)
		return false;
	sp_slice_take(&s, sp_slice_varint(&s));
	if (s.failed)
		return false;
	r->at = start;
	r->target = pc;
	return run_program(r, s);
}

/* ---- the table ---- */

static const uint8_t *find_header(const struct sp_module_entry *e,
				  uint32_t *ret_count)
{
	static const uint8_t usual[4] = {1, PCREL_SDATA4, UDATA4,
					 DATAREL_SDATA4};

	for (unsigned int i = 0; i < e->n_phdr; i++) {
		uintptr_t at = e->bias + e->phdr[i].p_vaddr;
		uint64_t bytes = e->phdr[i].p_memsz;

		if (e->phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		if (at < e->start || at > e->end || bytes > e->end - at ||
		    bytes < HEADER_BYTES ||
		    memcmp((const void *)at, usual, sizeof(usual)) != 0)
			return NULL;
		memcpy(ret_count, (const void *)(at + 8), 4);
		if (*ret_count > (bytes - HEADER_BYTES) / HEADER_PAIR_BYTES)
			return NULL;
		return (const uint8_t *)at;
	}
	return NULL;
}

static int32_t table_word(const uint8_t *header, uint32_t i, unsigned int word)
{
	int32_t v;

	memcpy(&v, header + HEADER_BYTES + i * 8ul + word * 4ul, sizeof(v));
	return v;
}

/* The entry of the last function that begins at or before pc, or NULL. */
static const uint8_t *find_entry(const struct sp_module_entry *e, uintptr_t pc)
{
	uint32_t low = 0, high = 0, count = 0;
	const uint8_t *header = find_header(e, &count);
	uintptr_t entry;

	if (!header)
		return NULL;
	high = count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uintptr_t start =
			(uintptr_t)header +
			(uintptr_t)(int64_t)table_word(header, middle, 0);

		if (start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	entry = (uintptr_t)header +
		(uintptr_t)(int64_t)table_word(header, low - 1, 1);
	return entry >= e->start && entry < e->end ? (const uint8_t *)entry
						   : NULL;
}

static bool is_simple(const struct state *s)
{
	return s->has_cfa && s->cfa_offset >= 8 && s->cfa_offset <= INT32_MAX &&
	       (s->cfa_register == REGISTER_SP ||
		s->cfa_register == REGISTER_BP) &&
	       s->ra.where == SAVED && s->ra.offset == -8 &&
	       (s->bp.where == UNTOUCHED ||
		(s->bp.where == SAVED && s->bp.offset <= -16 &&
		 s->bp.offset >= INT16_MIN));
}

static struct sp_cfi_rule make_rule(const struct state *s)
{
	if (s->ra.where == UNDEFINED)
		return (struct sp_cfi_rule){.kind = SP_CFI_END};
	if (!is_simple(s))
		return (struct sp_cfi_rule){.kind = SP_CFI_OTHER};
	return (struct sp_cfi_rule){
		.kind = s->cfa_register == REGISTER_SP ? SP_CFI_SP : SP_CFI_BP,
		.cfa_bytes = (int32_t)s->cfa_offset,
		.bp_bytes = s->bp.where == SAVED ? (int16_t)s->bp.offset : 0,
	};
}

struct sp_cfi_rule sp_cfi_find(const struct sp_module_entry *e, uintptr_t pc)
{
	/* The call is before the return address. */
	const uint8_t *entry = find_entry(e, pc - 1);
	struct run run = {.failed = false};

	if (!entry || !read_fde(&run, entry, pc - 1, e))
		return (struct sp_cfi_rule){.kind = SP_CFI_OTHER};
	return make_rule(&run.now);
}
