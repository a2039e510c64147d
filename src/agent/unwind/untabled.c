/* SPDX-License-Identifier: MIT */
/*
 * Instructions alone may be wrong about a frame: what follows a call is other
 * code if the call never returns.  So a second witness is heard.
 *
 * I1  A return address says by the call before it, which function has been
 *     called, and that function says how large its frame is where it calls.
 *     Both agree only about the frame's own return address.  The function that
 *     was called may be one of another object that has jumped into this one.
 * I2  Without that witness (the call is one by a pointer, or the function jumps
 *     by a table) the frame of the caller has to lead to an address of code,
 *     too.
 */
#include "agent/unwind/untabled.h"

#include <string.h>

#include "agent/unwind/code.h"
#include "agent/unwind/flow.h"

#include "agent/sys/poison.h"

/* Of a frame, so much is looked at in search of a return address. */
#define SEARCH_BYTES 4096u
/* Functions that are followed from their starts, and ends of threads. */
#define STARTS_MAX 8u
#define ENDS_MAX   4u

/* The frame in question. */
struct frame {
	struct sp_step_way *way;
	const struct sp_step_position *p;
	struct sp_module_entry *e;
	struct sp_slice code;
	uintptr_t at; /* the instruction that is next */
	unsigned int n_starts, n_ends, n_elsewhere;
	struct {
		uintptr_t start;
		struct sp_cfi_rule rule; /* SP_CFI_UNKNOWN: it does not get
					    there */
	} starts[STARTS_MAX];
};

static uintptr_t cfa_of(const struct sp_step_position *p,
			const struct sp_cfi_rule *rule)
{
	return (rule->kind == SP_CFI_BP ? p->at.bp : p->at.sp) +
	       (uintptr_t)(intptr_t)rule->cfa_bytes;
}

/* The word at `at`, which has to be in a segment of the object. */
static bool read_word(const struct sp_module_entry *e, uintptr_t at,
		      uintptr_t *ret)
{
	struct sp_slice segment;

	if (!sp_code_segment(e, at, PF_R, &segment) ||
	    (uintptr_t)segment.end - at < sizeof(*ret))
		return false;
	memcpy(ret, (const void *)at, sizeof(*ret));
	return true;
}

/* The function that the call before `pc` has called, also by a linkage table.
 * 0: the call does not say it. */
static uintptr_t called_before(struct frame *f, uintptr_t pc)
{
	struct sp_module_entry *e = sp_modules_find(pc - 1, f->e);
	struct sp_slice code;
	uintptr_t function, slot;

	if (!e || !sp_code_segment(e, pc - 1, PF_R | PF_X, &code))
		return 0;
	function = sp_flow_called(pc, (uintptr_t)code.at, &slot);
	if (slot && !read_word(e, slot, &function))
		return 0;
	if (!function || slot ||
	    !sp_code_segment(e, function, PF_R | PF_X, &code))
		return function;
	slot = sp_flow_jumped(function, (uintptr_t)code.end);
	return slot && !read_word(e, slot, &function) ? 0 : function;
}

/* The rule here if the function that begins at `start` is the one. */
static struct sp_cfi_rule from_start(struct frame *f, uintptr_t start)
{
	struct sp_cfi_rule rule = {.kind = SP_CFI_UNKNOWN};
	unsigned int i;

	for (i = 0; i < f->n_starts; i++)
		if (f->starts[i].start == start)
			return f->starts[i].rule;
	if (i == STARTS_MAX)
		return rule;
	if (!sp_flow_from_start(&f->way->lane->flow, f->code, start, f->at,
				f->at == f->p->pc, &rule))
		rule.kind = SP_CFI_UNKNOWN;
	f->starts[i].start = start;
	f->starts[i].rule = rule;
	f->n_starts++;
	return rule;
}

enum verdict {
	RIGHT,
	WRONG,
	OPEN,
	ELSEWHERE, /* wrong, unless it got here in a way that is not seen */
};

static bool is_here(const struct frame *f, uintptr_t function)
{
	return function - (uintptr_t)f->code.at <
	       (uintptr_t)(f->code.end - f->code.at);
}

/* The function at `start` is of another object.  Does it become one of this
 * object, which has the frame? */
static enum verdict judge_elsewhere(struct frame *f, uintptr_t start,
				    uintptr_t cfa, struct sp_cfi_rule *rule)
{
	struct sp_module_entry *e = sp_modules_find(start, f->e);
	uintptr_t slots[SP_FLOW_SLOTS_MAX], function;
	struct sp_flow *flow = &f->way->lane->flow;
	struct sp_slice code;
	unsigned int n;

	if (!e || f->n_elsewhere == STARTS_MAX ||
	    !sp_code_segment(e, start, PF_R | PF_X, &code))
		return ELSEWHERE;
	f->n_elsewhere++;
	sp_flow_leaves(flow, code, start);
	n = flow->n_slots;
	memcpy(slots, flow->slots, sizeof(slots));
	for (unsigned int i = 0; i < n; i++) {
		if (!read_word(e, slots[i], &function) || !is_here(f, function))
			continue;
		*rule = from_start(f, function);
		if (rule->kind != SP_CFI_UNKNOWN && cfa_of(f->p, rule) == cfa)
			return RIGHT;
	}
	return ELSEWHERE;
}

/* I1: is `pc` the return address of the frame, which ends at cfa? */
static enum verdict judge(struct frame *f, uintptr_t cfa, uintptr_t pc,
			  struct sp_cfi_rule *rule)
{
	const uintptr_t start = called_before(f, pc);

