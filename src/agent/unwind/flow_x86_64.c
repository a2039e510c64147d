/* SPDX-License-Identifier: MIT */
/*
 * A few instructions change the stack pointer, and a return wants it where it
 * was at the beginning of the function.  So every way to a return says where
 * that is, and a way from the beginning to an instruction says it, too.
 *
 * I1  What is popped was pushed on the way, or stood there before.
 * I2  A jump out of the function is one to a function that gives its own stack
 *     back before it returns: it may be followed like any other, and stands for
 *     a return where it cannot be followed.
 * I3  A call that never returns may be followed by anything.  Behind a call a
 *     way is not sure.
 */
#include "agent/unwind/flow.h"

#include <string.h>

#include "agent/unwind/insn_x86_64.h"

#include "agent/sys/poison.h"

#define ONWARDS_BUDGET 600u
#define START_BUDGET   4000u
#define WORD           8
/* No stack is larger; sums of a few fit. */
#define OFFSET_MAX (1 << 29)

static const struct sp_flow_value unknown = {SP_FLOW_UNKNOWN, 0};

/* ---- values ---- */

static struct sp_flow_value moved(struct sp_flow_value v, int64_t bytes)
{
	const int64_t offset = v.offset + bytes;

	if ((v.kind != SP_FLOW_OF_SP && v.kind != SP_FLOW_OF_BP) ||
	    offset < -OFFSET_MAX || offset > OFFSET_MAX)
		return unknown;
	v.offset = (int32_t)offset;
	return v;
}

/* The word at address `at`. */
static struct sp_flow_value load(const struct sp_flow_path *p,
				 struct sp_flow_value at)
{
	if (at.kind == SP_FLOW_OF_BP)
		return (struct sp_flow_value){SP_FLOW_AT_BP, at.offset};
	if (at.kind != SP_FLOW_OF_SP)
		return unknown;
	for (unsigned int i = p->n_stores; i--;)
		if (p->stores[i].at == at.offset)
			return p->stores[i].value;
	return (struct sp_flow_value){SP_FLOW_AT_SP, at.offset};
}

static bool is_below(const struct sp_flow_path *p, int32_t at)
{
	return p->sp.kind == SP_FLOW_OF_SP && at < p->sp.offset;
}

/* Those that are below the stack pointer, or are known to be anything, are
 * forgotten first. */
static void make_room(struct sp_flow_path *p)
{
	unsigned int out = 0;

	for (unsigned int i = p->n_stores; i--;)
		if (is_below(p, p->stores[i].at) ||
		    p->stores[i].value.kind == SP_FLOW_UNKNOWN)
			out = i;
	memmove(&p->stores[out], &p->stores[out + 1],
		(p->n_stores - out - 1) * sizeof(p->stores[0]));
	p->n_stores--;
}

static void store(struct sp_flow_path *p, struct sp_flow_value at,
		  struct sp_flow_value value, bool is_push)
{
	if (at.kind != SP_FLOW_OF_SP)
		return;
	for (unsigned int i = 0; i < p->n_stores; i++) {
		if (p->stores[i].at == at.offset) {
			p->stores[i].value = value;
			return;
		}
	}
	/* What is kept for the caller is not stored over. */
	if (!is_push && value.kind == SP_FLOW_UNKNOWN)
		return;
	if (p->n_stores == SP_FLOW_STORES_MAX)
		make_room(p);
	p->stores[p->n_stores++] = (struct sp_flow_store){at.offset, value};
}

static void push(struct sp_flow_path *p, struct sp_flow_value value)
{
	p->sp = moved(p->sp, -WORD);
	store(p, p->sp, value, true);
}

static struct sp_flow_value pop(struct sp_flow_path *p)
{
	const struct sp_flow_value value = load(p, p->sp);

	p->sp = moved(p->sp, WORD);
	return value;
}

static struct sp_flow_value value_of(const struct sp_flow_path *p, uint8_t reg)
{
	return reg == SP_INSN_SP ? p->sp : reg == SP_INSN_BP ? p->bp : unknown;
}

static void set(struct sp_flow_path *p, uint8_t reg, struct sp_flow_value v)
{
	if (reg == SP_INSN_SP)
		p->sp = v;
	else if (reg == SP_INSN_BP)
		p->bp = v;
}

