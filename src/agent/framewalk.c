/* SPDX-License-Identifier: MIT */
/*
 * Two ways up the stack from the frame of the library's function that the
 * program called.
 *
 * By frame pointers: nothing says that a register is one, so each is held
 * against what a frame must be: above the last, aligned, in readable memory,
 * with a return address in code, behind an instruction that calls.
 *
 * By rules: right by the unwind tables, at every address, so that what they
 * lead to are frames in use, and readable.  The rules are few words each, and a
 * walk is as many loads.
 */
#include "agent/framewalk.h"

#include <string.h>

#include "agent/arena.h"
#include "agent/modules.h"
#include "agent/rules.h"
#include "agent/stackend.h"

#include "agent/poison.h"

#define PAGE_BYTES 4096ul
/* A frame is not larger, else it is none. */
#define FRAME_BYTES_MAX (1ul << 20)
/* What lies below is no address. */
#define ADDRESS_MIN 0x10000u

/* What matters of a thread that goes on at pc. */
struct position {
	uintptr_t pc;
	struct sp_walk_registers at;
};

static struct position begin(const struct sp_call_frame *from)
{
	return (struct position){
		.pc = (uintptr_t)from->pc,
		.at = {(uintptr_t)(from + 1), (uintptr_t)from->up, NULL},
	};
}

static inline uintptr_t word_at(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

enum outcome { WENT, ENDED, LOST };

/* ---- by frame pointers ---- */

/* How long an indirect call is whose second byte is `modrm`; 0: none. */
static unsigned int indirect_call_bytes(uint8_t modrm, uint8_t sib)
{
	static const uint8_t displacement[3] = {0, 1, 4};
	unsigned int mod = modrm >> 6, rm = modrm & 7;

	if ((modrm & 0x38) != 0x10)
		return 0;
	if (mod == 3)
		return 2;
	if (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5)))
		return 6u + (rm == 4);
	return 2u + (rm == 4) + displacement[mod];
}

/* Does an instruction that calls end at pc? */
static bool is_behind_call(const uint8_t *pc)
{
	if (pc[-5] == 0xe8)
		return true;
	for (unsigned int n = 2; n <= 7; n++)
		if (pc[-(int)n] == 0xff &&
		    indirect_call_bytes(pc[1 - (int)n],
					n > 2 ? pc[2 - (int)n] : 0) == n)
			return true;
	return false;
}

static bool is_return_address(struct sp_lane *lane, uintptr_t pc)
{
	uintptr_t *known = &lane->returns[(pc >> 1) % SP_LANE_RETURNS];
	const struct sp_module_entry *e;

	if (pc < ADDRESS_MIN)
		return false;
	if (*known == pc)
		return true;
	e = sp_modules_find(pc - 1, NULL);
	if (!e || pc - 7 < e->code_start || pc > e->code_end)
		return false;
	/* The code of another object might be gone the next moment. */
	if (!e->permanent)
		return true;
	if (!is_behind_call((const uint8_t *)pc))
		return false;
	*known = pc;
	return true;
}

/* Is there a frame at `at`?  Up to *end is readable; 0: ask for each. */
static bool is_readable(uintptr_t at, uintptr_t end)
{
	if (end)
		return at <= end - sizeof(struct sp_call_frame);
	return sp_stackend_probe(at) &&
	       (at % PAGE_BYTES <= PAGE_BYTES - sizeof(struct sp_call_frame) ||
		sp_stackend_probe(at + sizeof(struct sp_call_frame) - 1));
}

static enum outcome step_by_pointer(struct sp_lane *lane, struct position *p,
				    uintptr_t end)
{
	const uintptr_t at = p->at.bp;
	const struct sp_call_frame *frame = (const struct sp_call_frame *)at;

	if (sp_stackend_is_outermost(at, p->at.sp))
		return ENDED;
	/* Below is as far as above. */
	if (at - p->at.sp > FRAME_BYTES_MAX || at % 8 ||
	    !is_readable(at, end) ||
	    !is_return_address(lane, (uintptr_t)frame->pc))
		return LOST;
	p->pc = (uintptr_t)frame->pc;
	p->at = (struct sp_walk_registers){
		.sp = (uintptr_t)(frame + 1),
		.bp = (uintptr_t)frame->up,
		.bp_at = (const uintptr_t *)at,
	};
	return WENT;
}

/* ---- by rules ---- */

