/* SPDX-License-Identifier: MIT */
/*
 * The format is DWARF's call frame information as the x86-64 ABI and the Linux
 * Standard Base have it: .eh_frame_hdr is a sorted table of (function, entry),
 * an entry (FDE) refers to what it has in common with others (CIE), and both
 * are small programs that describe the frame, instruction by instruction
 * (cfi_entry.h).  Without that table there is one of our own (cfi_index.h).
 */
#include "agent/unwind/cfi.h"

#include <stddef.h>
#include <string.h>

#include "agent/unwind/cfi_entry.h"
#include "agent/unwind/cfi_index.h"
#include "agent/unwind/code.h"
#include "agent/unwind/stack_bounds.h"
#include "base/bisect.h"
#include "base/bytes.h"

#include "agent/sys/poison.h"

/* What the header is made of (DW_EH_PE_*). */
#define UDATA4         0x03
#define PCREL_SDATA4   0x1b
#define DATAREL_SDATA4 0x3b

#define HEADER_PAIR_BYTES 8

/* ---- the entries ---- */

enum found { NOTHING, REFUSED, FOUND };

/* The state at address `at` by the entry at `entry`.  Its function has to begin
 * at `start` if that is not 0. */
static enum found read_fde(struct sp_cfi_run *r, uintptr_t entry, uintptr_t at,
			   uintptr_t start, const struct sp_module_entry *e,
			   bool *is_signal)
{
	struct sp_cfi_view view = {.moved = 0};
	struct sp_cfi_cie cie = {.at = NULL};
	struct sp_cfi_fde fde;
	struct sp_slice segment;

	memset(&r->now, 0, sizeof(r->now));
	r->n_saved = 0;
	r->failed = false;
	if (!sp_code_segment(e, entry, PF_R, &segment))
		return REFUSED;
	view.low = segment.at;
	view.high = segment.end;
	if (!sp_cfi_read_fde(&view, (const uint8_t *)entry, &cie, &fde))
		return REFUSED;
	if (at - fde.begin >= fde.bytes || (start && fde.begin != start))
		return NOTHING;
	r->code_align = cie.code_align;
	r->data_align = cie.data_align;
	r->at = 0;
	r->target = UINTPTR_MAX;
	if (!sp_cfi_program_run(r, cie.program))
		return REFUSED;
	r->initial = r->now;
	r->at = fde.begin;
	r->target = at;
	*is_signal = cie.is_signal;
	return sp_cfi_program_run(r, fde.program) ? FOUND : REFUSED;
}

/* ---- the table ---- */

