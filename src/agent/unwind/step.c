/* SPDX-License-Identifier: MIT */
/*
 * One frame up the stack where it takes more than two loads and an addition.
 *
 * A rule is not trusted for being read: it is kept only once it has led to an
 * address that a call, or a signal, can have left.
 *
 * I1  `checked` is an address that was found to be code, that of a frame which
 *     the last walk had, or where a signal interrupted the program.
 * I2  What is reached in a way that the words of the stack do not show, at the
 *     same places each time, has a bp_at that nothing is equal to: `unlike`.
 */
#include "agent/unwind/step.h"

#include "agent/sys/arch.h"
#include "agent/unwind/code.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/rules.h"
#include "agent/unwind/untabled.h"

#include "agent/sys/poison.h"

/* What lies below is no address. */
#define ADDRESS_MIN 0x10000u
/* More own frames than there are below the program's. */
#define REGISTER_STEPS_MAX 1100

/* I2 */
static void set_elsewhere(struct sp_walk_registers *at)
{
	static const uintptr_t words[2] = {0, 1};

	at->bp_at = at->pc_at = &words[at->bp == 0];
}

/* ---- addresses of code ---- */

static struct sp_module_entry *module_at(struct sp_step_way *way, uintptr_t pc)
{
	way->module = sp_modules_find(pc - 1, way->module);
	return way->module;
}

bool sp_step_find_return_address(struct sp_lane *lane, uintptr_t pc)
{
	const struct sp_module_entry *e;
	struct sp_slice code;

	if (pc < ADDRESS_MIN)
		return false;
	e = sp_modules_find(pc - 1, NULL);
	if (!e || !sp_code_segment(e, pc - 1, PF_X, &code))
		return false;
	/* The code of another object might be gone the next moment. */
	if (!e->permanent)
		return true;
	if (!sp_code_is_behind_call(pc, (uintptr_t)code.at))
		return false;
	lane->returns[(pc >> 1) % SP_LANE_RETURNS] = pc;
	return true;
}

/* In no object: what a just-in-time compiler has made, or no code at all.  The
 * page before may be nobody's. */
static bool is_behind_unknown_call(struct sp_step_way *way, uintptr_t pc)
{
	const uintptr_t page = (pc - 1) & -SP_ARCH_PAGE_MIN;
	uintptr_t word, low = pc - sizeof(word);

	if (!sp_stack_bounds_read(&way->code, low, &word)) {
		if (low >= page ||
		    !sp_stack_bounds_read(&way->code, page, &word))
			return false;
		low = page;
	}
	return sp_code_is_behind_call((uintptr_t)&word + (pc - low),
				      (uintptr_t)&word);
}

/* An interpreter that was made at run time jumps to functions, with a return
 * address of its own choice: all that can be told of it is that it is there. */
static bool is_made_code(struct sp_step_way *way, uintptr_t pc)
{
	uintptr_t word;

	if (pc < ADDRESS_MIN || module_at(way, pc) ||
	    !sp_stack_bounds_read(&way->code, pc - sizeof(word), &word))
		return false;
	way->checked = pc;
	return true;
}

/* The code that a signal handler returns to may be in no object, too. */
bool sp_step_is_trampoline(struct sp_step_way *way, uintptr_t pc)
{
	uintptr_t words[2];

	return sp_stack_bounds_read(&way->code, pc, &words[0]) &&
	       sp_stack_bounds_read(&way->code, pc + sizeof(words[0]),
				    &words[1]) &&
	       sp_code_is_trampoline((uintptr_t)words, (uintptr_t)(words + 2));
}

bool sp_step_is_code(struct sp_step_way *way, uintptr_t pc)
{
	struct sp_module_entry *e;
	bool is =
		pc == way->checked || sp_step_is_return_address(way->lane, pc);

	if (!is && pc >= ADDRESS_MIN) {
		e = module_at(way, pc);
		is = (e ? sp_cfi_find(&way->lane->cfi, e, pc).is_exact
			: is_behind_unknown_call(way, pc)) ||
		     sp_step_is_trampoline(way, pc);
	}
	if (is)
		way->checked = pc;
	return is;
}

/* ---- by the frame pointer ---- */

/*
 * The stack pointer of the caller, which is at `pc`, of a frame whose record is
 * at `at`.  Where records may be anywhere in their frames, the rule of the
 * caller finds its own at `up`.
 */