/* To the caller's; false: that is no frame.  `end` as above; 0: not known. */
static inline bool step(struct position *p, const struct sp_cfi_rule *rule,
			uintptr_t end)
{
	uintptr_t cfa = (rule->kind == SP_CFI_BP ? p->at.bp : p->at.sp) +
			(uintptr_t)(intptr_t)rule->cfa_bytes;

	if (cfa <= p->at.sp || cfa - p->at.sp > FRAME_BYTES_MAX || cfa % 8 ||
	    (end && cfa > end))
		return false;
	p->at.bp_at = NULL;
	if (rule->bp_bytes) {
		p->at.bp_at = (const uintptr_t *)(cfa + (uintptr_t)(intptr_t)
								rule->bp_bytes);
		p->at.bp = *p->at.bp_at;
	}
	p->pc = word_at(cfa - 8);
	p->at.sp = cfa;
	return true;
}

static enum outcome step_by_rule(struct position *p, uintptr_t end)
{
	struct sp_cfi_rule rule;

	if (!sp_rules_find(p->pc, &rule) || rule.kind == SP_CFI_OTHER)
		return LOST;
	if (rule.kind == SP_CFI_END)
		return ENDED;
	return step(p, &rule, end) ? WENT : LOST;
}

/* ---- a walk ---- */

static void append(struct sp_walk *walk, const struct position *p)
{
	unsigned int end = walk->first + walk->n++;

	walk->pcs[end] = (void *)p->pc;
	walk->at[end] = p->at;
}

/*
 * The last walk is followed outwards while the new one goes on.  Where both are
 * at the same place with the same registers, all further words that a walk
 * reads are at the addresses where they were last time; as long as they are the
 * same, so are the frames.  Nothing waits for anything then, so this is several
 * times faster than going by the rules, where each load depends on the one
 * before.
 *
 * Is frame i of the last walk, or the next one that is not below p, where p is?
 */
static bool is_at(const struct sp_walk *last, unsigned int *i,
		  const struct position *p)
{
	const unsigned int end = last->first + last->n;

	while (*i < end && last->at[*i].sp < p->at.sp)
		++*i;
	return *i < end && last->at[*i].sp == p->at.sp &&
	       last->at[*i].bp == p->at.bp && (uintptr_t)last->pcs[*i] == p->pc;
}

/* The first frame from i on that is not as it was; all before i are.  By frame
 * pointers, both words of each are side by side. */
static inline __attribute__((always_inline)) unsigned int find_change(
	const struct sp_walk *last, unsigned int i, bool by_pointers)
{
	const struct sp_walk_registers *at = &last->at[i];
	void *const *pc = &last->pcs[i];
	void *const *end = &last->pcs[last->first + last->n];

	for (; pc < end; at++, pc++)
		if (word_at(at->sp - 8) != (uintptr_t)*pc ||
		    (by_pointers ? word_at(at->sp - 16) != at->bp
				 : at->bp_at && *at->bp_at != at->bp))
			break;
	return (unsigned int)(pc - last->pcs);
}

static void copy(struct sp_walk *to, unsigned int at,
		 const struct sp_walk *from, unsigned int first, unsigned int n)
{
	memcpy(&to->pcs[at], &from->pcs[first], n * sizeof(to->pcs[0]));
	memcpy(&to->at[at], &from->at[first], n * sizeof(to->at[0]));
}

/*
 * Both are at frame i of the last walk.  Returns the one that goes on, beyond
 * what is as it was: the last one, with the new frames in front, if it is that
 * up to its end and there is room for what is still to come, else the new one.
 */
static struct sp_walk *join(struct sp_walk *walk, struct sp_walk *last,
			    unsigned int i, unsigned int max, bool by_pointers)
{
	unsigned int end = last->first + last->n, fresh = walk->n - 1;
	unsigned int change = by_pointers ? find_change(last, i + 1, true)
					  : find_change(last, i + 1, false);
	unsigned int same = change - i - 1;
	bool ends = last->is_whole || walk->n + same == max;

	/* In front of i is room: all walks end in the upper half. */
	if (change == end && walk->n + same <= max &&
	    (ends || i - fresh + max <= last->room)) {
		copy(last, i - fresh, walk, walk->first, fresh);
		last->first = i - fresh;
		last->n = end - last->first;
		return last;
	}
	if (same > max - walk->n)
		same = max - walk->n;
	copy(walk, walk->first + walk->n, last, i + 1, same);
	walk->n += same;
	walk->is_whole = i + 1 + same == end && last->is_whole;
	return walk;
}

static bool have_room(struct sp_walk *walk, unsigned int max)
{
	const unsigned int room = 2 * max;
	char *memory;

	if (walk->room >= room)
		return true;
	memory = sp_arena_get(SP_ARENA_WALKS, room * (sizeof(walk->pcs[0]) +
						      sizeof(walk->at[0])));
	if (!memory)
		return false;
	walk->room = room;
	walk->at = (void *)memory;
	walk->pcs = (void *)(walk->at + room);
	return true;
}

