/* SPDX-License-Identifier: MIT */
/*
 * I1  Whole instructions are displaced, each of which is understood: it does at
 *     the new place what it did at the old one.
 * I2  No instruction of the function itself leads into the bytes that change,
 *     but to the first of them.  What only fills the space up to the next
 *     multiple of 16 belongs to nobody.
 */
#include "agent/divert/entry.h"

#include <string.h>

#include "agent/divert/decode.h"

#include "agent/sys/poison.h"

#define FUNCTION_MAX (64u << 10)
#define ALIGNMENT    16u
#define CALL_BYTES   18u /* of what does the same elsewhere */

static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */

static bool put_distance(uint8_t *at, uintptr_t behind, uintptr_t to)
{
	const int64_t distance = (int64_t)(to - behind);
	const int32_t narrow = (int32_t)distance;

	memcpy(at, &narrow, sizeof(narrow));
	return narrow == distance;
}

bool sp_entry_jump(uint8_t code[SP_ENTRY_JUMP], uintptr_t at, uintptr_t to)
{
	code[0] = 0xe9;
	return put_distance(code + 1, at + SP_ENTRY_JUMP, to);
}

static bool goes_elsewhere(const struct sp_instruction *i)
{
	return i->kind == SP_INSTRUCTION_JMP || i->kind == SP_INSTRUCTION_JCC ||
	       i->kind == SP_INSTRUCTION_CALL || i->kind == SP_INSTRUCTION_LOOP;
}

static bool is_last(const struct sp_instruction *i)
{
	return i->kind == SP_INSTRUCTION_JMP || i->kind == SP_INSTRUCTION_RET ||
	       i->kind == SP_INSTRUCTION_INDIRECT;
}

/* What is copied as it is, but for the distance from rip. */
static const char *copy_instruction(struct sp_entry_plan *plan, uintptr_t to,
				    const uint8_t *code,
				    const struct sp_instruction *i)
{
	uint8_t *at = plan->trampoline + plan->bytes;
	int32_t distance;

	memcpy(at, code, i->length);
	plan->bytes += i->length;
	if (!i->field_size)
		return NULL;
	if (i->field_size != sizeof(distance))
		return "has an operand that cannot be moved";
	memcpy(&distance, code + i->field, sizeof(distance));
	if (!put_distance(at + i->field, to + plan->bytes,
			  (uintptr_t)code + i->length +
				  (uintptr_t)(int64_t)distance))
		return "refers to what is too far away";
	return NULL;
}

/* Near jumps alone, whatever the original was. */
static const char *move_jump(struct sp_entry_plan *plan, uintptr_t to,
			     const uint8_t *code,
			     const struct sp_instruction *i)
{
	uint8_t *at = plan->trampoline + plan->bytes;
	if (i->kind == SP_INSTRUCTION_JMP) {
		*at = 0xe9;
		plan->bytes += 5;
	} else {
		/* Its condition stands before the distance. */
		*at++ = 0x0f;
		*at = (uint8_t)(0x80 | (code[i->field - 1] & 0xf));
		plan->bytes += 6;
	}
	if (!put_distance(at + 1, to + plan->bytes,
			  (uintptr_t)code + (uintptr_t)i->target_offset))
		return "jumps too far away";
	return NULL;
}

/* push; movl to its upper half; jmp: it returns to behind the original, where
 * unwinders look for it. */
static const char *move_call(struct sp_entry_plan *plan, uintptr_t to,
			     const uint8_t *code,
			     const struct sp_instruction *i)
{
	static const uint8_t upper[] = {0xc7, 0x44, 0x24, 0x04};
	const uint64_t back = (uintptr_t)code + i->length;
	uint8_t *at = plan->trampoline + plan->bytes;

	if (sp_decode_has_shadow_stack())
		return "begins with a call";
	at[0] = 0x68;
	memcpy(at + 1, &back, 4);
	memcpy(at + 5, upper, sizeof(upper));
	memcpy(at + 9, (const uint8_t *)&back + 4, 4);
	plan->bytes += CALL_BYTES;
	return sp_entry_jump(at + CALL_BYTES - SP_ENTRY_JUMP,
			     to + plan->bytes - SP_ENTRY_JUMP,
			     (uintptr_t)code + (uintptr_t)i->target_offset)
		       ? NULL
		       : "calls what is too far away";
}