static uintptr_t end_of_frame(struct sp_step_way *way, uintptr_t at,
			      uintptr_t up, uintptr_t pc)
{
	struct sp_cfi_rule rule = {.kind = SP_CFI_NONE};
	struct sp_module_entry *e;
	uintptr_t end = at + 16, sp;

	if (SP_ARCH_RECORD_LAST)
		return end;
	e = module_at(way, pc);
	if (e)
		rule = sp_cfi_find(&way->lane->cfi, e, pc);
	if (rule.kind != SP_CFI_SP || !rule.bp_bytes ||
	    rule.pc_bytes != rule.bp_bytes + 8)
		return end;
	sp = up - (uintptr_t)(intptr_t)(rule.bp_bytes + rule.cfa_bytes);
	return sp >= end && sp <= way->stack.end ? sp : end;
}

/*
 * Code without tables, in object `e` or in none (NULL): made at run time, by
 * Go, in assembly.  There rbp is the frame pointer, if anything is known.  Go
 * changes stacks on its way to C and back; then neither side has tables.
 */
static enum sp_step_outcome step_by_pointer(struct sp_step_way *way,
					    struct sp_step_position *p,
					    const struct sp_module_entry *e)
{
	const uintptr_t at = p->at.bp, sp = p->at.sp;
	struct sp_module_entry *other;
	uintptr_t up, pc;
	bool is_near;

	if (e && sp_stack_bounds_is_first(sp))
		return SP_STEP_ENDED;
	/* As the outermost functions have it where all keep it. */
	if (!at)
		return e && e->is_go ? SP_STEP_ENDED : SP_STEP_LOST;
	if (at % 8 || !sp_stack_bounds_read(&way->stack, at, &up) ||
	    !sp_stack_bounds_read(&way->stack, at + 8, &pc))
		return SP_STEP_LOST;
	pc = sp_arch_return(pc);
	is_near = sp_step_is_above(way, sp, at);
	/* As above: memory may be zero where no record is. */
	if (!pc && is_near)
		return SP_ARCH_RECORD_LAST && e && !e->is_go ? SP_STEP_LOST
							     : SP_STEP_ENDED;
	if (!sp_step_is_code(way, pc) &&
	    !(is_near && !e && is_made_code(way, pc)))
		/* The beginning of runtime.goexit, plus 1. */
		return e && e->is_go && !up && module_at(way, pc) == e
			       ? SP_STEP_ENDED
			       : SP_STEP_LOST;
	if (!is_near) {
		other = e ? module_at(way, pc) : NULL;
		if (!other ||
		    sp_cfi_find(&way->lane->cfi, other, pc).kind != SP_CFI_NONE)
			return SP_STEP_LOST;
	}
	*p = (struct sp_step_position){
		pc, {end_of_frame(way, at, up, pc), up, NULL, NULL}};
	set_elsewhere(&p->at);
	return SP_STEP_WENT;
}

/* ---- by the instructions that follow ---- */

/*
 * Code that was made at run time and keeps no frame pointer, such as CPython's
 * trampolines: calls a function, gives its stack back and returns.  False: it
 * does more.
 */
static bool step_by_epilogue(struct sp_step_way *way,
			     struct sp_step_position *p)
{
	struct sp_code_epilogue e;
	uintptr_t code[3], pc, bp = p->at.bp;
	size_t n = 0;

	while (n < 3 &&
	       sp_stack_bounds_read(&way->code, p->pc + n * sizeof(*code),
				    &code[n]))
		n++;
	if (!sp_code_find_epilogue((const uint8_t *)code, n * sizeof(*code),
				   &e) ||
	    !sp_stack_bounds_read(&way->stack, p->at.sp + (uintptr_t)e.pc_bytes,
				  &pc) ||
	    (e.bp_bytes >= 0 &&
	     !sp_stack_bounds_read(&way->stack,
				   p->at.sp + (uintptr_t)e.bp_bytes, &bp)))
		return false;
	pc = sp_arch_return(pc);
	if (!sp_step_is_code(way, pc))
		return false;
	p->pc = pc;
	p->at.sp += (uintptr_t)e.cfa_bytes;
	p->at.bp = bp;
	set_elsewhere(&p->at);
	return true;
}

/* ---- by the words of a known frame ---- */

static enum sp_step_outcome step_by_signal(struct sp_step_way *way,
					   struct sp_step_position *p)
{
	const uintptr_t context = p->at.sp;
	struct sp_step_position to;

