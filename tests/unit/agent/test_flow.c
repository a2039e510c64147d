/* SPDX-License-Identifier: MIT */
/*
 * What instructions say of their function's frame is what the unwind tables say
 * of it, behind nearly every call of all objects that the test has loaded, in
 * the long form of all that are installed: wherever it is sure on the way to
 * the return, and from the function's start.
 */

#include "agent/unwind/cfi.h"
#include "agent/unwind/code.h"
#include "agent/unwind/flow.h"
#include "agent/unwind/insn_x86_64.h"
#include "agent/unwind/modules.h"
#include "support/installed.h"
#include "support/test.h"

/* Of each object at most so many functions, evenly spread; in the long form one
 * of MANY of these. */
#define FUNCTIONS_MAX 3000u
#define MANY          4u

static struct sp_cfi_run run;
static struct sp_flow flow;

struct count {
	unsigned long calls, sure, wrong, guessed, started, misled;
};

/* What can be compared: one may go by the stack pointer, the other not. */
static bool is_same(const struct sp_cfi_rule *a, const struct sp_cfi_rule *b)
{
	return a->kind != b->kind ||
	       (a->cfa_bytes == b->cfa_bytes && a->bp_bytes == b->bp_bytes);
}

static void check_call(struct sp_module_entry *e, struct sp_slice code,
		       uintptr_t start, uintptr_t pc, struct count *count)
{
	struct sp_cfi_rule theirs = sp_cfi_find(&run, e, pc), ours;

	if (theirs.kind != SP_CFI_SP && theirs.kind != SP_CFI_BP)
		return;
	count->calls++;
	sp_flow_onwards(&flow, code, pc);
	if (flow.n && flow.frames[0].is_sure) {
		count->sure++;
		count->wrong += !is_same(&flow.frames[0].rule, &theirs);
	}
	for (unsigned int i = 0; i < flow.n; i++) {
		if (is_same(&flow.frames[i].rule, &theirs)) {
			count->guessed++;
			break;
		}
	}
	if (!sp_flow_from_start(&flow, code, start, pc, true, &ours))
		return;
	count->started++;
	/* By a way across another call that does not return. */
	if (!is_same(&ours, &theirs) && installed_one())
		count->misled++;
	else if (!is_same(&ours, &theirs))
		fail_msg("%s+0x%lx: %d %d %d, the tables have %d %d %d",
			 e->name, (unsigned long)(pc - e->bias), ours.kind,
			 ours.cfa_bytes, ours.bp_bytes, theirs.kind,
			 theirs.cfa_bytes, theirs.bp_bytes);
}

/* Then the call in front of it never returns. */
static bool is_padding(uintptr_t at, uintptr_t end)
{
	struct sp_insn i;

	for (; at < end; at += i.bytes) {
		i = sp_insn_read((const uint8_t *)at, (const uint8_t *)end);
		if (i.flow != SP_INSN_NEXT || !((i.map == 2 && i.op == 0x1f) ||
						(i.map == 1 && i.op == 0x90)))
			return false;
	}
	return true;
}

static void check_function(struct sp_module_entry *e, uintptr_t start,
			   uintptr_t end, struct count *count)
{
	struct sp_cfi_rule rule = sp_cfi_find(&run, e, start + 1);
	struct sp_slice code;
	struct sp_insn i;

	if (!sp_code_segment(e, start, PF_R | PF_X, &code) ||
	    end > (uintptr_t)code.end)
		return;
	/* The cold part of one, also behind a nop, which has a rule of its own.
	 */
	if (rule.kind != SP_CFI_SP || rule.cfa_bytes != 8 ||
	    *(const uint8_t *)start == 0x90)
		return;
	for (uintptr_t pc = start; pc < end; pc += i.bytes) {
		i = sp_insn_read((const uint8_t *)pc, code.end);
		if (i.flow == SP_INSN_LOST)
			i.bytes = 1;
		if (i.flow == SP_INSN_CALL && !is_padding(pc + i.bytes, end))
			check_call(e, code, start, pc + i.bytes, count);
	}
}

