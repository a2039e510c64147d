/* SPDX-License-Identifier: MIT */
/*
 * Two ways up the stack from the frame of the library's function that the
 * program called.
 *
 * By frame pointers: nothing says that a register is one, so each is held
 * against what a frame must be: above the last, aligned, in readable memory,
 * with a return address in code, behind an instruction that calls.
 *
 * By rules: right by the unwind tables, at every address.  The rules are few
 * words each, and a walk is as many loads.  What is not as simple is left to
 * step.c.
 */
#include "agent/unwind/framewalk.h"

#include "agent/sys/arena.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/rules.h"
#include "agent/unwind/stack_bounds.h"
#include "agent/unwind/step.h"

#include "agent/sys/poison.h"

#define NONE       UINT32_MAX
#define PASSED_MAX 1000 /* frames */

static inline uintptr_t word_at(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

/* ---- by frame pointers ---- */

static enum sp_step_outcome step_by_pointer(struct sp_step_way *way,
					    struct sp_step_position *p)
{
	const uintptr_t at = p->at.bp;
	uintptr_t up, pc;

	if (sp_stack_bounds_is_outermost(at, p->at.sp))
		return SP_STEP_ENDED;
	if (at % 8 || !sp_step_is_above(way, p->at.sp, at) ||
	    !sp_stack_bounds_read(&way->stack, at, &up) ||
	    !sp_stack_bounds_read(&way->stack, at + 8, &pc))
		return SP_STEP_LOST;
	pc = sp_arch_return(pc);
	if (!sp_step_is_return_address(way->lane, pc))
		return SP_STEP_LOST;
	p->pc = pc;
	p->at = (struct sp_walk_registers){
		.sp = at + 2 * sizeof(up),
		.bp = up,
		.bp_at = (const uintptr_t *)at,
		.pc_at = (const uintptr_t *)(at + 8),
	};
	return SP_STEP_WENT;
}

/* ---- by rules ---- */

static inline __attribute__((always_inline)) enum sp_step_outcome step_by_rule(
	struct sp_step_way *way, struct sp_step_position *p,
	const struct sp_walk *walk)
{
	struct sp_cfi_rule rule;
	/* Of its own, so that otherwise all of it is in registers. */
	struct sp_step_position slow;
	enum sp_step_outcome outcome;

	if (sp_rules_find(p->pc, &rule) && !rule.is_exact &&
	    (rule.kind == SP_CFI_SP || rule.kind == SP_CFI_BP))
		return sp_step_simply(way, p, &rule) ? SP_STEP_WENT
						     : SP_STEP_LOST;
	slow = *p;
	outcome = sp_step_slowly(way, &slow, &rule,
				 &walk->pcs[walk->first + walk->n - 1]);
	*p = slow;
	return outcome;
}

/* ---- a walk ---- */

static void append_frame(struct sp_walk *walk, const struct sp_step_position *p)
{
	unsigned int end = walk->first + walk->n++;

	walk->pcs[end] = (void *)p->pc;
	walk->at[end] = p->at;
}

/* From the outermost frame on, so that those of frames which are as they were
 * last time are known: all from `known` on. */
static void set_hashes(struct sp_walk *walk, unsigned int known)
{
	struct sp_walk_hash *const first = &walk->hashes[walk->first];
	struct sp_walk_hash *at = &walk->hashes[known], h = *at;
	void *const *pc = &walk->pcs[known];

	while (at > first)
		*--at = h = sp_walk_hash_add(h, *--pc);
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
static inline __attribute__((always_inline)) bool is_at(
	const struct sp_walk *last, unsigned int *i,
	const struct sp_step_position *p)
{
	const unsigned int end = last->first + last->n;
	const struct sp_walk_registers *at = &last->at[*i];

	for (; *i < end && at->sp < p->at.sp; at++)
		++*i;
	return *i < end && at->sp == p->at.sp && at->bp == p->at.bp &&
	       (uintptr_t)last->pcs[*i] == p->pc;
}

/* Behind the last frame: one that is never as it was, by either of its words,
 * so that a search needs no other end.  Returns where. */
static unsigned int put_end(struct sp_walk *walk)
{
	static const uintptr_t words[2];
	const unsigned int end = walk->first + walk->n;

	walk->pcs[end] = (void *)1;
	walk->at[end] = (struct sp_walk_registers){
		.sp = (uintptr_t)(words + 2),
		.bp = 1,
		.pc_at = &words[1],
	};
	walk->hashes[end] = SP_WALK_HASH_OUTSIDE;
	return end;
}

/* The first frame from i on that is not as it was, or whose own words do not
 * tell; all before i are.  By frame pointers, both words of each are side by
 * side. */
static inline __attribute__((always_inline)) unsigned int find_change(
	const struct sp_walk *last, unsigned int i, bool by_pointers)
{
	const struct sp_walk_registers *at = &last->at[i];
	void *const *pc = &last->pcs[i];

	for (;; at++, pc++)
		if ((by_pointers ? word_at(at->sp - 16) != at->bp
				 : at->bp_at && *at->bp_at != at->bp) ||
		    sp_arch_return(*at->pc_at) != (uintptr_t)*pc)
			break;
	return (unsigned int)(pc - last->pcs);
}

static void copy_frames(struct sp_walk *to, unsigned int at,
			const struct sp_walk *from, unsigned int first,
			unsigned int n)
{
	/* Mostly few or none. */
	for (unsigned int i = 0; i < n; i++) {
		to->pcs[at + i] = from->pcs[first + i];
		to->at[at + i] = from->at[first + i];
	}
}

/*
 * Both are at frame i of the last walk.  Returns the one that goes on, beyond
 * what is as it was: the last one, with the new frames in front, if it is that
 * up to its end and there is room for what is still to come, else the new one.
 */
static struct sp_walk *join_walks(struct sp_walk *walk, struct sp_walk *last,
				  unsigned int i, unsigned int max,
				  bool by_pointers)
{
	unsigned int end = last->first + last->n, fresh = walk->n - 1;
	unsigned int change = by_pointers ? find_change(last, i + 1, true)
					  : find_change(last, i + 1, false);
	unsigned int same = change - i - 1;
	bool ends = last->is_whole || walk->n + same == max;

	/* In front of i is room: all walks end in the upper half. */
	if (change == end && walk->n + same <= max &&
	    (ends || i - fresh + max <= last->room)) {
		copy_frames(last, i - fresh, walk, walk->first, fresh);
		/* Where its words are: it may have been the first. */
		last->at[i] = walk->at[walk->first + fresh];
		last->first = i - fresh;
		last->n = end - last->first;
		return last;
	}
	if (same > max - walk->n)
		same = max - walk->n;
	copy_frames(walk, walk->first + walk->n, last, i + 1, same);
	walk->n += same;
	walk->is_whole = i + 1 + same == end && last->is_whole;
	return walk;
}

static_assert(sizeof(((struct sp_lane *)0)->walks) / sizeof(struct sp_walk) *
			      SP_LANES * (2 * SP_LANE_DEPTH + 1) *
			      (sizeof(void *) +
			       sizeof(struct sp_walk_registers) +
			       sizeof(((struct sp_walk *)0)->hashes[0])) <
		      SP_ARENA_WALKS_BYTES,
	      "each lane has room");

static bool make_room(struct sp_walk *walk, unsigned int room)
{
	char *memory = sp_arena_get(SP_ARENA_WALKS,
				    (room + 1) * (sizeof(walk->pcs[0]) +
						  sizeof(walk->at[0]) +
						  sizeof(walk->hashes[0])));

	if (!memory)
		return false;
	walk->room = room;
	walk->at = (void *)memory;
	walk->hashes = (void *)(walk->at + room + 1);
	walk->pcs = (void *)(walk->hashes + room + 1);
	return true;
}

/* A walk that the next one may begin with, or NULL.  Of a stack that nothing is
 * known of, frame pointers may have led to memory that is gone. */
static inline struct sp_walk *last_walk(struct sp_lane *lane, uintptr_t end,
					unsigned int modules, unsigned int max,
					bool by_pointers)
{
	struct sp_walk *last = &lane->walks[lane->walk];

	if (last->n == 0 || last->room < 2 * max || last->modules != modules ||
	    (by_pointers && last->at[last->first + last->n - 1].sp > end))
		return NULL;
	return last;
}

static inline __attribute__((always_inline)) const struct sp_walk *walk_up(
	struct sp_lane *lane, const struct sp_call_frame *from,
	unsigned int max, bool by_pointers, bool *is_cut)
{
	struct sp_step_way way;
	struct sp_step_position p = sp_step_begin(&way, lane, from);
	const unsigned int modules = sp_modules_count();
	struct sp_walk *last =
		last_walk(lane, way.stack.high, modules, max, by_pointers);
	struct sp_walk *walk = &lane->walks[!lane->walk];
	unsigned int i = last ? last->first : 0, hashed = NONE;
	enum sp_step_outcome outcome = SP_STEP_WENT;

	if (walk->room < 2 * max && !make_room(walk, 2 * max))
		return NULL;
	walk->first = walk->room / 2;
	walk->n = 0;
	walk->modules = modules;
	walk->is_whole = false;
	while (outcome == SP_STEP_WENT) {
		append_frame(walk, &p);
		if (last && is_at(last, &i, &p)) {
			walk = join_walks(walk, last, i, max, by_pointers);
			if (walk == last) {
				last = NULL;
				if (walk->is_whole || walk->n == max)
					hashed = i;
			}
			p.pc = (uintptr_t)walk->pcs[walk->first + walk->n - 1];
			p.at = walk->at[walk->first + walk->n - 1];
			way.checked = p.pc;
			if (walk->is_whole && walk->n < max) {
				outcome = SP_STEP_ENDED;
				break;
			}
		}
		if (walk->n == max)
			break;
		outcome = by_pointers ? step_by_pointer(&way, &p)
				      : step_by_rule(&way, &p, walk);
		/* What began on a stack of its own has no caller. */
		if (outcome == SP_STEP_WENT && !p.pc)
			outcome = SP_STEP_ENDED;
	}
	walk->n -= outcome == SP_STEP_WRONG;
	if (hashed == NONE)
		hashed = put_end(walk);
	set_hashes(walk, hashed);
	walk->is_whole = outcome == SP_STEP_ENDED;
	lane->walk = walk == &lane->walks[1];
	*is_cut = outcome == SP_STEP_LOST || outcome == SP_STEP_WRONG;
	return walk;
}

const struct sp_walk *sp_framewalk_pointers(struct sp_lane *lane,
					    const struct sp_call_frame *from,
					    unsigned int max, bool *is_cut)
{
	return walk_up(lane, from, max, true, is_cut);
}

const struct sp_walk *sp_framewalk_tables(struct sp_lane *lane,
					  const struct sp_call_frame *from,
					  unsigned int max, bool *is_cut)
{
	return walk_up(lane, from, max, false, is_cut);
}

bool sp_framewalk_passes(struct sp_lane *lane, const struct sp_call_frame *from,
			 uintptr_t place)
{
	struct sp_step_way way;
	struct sp_step_position p = sp_step_begin(&way, lane, from);
	struct sp_module_entry *e = NULL;
	struct sp_cfi_rule rule;
	void *recorded = NULL; /* changes where a signal came in */

	if (place >= way.stack.high)
		return false;
	for (unsigned int i = 0; i < PASSED_MAX; i++) {
		if (p.at.sp > place)
			return true;
		e = p.pc ? sp_modules_find(p.pc - 1, e) : NULL;
		if (!e || sp_modules_is_self(p.pc - 1))
			return false;
		rule = sp_cfi_find(&lane->cfi, e, p.pc);
		if (rule.kind == SP_CFI_NONE || rule.kind == SP_CFI_SIGNAL ||
		    sp_step_slowly(&way, &p, &rule, &recorded) !=
			    SP_STEP_WENT ||
		    recorded)
			return false;
	}
	return false;
}