	if (!sp_stack_bounds_read(&way->stack,
				  context + sp_arch_context(SP_ARCH_FP),
				  &to.at.bp) ||
	    !sp_stack_bounds_read(&way->stack,
				  context + sp_arch_context(SP_ARCH_SP),
				  &to.at.sp) ||
	    !sp_stack_bounds_read(&way->stack,
				  context + sp_arch_context(SP_ARCH_PC),
				  &to.pc) ||
	    to.pc < ADDRESS_MIN)
		return SP_STEP_LOST;
	/* It may be another stack. */
	way->stack = sp_stack_bounds_around(way->lane->stacks, to.at.sp);
	way->checked = way->interrupted = ++to.pc;
	set_elsewhere(&to.at);
	*p = to;
	return SP_STEP_WENT;
}

static enum sp_step_outcome step_by_word(struct sp_step_way *way,
					 struct sp_step_position *p,
					 const struct sp_cfi_rule *rule)
{
	const uintptr_t cfa_at =
		p->at.bp + (uintptr_t)(intptr_t)rule->cfa_bytes;
	const uintptr_t bp_at = p->at.bp + (uintptr_t)(intptr_t)rule->bp_bytes;
	uintptr_t cfa;

	if (!sp_stack_bounds_read(&way->stack, cfa_at, &cfa) ||
	    cfa <= p->at.sp || cfa > way->stack.end || cfa % 8 ||
	    !sp_stack_bounds_read(&way->stack, bp_at, &p->at.bp) ||
	    !sp_step_to(way, p, cfa, cfa + (uintptr_t)(intptr_t)rule->pc_bytes))
		return SP_STEP_LOST;
	set_elsewhere(&p->at);
	return SP_STEP_WENT;
}

/* ---- by all registers ---- */

/* What the kernel has kept. */
static bool take_context(struct sp_step_way *way, struct sp_cfi_registers *r)
{
	const uint64_t context = r->value[SP_ARCH_SP];

	for (unsigned int i = 0; i < SP_ARCH_REGISTERS; i++)
		if (!sp_stack_bounds_read(&way->stack,
					  context + sp_arch_context(i),
					  &r->value[i]))
			return false;
	r->value[SP_ARCH_PC]++;
	r->known = (1ull << SP_ARCH_REGISTERS) - 1;
	return true;
}

/* The rule of an address that is not known yet. */
static struct sp_cfi_rule find_rule(struct sp_step_way *way,
				    struct sp_module_entry *e, uintptr_t pc)
{
	struct sp_cfi_rule rule = {.kind = SP_CFI_NONE};

	if (e)
		rule = sp_cfi_find(&way->lane->cfi, e, pc);
	/* It may begin where an object ends. */
	if (rule.kind == SP_CFI_NONE && sp_step_is_trampoline(way, pc))
		rule = (struct sp_cfi_rule){.kind = SP_CFI_SIGNAL,
					    .is_exact = true};
	return rule;
}

/* From the registers of one frame to those of its caller.  *is_signal: it was
 * interrupted there. */
static bool step_registers(struct sp_step_way *way, bool *is_signal)
{
	struct sp_cfi_registers *r = &way->registers;
	const uintptr_t pc = r->value[SP_ARCH_PC];
	struct sp_module_entry *e = module_at(way, pc);
	struct sp_step_position p = {
		pc, {r->value[SP_ARCH_SP], r->value[SP_ARCH_FP], NULL, NULL}};
	struct sp_cfi_rule rule = find_rule(way, e, pc);
	const enum sp_cfi_kind kind = rule.kind;

	*is_signal = kind == SP_CFI_SIGNAL;
	if (*is_signal)
		return take_context(way, r);
	if (kind != SP_CFI_NONE) {
		if (kind == SP_CFI_END ||
		    !sp_cfi_step(&way->lane->cfi, e, r, &way->stack, is_signal))
			return false;
		if (!*is_signal)
			r->known &= ~SP_ARCH_INNERMOST;
		return true;
	}
	if (!e && step_by_epilogue(way, &p)) {
		r->known &= SP_ARCH_KEPT;
	} else if (e && sp_untabled_find(way, &p, e, &rule) &&
		   sp_step_simply(way, &p, &rule)) {
		r->known &= 1ull << SP_ARCH_FP;
	} else {
		if (!(r->known >> SP_ARCH_FP & 1) ||
		    step_by_pointer(way, &p, e) != SP_STEP_WENT)
			return false;
		r->known = 1ull << SP_ARCH_FP;
	}
	r->value[SP_ARCH_PC] = p.pc;
	r->value[SP_ARCH_SP] = p.at.sp;
	r->value[SP_ARCH_FP] = p.at.bp;
	r->known |= 1ull << SP_ARCH_PC | 1ull << SP_ARCH_SP;
	return true;
}