/* ---- one instruction ---- */

static struct sp_flow_value address_of(const struct sp_flow_path *p,
				       const struct sp_insn *i)
{
	return moved(value_of(p, i->base), i->displacement);
}

/* False: it is none of those that push and pop. */
static bool run_push_or_pop(struct sp_flow_path *p, const struct sp_insn *i)
{
	struct sp_flow_value value;

	if (i->map != 1 || i->is_vex)
		return false;
	if (i->op >= 0x50 && i->op <= 0x57) {
		push(p, value_of(p, i->in_op));
	} else if (i->op >= 0x58 && i->op <= 0x5f) {
		value = pop(p);
		set(p, i->in_op, value);
	} else if (i->op == 0x68 || i->op == 0x6a || i->op == 0x9c ||
		   (i->op == 0xff && i->extension == 6)) {
		push(p, value_of(p, i->rm));
	} else if (i->op == 0x8f || i->op == 0x9d) {
		value = pop(p);
		set(p, i->op == 0x8f ? i->rm : SP_INSN_NONE, value);
	} else if (i->op == 0xc9) {
		p->sp = p->bp;
		p->bp = pop(p);
	} else {
		return false;
	}
	if (i->is_narrow)
		p->sp = unknown;
	return true;
}

static void run_other(struct sp_flow_path *p, const struct sp_insn *i)
{
	struct sp_flow_value value = unknown;
	uint8_t to = SP_INSN_NONE;

	if (i->map == 1 && !i->is_vex && !i->is_narrow) {
		if (i->op == 0x89 || i->op == 0x8b) { /* mov */
			to = i->op == 0x89 ? i->rm : i->reg;
			if (i->rm != SP_INSN_NONE)
				value = value_of(p, i->op == 0x89 ? i->reg
								  : i->rm);
			else if (i->op == 0x8b)
				value = load(p, address_of(p, i));
			else
				store(p, address_of(p, i), value_of(p, i->reg),
				      false);
		} else if (i->op == 0x8d) { /* lea */
			to = i->reg;
			value = address_of(p, i);
		} else if ((i->op == 0x81 || i->op == 0x83) &&
			   (i->extension == 0 || i->extension == 5)) {
			to = i->rm; /* add, sub */
			value = moved(value_of(p, to),
				      i->extension ? -(int64_t)i->immediate
						   : i->immediate);
		}
	}
	for (uint8_t reg = SP_INSN_SP; reg <= SP_INSN_BP; reg++)
		if (sp_insn_changes(i, reg))
			set(p, reg, reg == to ? value : unknown);
}

static void run(struct sp_flow_path *p, const struct sp_insn *i)
{
	if (!run_push_or_pop(p, i))
		run_other(p, i);
	if (i->flow == SP_INSN_CALL)
		p->crossed = true;
}

/* ---- many ---- */

/* False: that target was seen before, or there is no room to note it. */
static bool note_target(struct sp_flow *f, uintptr_t target)
{
	const uint32_t mark = (uint32_t)(target - (uintptr_t)f->code.at) + 1;
	unsigned int at = mark * 2654435761u >> 24;

	while (f->seen[at % SP_FLOW_SEEN]) {
		if (f->seen[at % SP_FLOW_SEEN] == mark)
			return false;
		at++;
	}
	if (f->n_seen == SP_FLOW_SEEN - 1) {
		f->has_more = true;
		return false;
	}
	f->n_seen++;
	f->seen[at % SP_FLOW_SEEN] = mark;
	return true;
}

static bool was_seen(const struct sp_flow *f, uintptr_t target)
{
	const uint32_t mark = (uint32_t)(target - (uintptr_t)f->code.at) + 1;
	unsigned int at = mark * 2654435761u >> 24;

	for (; f->seen[at % SP_FLOW_SEEN]; at++)
		if (f->seen[at % SP_FLOW_SEEN] == mark)
			return true;
	return false;
}

static void add_path(struct sp_flow *f, const struct sp_flow_path *p,
		     uintptr_t target)
{
	if (target - (uintptr_t)f->code.at >=
	    (uintptr_t)(f->code.end - f->code.at)) {
		f->has_more = true;
		return;
	}
	if (!note_target(f, target))
		return;
	if (f->n_paths == SP_FLOW_PATHS_MAX) {
		f->has_more = true;
		return;
	}
	f->paths[f->n_paths] = *p;
	f->paths[f->n_paths++].at = target;
}