	if (!start)
		return OPEN;
	if (!is_here(f, start))
		return judge_elsewhere(f, start, cfa, rule);
	*rule = from_start(f, start);
	/* By a jump that a table or a register says. */
	if (rule->kind == SP_CFI_UNKNOWN)
		return OPEN;
	return cfa_of(f->p, rule) == cfa ? RIGHT : WRONG;
}

/* ---- by what follows ---- */

/* What follows says of a frame, and nothing is against it. */
struct open_frames {
	struct sp_flow_frame frames[SP_FLOW_FRAMES_MAX];
	unsigned int n;
};

static bool begin(struct frame *f, struct sp_step_way *way,
		  const struct sp_step_position *p, struct sp_module_entry *e)
{
	*f = (struct frame){.way = way, .p = p, .e = e};
	f->at = p->pc - (p->pc == way->interrupted);
	return sp_code_segment(e, f->at, PF_R | PF_X, &f->code);
}

/* To where the rule leads: to an address of code? */
static bool leads(struct frame *f, const struct sp_cfi_rule *rule,
		  struct sp_step_position *to)
{
	*to = *f->p;
	return sp_step_simply(f->way, to, rule) &&
	       sp_step_is_code(f->way, to->pc);
}

/* True: both witnesses agree, or it is the outermost. */
static bool follow(struct frame *f, struct sp_cfi_rule *ret,
		   struct open_frames *open)
{
	struct sp_flow *flow = &f->way->lane->flow;
	struct sp_step_position to;
	struct sp_cfi_rule rule;
	unsigned int n;

	open->n = 0;
	sp_flow_onwards(flow, f->code, f->at);
	*ret = (struct sp_cfi_rule){.kind = SP_CFI_END};
	if (flow->is_end)
		return true;
	n = flow->n;
	memcpy(open->frames, flow->frames, sizeof(open->frames));
	for (unsigned int i = 0; i < n; i++) {
		*ret = open->frames[i].rule;
		if (!leads(f, ret, &to))
			continue;
		switch (judge(f, to.at.sp, to.pc, &rule)) {
		case RIGHT:
			return true;
		case ELSEWHERE:
			if (!open->frames[i].is_sure)
				break;
			/* fall through */
		case OPEN:
			open->frames[open->n++] = open->frames[i];
			break;
		default:
			break;
		}
	}
	return false;
}

/* ---- by the words of the stack ---- */

/* I1, for each word.  Also where the next function is the thread's first, which
 * nothing but an exit follows. */
static bool search(struct frame *f, struct sp_cfi_rule *ret)
{
	struct sp_step_way *way = f->way;
	const uintptr_t sp = f->p->at.sp, end = sp + SEARCH_BYTES;
	struct sp_flow *flow = &way->lane->flow;
	uintptr_t pc;

	for (uintptr_t at = sp; at < end; at += sizeof(pc)) {
		if (!sp_stack_bounds_read(&way->stack, at, &pc))
			return false;
		if (!sp_step_is_return_address(way->lane, pc))
			continue;
		switch (judge(f, at + sizeof(pc), pc, ret)) {
		case RIGHT:
			return true;
		case OPEN:
			break;
		default:
			continue;
		}
		/* Where it is the first of a thread. */
		if (f->n_ends == ENDS_MAX || !is_here(f, pc))
			continue;
		f->n_ends++;
		sp_flow_onwards(flow, f->code, pc);
		*ret = (struct sp_cfi_rule){
			.kind = SP_CFI_SP,
			.cfa_bytes = (int32_t)(at + sizeof(pc) - sp),
			.pc_bytes = -(int32_t)sizeof(pc)};
		if (flow->is_end)
			return true;
	}
	return false;
}

/* ---- all of it ---- */

/* I2, for so many frames further out. */
#define CALLERS 1

static bool has_caller(struct sp_step_way *way,
		       const struct sp_step_position *p, unsigned int further)
{
	struct sp_module_entry *e = sp_modules_find(p->pc - 1, way->module);
	struct sp_cfi_rule rule;
	struct sp_step_position to;
	struct open_frames open;
	struct frame f;

	if (!e || sp_stack_bounds_is_first(p->at.sp))
		return e;
	if (!begin(&f, way, p, e))
		return false;
	rule = sp_cfi_find(&way->lane->cfi, e, p->pc);
	if (rule.kind == SP_CFI_END || rule.kind == SP_CFI_SIGNAL ||
	    (rule.kind == SP_CFI_NONE && sp_step_is_trampoline(way, p->pc)))
		return true;
	if (rule.kind != SP_CFI_NONE)
		return (rule.kind == SP_CFI_SP || rule.kind == SP_CFI_BP) &&
		       leads(&f, &rule, &to);
	if (follow(&f, &rule, &open) || (open.n && open.frames[0].is_sure) ||
	    search(&f, &rule))
		return true;
	for (unsigned int i = 0; further && i < open.n; i++)
		if (leads(&f, &open.frames[i].rule, &to) &&
		    has_caller(way, &to, further - 1))
			return true;
	return false;
}

bool sp_untabled_find(struct sp_step_way *way, const struct sp_step_position *p,
		      struct sp_module_entry *e, struct sp_cfi_rule *ret)
{
	struct open_frames open;
	struct sp_step_position to;
	struct frame f;

	if (!begin(&f, way, p, e))
		return false;
	if (follow(&f, ret, &open) || search(&f, ret))
		return true;
	for (unsigned int i = 0; i < open.n; i++) {
		*ret = open.frames[i].rule;
		if (open.frames[i].is_sure ||
		    (leads(&f, ret, &to) && has_caller(way, &to, CALLERS)))
			return true;
	}
	return false;
}