/* A walk that the next one may begin with, or NULL.  Of a stack that nothing is
 * known of, frame pointers may have led to memory that is gone. */
static struct sp_walk *last_walk(struct sp_lane *lane, uintptr_t end,
				 unsigned int max, bool by_pointers)
{
	struct sp_walk *last = &lane->walks[lane->walk];

	if (last->n == 0 || last->room < 2 * max ||
	    last->modules != sp_modules_count() ||
	    (by_pointers &&
	     (!end || last->at[last->first + last->n - 1].sp > end)))
		return NULL;
	return last;
}

static inline __attribute__((always_inline)) const struct sp_walk *walk_up(
	struct sp_lane *lane, const struct sp_call_frame *from, uintptr_t end,
	unsigned int max, bool by_pointers, enum outcome *ret)
{
	struct sp_walk *last = last_walk(lane, end, max, by_pointers);
	struct sp_walk *walk = &lane->walks[!lane->walk];
	struct position p = begin(from);
	unsigned int i = last ? last->first : 0;

	if (!have_room(walk, max))
		return NULL;
	walk->first = walk->room / 2;
	walk->n = 0;
	walk->modules = sp_modules_count();
	walk->is_whole = false;
	for (*ret = WENT; *ret == WENT;) {
		append(walk, &p);
		if (last && is_at(last, &i, &p)) {
			walk = join(walk, last, i, max, by_pointers);
			if (walk == last)
				last = NULL;
			p.pc = (uintptr_t)walk->pcs[walk->first + walk->n - 1];
			p.at = walk->at[walk->first + walk->n - 1];
		}
		if (walk->n == max)
			break;
		if (walk->is_whole)
			*ret = ENDED;
		else
			*ret = by_pointers ? step_by_pointer(lane, &p, end)
					   : step_by_rule(&p, end);
	}
	walk->is_whole = *ret == ENDED;
	lane->walk = walk == &lane->walks[1];
	return walk;
}

const struct sp_walk *sp_framewalk_pointers(struct sp_lane *lane,
					    const struct sp_call_frame *from,
					    unsigned int max, bool *is_cut)
{
	enum outcome outcome = LOST;
	const struct sp_walk *walk =
		walk_up(lane, from, sp_stackend_of(lane, (uintptr_t)from), max,
			true, &outcome);

	*is_cut = outcome == LOST;
	return walk;
}

const struct sp_walk *sp_framewalk_rules(struct sp_lane *lane,
					 const struct sp_call_frame *from,
					 unsigned int max)
{
	enum outcome outcome = LOST;
	const struct sp_walk *walk =
		walk_up(lane, from, sp_stackend_nearby((uintptr_t)from), max,
			false, &outcome);

	return outcome == LOST ? NULL : walk;
}

/* ---- learning ---- */

/*
 * What a rule says about p->pc, if it leads to what libunwind has found:
 * `next`, or NULL behind the outermost.  Goes there; false: it does not lead
 * there.
 */
static bool follow(struct position *p, const struct sp_cfi_rule *rule,
		   uintptr_t end, const void *next)
{
	if (rule->kind == SP_CFI_END)
		return !next;
	return next && rule->kind != SP_CFI_OTHER && step(p, rule, end) &&
	       p->pc == (uintptr_t)next;
}

void sp_framewalk_learn(struct sp_lane *lane, const struct sp_call_frame *from,
			void *const *pcs, unsigned int n, bool is_whole)
{
	static const struct sp_cfi_rule other = {.kind = SP_CFI_OTHER};
	struct position p = begin(from);
	/* A rule that is wrong would read anywhere. */
	uintptr_t end = sp_stackend_of(lane, p.at.sp);
	struct sp_module_entry *e = NULL;
	bool is_right = end && n && pcs[0] == from->pc;

	for (unsigned int i = 0; is_right && i + !is_whole < n; i++) {
		const void *next = i + 1 < n ? pcs[i + 1] : NULL;
		const uintptr_t pc = p.pc;
		struct sp_cfi_rule rule;

		if (sp_rules_find(pc, &rule)) {
			is_right = follow(&p, &rule, end, next);
			continue;
		}
		e = sp_modules_find(pc - 1, e);
		if (!e)
			break;
		rule = sp_cfi_find(e, pc);
		is_right = follow(&p, &rule, end, next);
		sp_rules_add(pc, is_right ? &rule : &other, e->permanent);
	}
}