/* What a return says; false: it is none. */
static bool make_frame(const struct sp_flow_path *p, struct sp_cfi_rule *ret)
{
	const bool by_bp = p->sp.kind == SP_FLOW_OF_BP;
	const int32_t cfa = p->sp.offset + WORD;
	int32_t bp = 0;

	if (p->sp.kind == (by_bp ? SP_FLOW_OF_BP : SP_FLOW_OF_SP) &&
	    p->bp.kind == (by_bp ? SP_FLOW_AT_BP : SP_FLOW_AT_SP))
		bp = p->bp.offset - cfa;
	else if (by_bp || p->sp.kind != SP_FLOW_OF_SP ||
		 p->bp.kind != SP_FLOW_OF_BP || p->bp.offset)
		return false;
	/* What was below the stack pointer at the beginning is nobody's. */
	if (p->bp.kind == SP_FLOW_AT_SP && p->bp.offset < 0)
		return false;
	if (cfa < WORD || cfa % WORD || bp % WORD || bp > 0 || bp == -WORD ||
	    !sp_arch_fits(cfa, bp, -WORD))
		return false;
	*ret = (struct sp_cfi_rule){.kind = by_bp ? SP_CFI_BP : SP_CFI_SP,
				    .cfa_bytes = cfa,
				    .bp_bytes = bp,
				    .pc_bytes = -WORD};
	return true;
}

static bool is_same(const struct sp_cfi_rule *a, const struct sp_cfi_rule *b)
{
	return a->kind == b->kind && a->cfa_bytes == b->cfa_bytes &&
	       a->bp_bytes == b->bp_bytes;
}

static void add_frame(struct sp_flow *f, const struct sp_flow_path *p)
{
	struct sp_flow_frame frame = {.is_sure = !p->crossed};

	if (!make_frame(p, &frame.rule))
		return;
	for (unsigned int i = 0; i < f->n; i++) {
		if (is_same(&f->frames[i].rule, &frame.rule)) {
			f->frames[i].is_sure |= frame.is_sure;
			return;
		}
	}
	if (f->n < SP_FLOW_FRAMES_MAX)
		f->frames[f->n++] = frame;
}

/* A jump by a linkage table, or by what it would have: as good as a return, to
 * another object.  Where the registers are the caller's, the word is kept. */
static void leave(struct sp_flow *f, const struct sp_flow_path *p,
		  const struct sp_insn *i)
{
	const uintptr_t slot =
		sp_flow_jumped(p->at - i->bytes, (uintptr_t)f->code.end);

	if (!slot)
		return;
	add_frame(f, p);
	if (f->n_slots < SP_FLOW_SLOTS_MAX && p->sp.kind == SP_FLOW_OF_SP &&
	    !p->sp.offset && p->bp.kind == SP_FLOW_OF_BP && !p->bp.offset)
		f->slots[f->n_slots++] = slot;
}

/* One way to its end.  Those that branch off are kept for later. */
static void run_path(struct sp_flow *f, struct sp_flow_path p)
{
	struct sp_insn i;

	i.flow = SP_INSN_NEXT;
	for (bool is_first = true; f->budget; is_first = false) {
		if (p.at == f->goal &&
		    (!f->is_return || i.flow == SP_INSN_CALL)) {
			f->is_found = true;
			f->paths[0] = p;
			return;
		}
		if (!is_first && was_seen(f, p.at))
			return;
		f->budget--;
		i = sp_insn_read((const uint8_t *)p.at, f->code.end);
		run(&p, &i);
		p.at += i.bytes;
		switch (i.flow) {
		case SP_INSN_RETURN:
			add_frame(f, &p);
			f->has_more = true;
			return;
		case SP_INSN_JUMP:
			add_path(f, &p, i.target);
			return;
		case SP_INSN_BRANCH:
			add_path(f, &p, i.target);
			break;
		case SP_INSN_CALL:
			f->has_more = true;
			break;
		case SP_INSN_HALT:
			f->has_halt = true;
			return;
		case SP_INSN_LOST:
			leave(f, &p, &i);
			f->has_more = true;
			return;
		default:
			break;
		}
	}
	f->has_more = true;
}