static const char *displace(struct sp_entry_plan *plan, uintptr_t to,
			    const uint8_t *code, const struct sp_instruction *i)
{
	if (plan->bytes + i->length + CALL_BYTES + SP_ENTRY_JUMP >
	    SP_ENTRY_TRAMPOLINE)
		return "begins with too much";
	switch (i->kind) {
	case SP_INSTRUCTION_PLAIN:
	case SP_INSTRUCTION_RIP:
	case SP_INSTRUCTION_RET:
	case SP_INSTRUCTION_ENDBR:
	case SP_INSTRUCTION_INDIRECT:
		return copy_instruction(plan, to, code, i);
	case SP_INSTRUCTION_JMP:
	case SP_INSTRUCTION_JCC:
		return move_jump(plan, to, code, i);
	case SP_INSTRUCTION_CALL:
		return move_call(plan, to, code, i);
	case SP_INSTRUCTION_INDIRECT_CALL:
		return "begins with a call";
	case SP_INSTRUCTION_TRAP:
		return "begins with a trap, which a debugger may have set";
	default:
		return "begins with what is not understood";
	}
}

/* Does an instruction lead behind the first of the bytes that change? */
static const char *look_at_body(const uint8_t *entry, size_t bytes,
				size_t first, size_t last)
{
	struct sp_instruction i;

	for (size_t at = 0; at < bytes; at += i.length) {
		int64_t target;

		if (!sp_decode(entry + at, bytes - at, &i) || !i.length)
			return "has an instruction that is not understood";
		if (!goes_elsewhere(&i))
			continue;
		target = (int64_t)at + i.target_offset;
		if (target > (int64_t)first && target < (int64_t)last)
			return "jumps into its own beginning";
	}
	return NULL;
}

uintptr_t sp_entry_follow(uintptr_t entry, size_t bytes)
{
	const uint8_t *code = (const uint8_t *)entry;
	struct sp_instruction i;

	if (bytes >= sizeof(landing) + SP_ENTRY_JUMP)
		return 0;
	for (size_t at = 0; at < bytes; at += i.length) {
		if (!sp_decode(code + at, bytes - at, &i))
			return 0;
		if (i.kind == SP_INSTRUCTION_JMP)
			return entry + at + (uintptr_t)i.target_offset;
		if (i.kind != SP_INSTRUCTION_PLAIN &&
		    i.kind != SP_INSTRUCTION_ENDBR)
			return 0;
	}
	return 0;
}

/* Nops, at most up to where another function may begin. */
static bool is_filling(uintptr_t entry, size_t at, size_t end)
{
	const uint8_t *code = (const uint8_t *)entry;
	struct sp_instruction i;

	if (entry % ALIGNMENT || end > ALIGNMENT)
		return false;
	for (; at < end; at += i.length) {
		size_t p = at;

		if (!sp_decode(code + at, ALIGNMENT - at, &i) || !i.length)
			return false;
		while (code[p] == 0x66 || code[p] == 0x2e)
			p++;
		if (code[p] != 0x90 && (code[p] != 0x0f || code[p + 1] != 0x1f))
			return false;
	}
	return true;
}

const char *sp_entry_plan(uintptr_t entry, size_t bytes, uintptr_t to,
			  struct sp_entry_plan *ret)
{
	const uint8_t *code = (const uint8_t *)entry;
	size_t first = 0, at;
	bool is_end = false;
	const char *why;

	if (bytes > FUNCTION_MAX)
		return "is too long to be looked through";
	if (bytes >= sizeof(landing) &&
	    memcmp(code, landing, sizeof(landing)) == 0)
		first = sizeof(landing);
	memcpy(ret->trampoline, landing, sizeof(landing));
	ret->bytes = sizeof(landing);
	ret->at = entry + first;
	for (at = first; at < first + SP_ENTRY_JUMP;) {
		struct sp_instruction i;

		if (is_end && at >= bytes &&
		    is_filling(entry, at, first + SP_ENTRY_JUMP))
			break;
		if (is_end || at >= bytes)
			return "is too short";
		if (!sp_decode(code + at, bytes - at, &i) || !i.length)
			return "begins with what is not understood";
		why = displace(ret, to, code + at, &i);
		if (why)
			return why;
		is_end = is_last(&i) || i.kind == SP_INSTRUCTION_CALL;
		at += i.length;
	}
	if (at < first + SP_ENTRY_JUMP)
		at = first + SP_ENTRY_JUMP;
	ret->displaced = at - first;
	why = look_at_body(code, bytes, first, at);
	if (why || is_end)
		return why;
	if (!sp_entry_jump(ret->trampoline + ret->bytes, to + ret->bytes,
			   entry + at))
		return "is too far away";
	ret->bytes += SP_ENTRY_JUMP;
	return NULL;
}