static void check_object(struct sp_module_entry *e, struct count *count)
{
	uintptr_t base = 0;
	uint32_t n = 0, stride;
	const int32_t *pairs = installed_functions(e, &base, &n);

	stride = (n / FUNCTIONS_MAX + 1) * (installed_one() ? MANY : 1);
	for (uint32_t i = 0; pairs && i + 1 < n; i += stride)
		check_function(e, base + (uintptr_t)(intptr_t)pairs[2 * i],
			       base + (uintptr_t)(intptr_t)pairs[2 * i + 2],
			       count);
}

/* Such code is full of calls that never return. */
static bool is_sanitized(struct sp_module_entry *e)
{
#ifdef __SANITIZE_ADDRESS__
	const uintptr_t here = (uintptr_t)is_sanitized;

	return (here >= e->start && here < e->end) || strstr(e->name, "san.so");
#else
	(void)e;
	return false;
#endif
}

static void check_counts(const struct count *count)
{
	print_message("%lu behind calls: %lu sure (%lu wrong), %lu right at "
		      "all, %lu from the start (%lu wrong)\n",
		      count->calls, count->sure, count->wrong, count->guessed,
		      count->started, count->misled);
	assert_true(count->calls > 10000);
	assert_true(count->sure > count->calls / 5);
	/* Calls that never return, in the middle of a function. */
	assert_true(count->wrong < count->sure / 1000);
	assert_true(count->guessed > count->calls / 10 * 8);
	assert_true(count->started > count->calls / 10 * 8);
	assert_true(count->misled < count->started / 1000);
}

TEST(against_tables)
{
	struct count count = {.calls = 0};

	for (unsigned int i = 0; i < sp_modules_count(); i++)
		if (!is_sanitized(sp_modules_get(i)) &&
		    installed_is(sp_modules_get(i)->name))
			check_object(sp_modules_get(i), &count);
	if (installed_one())
		installed_tell((unsigned long[INSTALLED_SUMS]){
			count.calls, count.sure, count.wrong, count.guessed,
			count.started, count.misled});
	else
		check_counts(&count);
}

TEST(of_all_installed)
{
	unsigned long sums[INSTALLED_SUMS] = {0};
	unsigned int objects;
	struct count count;

	if (installed_one() || !test_rounds(0, 1))
		return;
	objects = installed_check("flow", sums);
	count = (struct count){sums[0], sums[1], sums[2],
			       sums[3], sums[4], sums[5]};
	print_message("%u libraries: ", objects);
	check_counts(&count);
}

/* ---- by hand ---- */

struct form {
	uint8_t code[24];
	int n; /* frames */
	int cfa, bp;
	bool is_sure, is_end;
};

static const struct form forms[] = {
	{{0xc3}, 1, 8, 0, true, false},
	{{0x5d, 0xc3}, 1, 16, -16, true, false}, /* pop %rbp */
	{{0x48, 0x83, 0xc4, 24, 0x5b, 0xc3}, 1, 40, 0, true, false},
	{{0xc9, 0xc3}, 1, 16, -16, true, false}, /* leave */
	{{0x75, 2, 0x5d, 0xc3, 0x5d, 0xc3}, 1, 16, -16, true, false},
	/* jne to another frame: both cannot be right */
	{{0x75, 2, 0x5d, 0xc3, 0x5b, 0x5d, 0xc3}, 0, 0, 0, false, false},
	/* a call on the way */
	{{0xff, 0xd0, 0x5d, 0xc3}, 1, 16, -16, false, false},
	/* pushed and popped on the way: push %rbp; pop %rbp */
	{{0x55, 0x5d, 0xc3}, 1, 8, 0, true, false},
	/* what was pushed is not the caller's: push %rax; pop %rbp */
	{{0x50, 0x5d, 0xc3}, 0, 0, 0, false, false},
	/* mov %rax, %rsp; and $-16, %rsp */
	{{0x48, 0x89, 0xc4, 0xc3}, 0, 0, 0, false, false},
	{{0x48, 0x83, 0xe4, 0xf0, 0xc3}, 0, 0, 0, false, false},
	/* but lea -8(%rbp), %rsp; pop %rbx; pop %rbp knows it again */
	{{0x48, 0x89, 0xc4, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3},
	 1,
	 16,
	 -16,
	 true,
	 false},
	/* a loop */
	{{0xeb, 0xfe}, 0, 0, 0, false, false},
	/* ud2 ends no thread; exit and hlt do */
	{{0x0f, 0x0b}, 0, 0, 0, false, false},
	{{0xb0, 0x3c, 0x0f, 0x05, 0xf4}, 0, 0, 0, false, true},
	/* behind a call that may come back */
	{{0xff, 0xd0, 0xf4}, 0, 0, 0, false, false},
};