static void run_all(struct sp_flow *f, struct sp_slice code, uintptr_t from,
		    uintptr_t goal, unsigned int budget)
{
	struct sp_flow_path p = {
		.at = from,
		.sp = {SP_FLOW_OF_SP, 0},
		.bp = {SP_FLOW_OF_BP, 0},
	};

	f->n = f->n_paths = f->n_seen = f->n_slots = 0;
	f->is_found = f->has_halt = f->has_more = false;
	f->budget = budget;
	f->code = code;
	f->goal = goal;
	memset(f->seen, 0, sizeof(f->seen));
	add_path(f, &p, from);
	while (f->n_paths && f->budget && !f->is_found)
		run_path(f, f->paths[--f->n_paths]);
	if (f->n_paths)
		f->has_more = true;
}

void sp_flow_onwards(struct sp_flow *f, struct sp_slice code, uintptr_t at)
{
	unsigned int n = 0;

	run_all(f, code, at, 0, ONWARDS_BUDGET);
	f->is_end = f->has_halt && !f->has_more;
	/* Of what surely follows only one can be right. */
	for (unsigned int i = 0; i < f->n; i++)
		if (f->frames[i].is_sure)
			f->frames[n++] = f->frames[i];
	if (n)
		f->n = n == 1;
}

bool sp_flow_from_start(struct sp_flow *f, struct sp_slice code,
			uintptr_t start, uintptr_t at, bool is_return,
			struct sp_cfi_rule *ret)
{
	const struct sp_flow_path *p = &f->paths[0];
	int32_t bp = 1;

	f->is_return = is_return;
	run_all(f, code, start, at, START_BUDGET);
	if (!f->is_found)
		return false;
	/* Another way may have changed it that was stored. */
	if (p->bp.kind == SP_FLOW_OF_BP && p->bp.offset == 0)
		bp = 0;
	for (unsigned int i = 0; i < p->n_stores; i++)
		if (p->stores[i].value.kind == SP_FLOW_OF_BP &&
		    p->stores[i].value.offset == 0 &&
		    !is_below(p, p->stores[i].at) &&
		    (bp >= 0 || p->stores[i].at - WORD > bp))
			bp = p->stores[i].at - WORD;
	*ret = (struct sp_cfi_rule){.bp_bytes = bp, .pc_bytes = -WORD};
	if (p->sp.kind == SP_FLOW_OF_SP) {
		ret->kind = SP_CFI_SP;
		ret->cfa_bytes = WORD - p->sp.offset;
	} else if (p->bp.kind == SP_FLOW_OF_SP) {
		ret->kind = SP_CFI_BP;
		ret->cfa_bytes = WORD - p->bp.offset;
	}
	return ret->kind && bp <= 0 && bp != -WORD && bp % WORD == 0 &&
	       ret->cfa_bytes >= WORD && ret->cfa_bytes % WORD == 0 &&
	       sp_arch_fits(ret->cfa_bytes, bp, -WORD);
}

void sp_flow_leaves(struct sp_flow *f, struct sp_slice code, uintptr_t start)
{
	run_all(f, code, start, 0, START_BUDGET);
}

/* ---- calls ---- */

uintptr_t sp_flow_called(uintptr_t pc, uintptr_t low, uintptr_t *slot)
{
	const uint8_t *end = (const uint8_t *)pc;
	int32_t offset;

	*slot = 0;
	if (pc - low < 6)
		return 0;
	memcpy(&offset, end - 4, sizeof(offset));
	if (end[-6] == 0xff && end[-5] == 0x15)
		*slot = pc + (uintptr_t)(intptr_t)offset;
	return end[-5] == 0xe8 ? pc + (uintptr_t)(intptr_t)offset : 0;
}

uintptr_t sp_flow_jumped(uintptr_t at, uintptr_t end)
{
	static const uint8_t endbr[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	int32_t offset;

	if (end - at >= 4 && memcmp((const void *)at, endbr, 4) == 0)
		at += 4;
	if (end - at >= 7 && *(const uint8_t *)at == 0xf2)
		at++;
	if (end - at < 6 || memcmp((const void *)at, "\xff\x25", 2) != 0)
		return 0;
	memcpy(&offset, (const void *)(at + 2), sizeof(offset));
	return at + 6 + (uintptr_t)(intptr_t)offset;
}