/*
 * A frame that says where its caller is by a register which the walk has not
 * followed: go there once more with all registers, from here.  Not inlined, so
 * that the frame which is begun with is small.
 */
static __attribute__((noinline)) enum sp_step_outcome step_by_registers(
	struct sp_step_way *way, struct sp_step_position *p, void **recorded)
{
	struct sp_cfi_registers *r = &way->registers;
	bool is_signal = false;

	if (!way->has_registers) {
		r->known = sp_arch_registers(r->value);
		r->value[SP_ARCH_PC]++;
	}
	way->has_registers = true;
	for (int i = 0;
	     r->value[SP_ARCH_PC] != p->pc || r->value[SP_ARCH_SP] != p->at.sp;
	     i++)
		if (i == REGISTER_STEPS_MAX || !step_registers(way, &is_signal))
			return SP_STEP_LOST;
	if (!step_registers(way, &is_signal))
		return SP_STEP_LOST;
	*p = (struct sp_step_position){
		r->value[SP_ARCH_PC],
		{r->value[SP_ARCH_SP],
		 r->known >> SP_ARCH_FP & 1 ? r->value[SP_ARCH_FP] : 0, NULL,
		 NULL}};
	set_elsewhere(&p->at);
	if (is_signal) {
		way->stack =
			sp_stack_bounds_around(way->lane->stacks, p->at.sp);
		way->checked = way->interrupted = p->pc;
		*recorded = (char *)*recorded + 1;
	}
	return SP_STEP_WENT;
}

/* ---- any step ---- */

static enum sp_step_outcome step_by_rule(struct sp_step_way *way,
					 struct sp_step_position *p,
					 const struct sp_cfi_rule *rule,
					 const struct sp_module_entry *e,
					 void **recorded)
{
	if (rule->is_exact)
		*recorded = (char *)*recorded + 1;
	switch (rule->kind) {
	case SP_CFI_SP:
	case SP_CFI_BP:
		return sp_step_simply(way, p, rule) ? SP_STEP_WENT
						    : SP_STEP_LOST;
	case SP_CFI_REALIGNED:
		return step_by_word(way, p, rule);
	case SP_CFI_SIGNAL:
		return step_by_signal(way, p);
	case SP_CFI_NONE:
		return !e && step_by_epilogue(way, p)
			       ? SP_STEP_WENT
			       : step_by_pointer(way, p, e);
	case SP_CFI_END:
		return SP_STEP_ENDED;
	default:
		return step_by_registers(way, p, recorded);
	}
}

enum sp_step_outcome sp_step_slowly(struct sp_step_way *way,
				    struct sp_step_position *p,
				    const struct sp_cfi_rule *known,
				    void **recorded)
{
	const uintptr_t pc = p->pc;
	struct sp_module_entry *e = NULL;
	struct sp_cfi_rule rule = *known;
	enum sp_step_outcome outcome;

	if (rule.kind == SP_CFI_UNKNOWN || rule.kind == SP_CFI_NONE) {
		if (!sp_step_is_code(way, pc))
			return SP_STEP_WRONG;
		e = module_at(way, pc);
	}
	if (rule.kind == SP_CFI_UNKNOWN) {
		rule = find_rule(way, e, pc);
		if (rule.kind == SP_CFI_NONE && e &&
		    !sp_stack_bounds_is_first(p->at.sp) &&
		    !sp_untabled_find(way, p, e, &rule))
			rule.kind = SP_CFI_NONE;
	}
	outcome = step_by_rule(way, p, &rule, e, recorded);
	if (known->kind != SP_CFI_UNKNOWN)
		return outcome;
	if (outcome == SP_STEP_WENT && p->pc && !sp_step_is_code(way, p->pc))
		return SP_STEP_LOST;
	if (e && (outcome != SP_STEP_LOST || rule.kind == SP_CFI_OTHER ||
		  rule.kind == SP_CFI_NONE))
		sp_rules_add(pc, &rule, e->permanent);
	return outcome;
}