const uint8_t *sp_cfi_table(const struct sp_module_entry *e,
			    uint32_t *ret_count)
{
	static const uint8_t usual[4] = {1, PCREL_SDATA4, UDATA4,
					 DATAREL_SDATA4};

	for (unsigned int i = 0; i < e->n_phdr; i++) {
		uintptr_t at = e->bias + e->phdr[i].p_vaddr;
		uint64_t bytes = e->phdr[i].p_memsz;
		struct sp_slice s;

		if (e->phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		if (!sp_code_segment(e, at, PF_R, &s) ||
		    bytes > (uintptr_t)s.end - at ||
		    bytes < SP_CFI_HEADER_BYTES ||
		    memcmp((const void *)at, usual, sizeof(usual)) != 0)
			return NULL;
		memcpy(ret_count, (const uint8_t *)at + 8, 4);
		if (*ret_count >
		    (bytes - SP_CFI_HEADER_BYTES) / HEADER_PAIR_BYTES)
			return NULL;
		return (const uint8_t *)at;
	}
	return NULL;
}

/* Word 0 or 1 of a pair: where the function begins, and its entry. */
static uintptr_t table_address(const uint8_t *header, uint32_t i,
			       unsigned int word)
{
	int32_t v;

	memcpy(&v,
	       header + SP_CFI_HEADER_BYTES + i * (size_t)HEADER_PAIR_BYTES +
		       word * sizeof(v),
	       sizeof(v));
	return (uintptr_t)header + (uintptr_t)(intptr_t)v;
}

/* The entry of the last function that begins at or before `at`, or 0. */
static uintptr_t find_entry(struct sp_module_entry *e, uintptr_t at)
{
	uint32_t n = 0;
	const uint8_t *header = sp_cfi_table(e, &n);
	size_t i;

	if (!header)
		return sp_cfi_index_find(e, at);
	SP_LOWER_BOUND(i, n, table_address(header, (uint32_t)i, 0) <= at);
	return i ? table_address(header, (uint32_t)i - 1, 1) : 0;
}

/* The state of the instruction before `pc`: run->now. */
static enum found find_state(struct sp_cfi_run *run, struct sp_module_entry *e,
			     uintptr_t pc, bool *is_signal)
{
	uintptr_t entry = find_entry(e, pc - 1);

	return entry ? read_fde(run, entry, pc - 1, 0, e, is_signal) : NOTHING;
}

/* ---- rules ---- */

/* "The word at rbp + offset": true, and the offset. */
static bool is_word_at_bp(const uint8_t *expression, bool is_read,
			  int64_t *ret_offset)
{
	struct sp_slice s = {expression + 1, expression + 1 + expression[0],
			     false};

	if (expression[0] >= 0x80 || sp_slice_u8(&s) != 0x70 + SP_ARCH_FP)
		return false;
	*ret_offset = sp_cfi_read_sleb(&s);
	return (!is_read || sp_slice_u8(&s) == 0x06) && !s.failed &&
	       s.at == s.end;
}

static bool is_return_saved(const struct sp_cfi_state *s)
{
	return s->where[SP_ARCH_RETURN] == SP_CFI_SAVED &&
	       s->where[SP_ARCH_SP] == SP_CFI_UNTOUCHED;
}

/* gcc's frames whose stack was aligned for vectors: the caller's stack pointer
 * is kept in a word of the frame, and rbp points at that of the caller. */
static struct sp_cfi_rule make_realigned(const struct sp_cfi_state *s)
{
	const int64_t pc = s->place[SP_ARCH_RETURN].value;
	int64_t cfa = 0, bp = 0;

	if (s->where[SP_ARCH_FP] == SP_CFI_SAVED_BY &&
	    is_word_at_bp(s->cfa_expression, true, &cfa) &&
	    is_word_at_bp(s->place[SP_ARCH_FP].expression, false, &bp) &&
	    sp_arch_fits(cfa, bp, pc))
		return (struct sp_cfi_rule){.kind = SP_CFI_REALIGNED,
					    .cfa_bytes = (int32_t)cfa,
					    .bp_bytes = (int32_t)bp,
					    .pc_bytes = (int32_t)pc};
	return (struct sp_cfi_rule){.kind = SP_CFI_OTHER};
}

static bool is_simple(const struct sp_cfi_state *s)
{
	const bool is_saved = s->where[SP_ARCH_FP] == SP_CFI_SAVED;
	const int64_t bp = is_saved ? s->place[SP_ARCH_FP].value : 0;
	const int64_t pc = s->place[SP_ARCH_RETURN].value;

	return s->cfa_offset >= 8 && sp_arch_fits(s->cfa_offset, bp, pc) &&
	       (s->cfa_register == SP_ARCH_SP ||
		s->cfa_register == SP_ARCH_FP) &&
	       (is_saved ? bp <= -8 && bp != pc
			 : s->where[SP_ARCH_FP] == SP_CFI_UNTOUCHED);
}

static struct sp_cfi_rule make_rule(const struct sp_cfi_state *s)
{
	if (s->where[SP_ARCH_RETURN] == SP_CFI_UNDEFINED)
		return (struct sp_cfi_rule){.kind = SP_CFI_END};
	if (is_return_saved(s) && s->cfa_expression)
		return make_realigned(s);
	if (!is_return_saved(s) || !is_simple(s))
		return (struct sp_cfi_rule){.kind = SP_CFI_OTHER};
	return (struct sp_cfi_rule){
		.kind = s->cfa_register == SP_ARCH_SP ? SP_CFI_SP : SP_CFI_BP,
		.cfa_bytes = (int32_t)s->cfa_offset,
		.bp_bytes = s->where[SP_ARCH_FP] == SP_CFI_SAVED
				    ? (int32_t)s->place[SP_ARCH_FP].value
				    : 0,
		.pc_bytes = (int32_t)s->place[SP_ARCH_RETURN].value,
	};
}

/* At an address that is behind no call: the beginning of a function that was
 * put there as the end of a stack, as makecontext does. */
static struct sp_cfi_rule find_beginning(struct sp_cfi_run *run,
					 struct sp_module_entry *e,
					 uintptr_t pc)
{
	uintptr_t entry = find_entry(e, pc);
	bool is_signal = false;

	if (entry && read_fde(run, entry, pc, pc, e, &is_signal) == FOUND &&
	    !is_signal)
		return (struct sp_cfi_rule){.kind = SP_CFI_END,
					    .is_exact = true};
	return (struct sp_cfi_rule){.kind = SP_CFI_NONE};
}

struct sp_cfi_rule sp_cfi_find(struct sp_cfi_run *run,
			       struct sp_module_entry *e, uintptr_t pc)
{
	struct sp_slice code = {NULL, NULL, false};
	bool is_signal = false;

	if (sp_code_segment(e, pc, PF_R | PF_X, &code) &&
	    sp_code_is_trampoline(pc, (uintptr_t)code.end))
		return (struct sp_cfi_rule){.kind = SP_CFI_SIGNAL,
					    .is_exact = true};
	switch (find_state(run, e, pc, &is_signal)) {
	case FOUND:
		if (!is_signal)
			return make_rule(&run->now);
		return (struct sp_cfi_rule){.kind = SP_CFI_OTHER};
	case REFUSED:
		return (struct sp_cfi_rule){.kind = SP_CFI_OTHER};
	default:
		if (code.at && !sp_code_is_behind_call(pc, (uintptr_t)code.at))
			return find_beginning(run, e, pc);
		return (struct sp_cfi_rule){.kind = SP_CFI_NONE};
	}
}

/* ---- all registers ---- */

static bool find_cfa(const struct sp_cfi_state *s,
		     const struct sp_cfi_registers *registers,
		     struct sp_stack_bounds_span *memory, uint64_t *ret)
{
	if (s->cfa_expression)
		return sp_cfi_evaluate(s->cfa_expression, registers, NULL,
				       memory, ret);
	if (s->cfa_register >= SP_ARCH_REGISTERS ||
	    !(registers->known >> s->cfa_register & 1))
		return false;
	*ret = registers->value[s->cfa_register] + (uint64_t)s->cfa_offset;
	return true;
}

/* Register i of the caller; false: it is not known. */
static bool find_register(const struct sp_cfi_state *s, unsigned int i,
			  const struct sp_cfi_registers *registers,
			  uint64_t cfa, struct sp_stack_bounds_span *memory,
			  uint64_t *ret)
{
	const union sp_cfi_place place = s->place[i];
	uint64_t at;

	switch (s->where[i]) {
	case SP_CFI_UNTOUCHED:
		*ret = i == SP_ARCH_SP ? cfa : registers->value[i];
		return i == SP_ARCH_SP ||
		       (registers->known & SP_ARCH_KEPT) >> i & 1;
	case SP_CFI_SAVED:
		return sp_stack_bounds_read(memory, cfa + (uint64_t)place.value,
					    ret);
	case SP_CFI_OFFSET:
		*ret = cfa + (uint64_t)place.value;
		return true;
	case SP_CFI_REGISTER:
		if ((uint64_t)place.value >= SP_ARCH_REGISTERS ||
		    !(registers->known >> place.value & 1))
			return false;
		*ret = registers->value[place.value];
		return true;
	case SP_CFI_SAVED_BY:
		return sp_cfi_evaluate(place.expression, registers, &cfa,
				       memory, &at) &&
		       sp_stack_bounds_read(memory, at, ret);
	case SP_CFI_COMPUTED_BY:
		return sp_cfi_evaluate(place.expression, registers, &cfa,
				       memory, ret);
	default:
		return false;
	}
}

bool sp_cfi_step(struct sp_cfi_run *run, struct sp_module_entry *e,
		 struct sp_cfi_registers *registers,
		 struct sp_stack_bounds_span *memory, bool *is_signal)
{
	struct sp_cfi_registers caller = {.known = 0};
	uint64_t *pc = &registers->value[SP_ARCH_PC], cfa, back;
	bool is_found;

	if (find_state(run, e, *pc, is_signal) != FOUND)
		return false;
	/* Expressions about the instruction are for where a signal can be. */
	--*pc;
	if (!find_cfa(&run->now, registers, memory, &cfa))
		return false;
	is_found = find_register(&run->now, SP_ARCH_RETURN, registers, cfa,
				 memory, &back);
	for (unsigned int i = 0; i < SP_ARCH_PC; i++)
		if (find_register(&run->now, i, registers, cfa, memory,
				  &caller.value[i]))
			caller.known |= 1ull << i;
	*registers = caller;
	if (!is_found || !(caller.known >> SP_ARCH_SP & 1))
		return false;
	*pc = sp_arch_return(back) + *is_signal;
	registers->known |= 1ull << SP_ARCH_PC;
	return true;
}