TEST(forms)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const struct form *f = &forms[i];
		struct sp_slice code = {f->code, f->code + sizeof(f->code),
					false};

		sp_flow_onwards(&flow, code, (uintptr_t)f->code);
		if ((int)flow.n != f->n || flow.is_end != f->is_end)
			fail_msg("form %zu: %u frames", i, flow.n);
		if (f->n == 0)
			continue;
		assert_int_equal(flow.frames[0].rule.cfa_bytes, f->cfa);
		assert_int_equal(flow.frames[0].rule.bp_bytes, f->bp);
		assert_int_equal(flow.frames[0].is_sure, f->is_sure);
	}
}

/* What is pushed in front of them moves a frame that goes by the stack pointer,
 * and not one that goes by the frame pointer. */
TEST(by_frame_pointer)
{
	/* push %rax; push %rax; leave; ret */
	static const uint8_t leave[] = {0x50, 0x50, 0xc9, 0xc3};
	/* push %rax; mov %rbp, %rsp; pop %rbp; ret */
	static const uint8_t mov[] = {0x50, 0x48, 0x89, 0xec, 0x5d, 0xc3};
	const struct sp_slice codes[] = {{leave, leave + sizeof(leave), false},
					 {mov, mov + sizeof(mov), false}};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		for (int pushed = 1; pushed >= 0; pushed--) {
			sp_flow_onwards(&flow, codes[i],
					(uintptr_t)(codes[i].at + !pushed));
			assert_int_equal(flow.n, 1);
			assert_int_equal(flow.frames[0].rule.kind, SP_CFI_BP);
			assert_int_equal(flow.frames[0].rule.cfa_bytes, 16);
			assert_int_equal(flow.frames[0].rule.bp_bytes, -16);
			assert_true(flow.frames[0].is_sure);
		}
	}
}

/* A call that does not return, and behind it what another way jumps to. */
TEST(behind_call)
{
	/* jne 4; jmp 8; push %rax; push %rax; call *%rax; ret */
	static const uint8_t bytes[16] = {0x75, 2,    0xeb, 4,   0x50,
					  0x50, 0xff, 0xd0, 0xc3};
	const uintptr_t start = (uintptr_t)bytes;
	struct sp_slice code = {bytes, bytes + sizeof(bytes), false};
	struct sp_cfi_rule rule;

	assert_true(
		sp_flow_from_start(&flow, code, start, start + 8, true, &rule));
	assert_int_equal(rule.cfa_bytes, 24);
	/* Interrupted there. */
	assert_true(sp_flow_from_start(&flow, code, start, start + 8, false,
				       &rule));
	assert_int_equal(rule.cfa_bytes, 8);
}

/* Any bytes as code: nothing beyond them is read. */
TEST(damaged)
{
	FREED uint8_t *bytes = malloc(64);
	uint32_t random = 1;
	struct sp_cfi_rule rule;
	const unsigned int rounds =
		installed_one() ? 0 : test_rounds(20000, 100000);

	for (unsigned int round = 0; round < rounds; round++) {
		for (int i = 0; i < 64; i++) {
			random = random * 1664525u + 1013904223u;
			bytes[i] = (uint8_t)(random >> 24);
		}
		sp_flow_onwards(&flow,
				(struct sp_slice){bytes, bytes + 64, false},
				(uintptr_t)bytes + random % 64);
		sp_flow_from_start(&flow,
				   (struct sp_slice){bytes, bytes + 64, false},
				   (uintptr_t)bytes, (uintptr_t)bytes + 63,
				   round & 1, &rule);
	}
}

TEST_MAIN(installed_begin, NULL)
