/* SPDX-License-Identifier: MIT */
/*
 * A function whose first instructions are displaced does what it did, through
 * its entry by a jump and through the trampoline; what cannot be displaced is
 * refused, with the reason.
 */
#include "agent/divert/entry.h"

#include <string.h>
#include <sys/mman.h>

#include "support/test.h"

#define PLACE 4096

typedef uint64_t function(uint64_t);

/* Two pages: code, and its trampolines. */
static uint8_t *page;

static uint8_t *trampoline(void)
{
	return page + PLACE;
}

static const char *plan_of(const void *code, size_t n, struct sp_entry_plan *p)
{
	page = mmap(NULL, 2 * PLACE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	memcpy(page, code, n);
	return sp_entry_plan((uintptr_t)page, n, (uintptr_t)trampoline(), p);
}

static uint64_t call(const uint8_t *at, uint64_t x)
{
	return __extension__((function *)(uintptr_t)at)(x);
}

/* By the trampoline, by the entry that is a jump to it, and as it was. */
static void check(const void *code, size_t n, const uint64_t expected[2])
{
	struct sp_entry_plan plan;

	assert_null(plan_of(code, n, &plan));
	for (uint64_t x = 0; x < 2; x++)
		assert_int_equal(call(page, x), expected[x]);
	memcpy(trampoline(), plan.trampoline, plan.bytes);
	assert_true(sp_entry_jump((uint8_t *)plan.at, plan.at,
				  (uintptr_t)trampoline()));
	for (uint64_t x = 0; x < 2; x++) {
		assert_int_equal(call(trampoline(), x), expected[x]);
		assert_int_equal(call(page, x), expected[x]);
	}
	munmap(page, 2 * PLACE);
}

#define CHECK(code, zero, one)                                                 \
	check(code, sizeof(code), (const uint64_t[2]){zero, one})

static void refuse(const void *code, size_t n, const char *why)
{
	struct sp_entry_plan plan;

	assert_string_equal(plan_of(code, n, &plan), why);
	munmap(page, 2 * PLACE);
}

#define REFUSE(code, why) refuse(code, sizeof(code), why)

/* lea 1(%rdi),%rax; add $4,%rax; ret */
static const uint8_t plain[] = {0x48, 0x8d, 0x47, 0x01, 0x48,
				0x83, 0xc0, 0x04, 0xc3};

TEST(moved)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48,
					  0x8d, 0x47, 0x01, 0x48, 0x83,
					  0xc0, 0x04, 0xc3};
	/* mov 3(%rip),%eax; add %edi,%eax; ret; what that reads: nops */
	static const uint8_t rip[] = {0x8b, 0x05, 0x03, 0,    0,    0,   0x01,
				      0xf8, 0xc3, 0x90, 0x90, 0x90, 0x90};
	/* test %rdi,%rdi; je 1f; mov $5,%eax; ret; 1: mov $9,%eax; ret */
	static const uint8_t branch[] = {0x48, 0x85, 0xff, 0x74, 0x06, 0xb8,
					 5,    0,    0,    0,    0xc3, 0xb8,
					 9,    0,    0,    0,    0xc3};
	/* jmp 1f; nop; 1: mov $6,%eax; ret */
	static const uint8_t jump[] = {0xe9, 1, 0, 0, 0, 0x90,
				       0xb8, 6, 0, 0, 0, 0xc3};

	CHECK(plain, 5, 6);
	CHECK(landing, 5, 6);
	CHECK(rip, 0x90909090, 0x90909091);
	CHECK(branch, 9, 5);
	CHECK(jump, 6, 6);
}

/* sub $8,%rsp; call 1f; 0: add $8,%rsp; ret; 1: lea 0b(%rip),%rcx;
 * mov (%rsp),%rax; sub %rcx,%rax; add %rdi,%rax; ret: it comes back to 0. */
TEST(call)
{
	static const uint8_t calls[] = {
		0x48, 0x83, 0xec, 0x08, 0xe8, 5,    0,    0,
		0,    0x48, 0x83, 0xc4, 0x08, 0xc3, 0x48, 0x8d,
		0x0d, 0xf4, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x04,
		0x24, 0x48, 0x29, 0xc8, 0x48, 0x01, 0xf8, 0xc3};

	CHECK(calls, 0, 1);
}

TEST(refused)
{
	static const uint8_t is_short[] = {0x89, 0xf8, 0xc3, 0x90, 0x90};
	static const uint8_t no_more[] = {0x48, 0x8d, 0x47, 0x01};
	/* call *0(%rip); ret */
	static const uint8_t calls[] = {0xff, 0x15, 0, 0, 0, 0, 0xc3};
	static const uint8_t traps[] = {0xcc, 0x89, 0xf8, 0x89, 0xf8, 0xc3};
	static const uint8_t none[] = {0x06, 0x89, 0xf8, 0x89, 0xf8, 0xc3};
	static const uint8_t later[] = {0x48, 0x8d, 0x47, 0x01, 0x48,
					0x83, 0xc0, 0x04, 0x06, 0xc3};
	/* dec %rdi is at 4, and the branch goes there. */
	static const uint8_t loops[] = {0x48, 0x8d, 0x47, 0x01, 0x48,
					0xff, 0xcf, 0x75, 0xfb, 0xc3};

	REFUSE(is_short, "is too short");
	REFUSE(no_more, "is too short");
	REFUSE(calls, "begins with a call");
	REFUSE(traps, "begins with a trap, which a debugger may have set");
	REFUSE(none, "begins with what is not understood");
	REFUSE(later, "has an instruction that is not understood");
	REFUSE(loops, "jumps into its own beginning");
}

/* What fills the space up to where another function may begin goes with one
 * that is short. */
TEST(filled)
{
	static const uint8_t returns[] = {0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f,
					  0x84, 0x00, 0x00, 0x00, 0x00, 0x00};
	static const uint8_t traps[] = {0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
	_Alignas(16) uint8_t code[32];
	struct sp_entry_plan plan;
	const uintptr_t at = (uintptr_t)code;

	memset(code, 0x90, sizeof(code));
	memcpy(code, returns, sizeof(returns));
	assert_null(sp_entry_plan(at, 1, at, &plan));
	assert_int_equal(plan.at, at);
	assert_int_equal(plan.trampoline[plan.bytes - 1], 0xc3);
	/* Here it goes on behind a branch. */
	assert_string_equal(sp_entry_plan(at, 16, at, &plan), "is too short");
	memcpy(code, traps, sizeof(traps));
	assert_string_equal(sp_entry_plan(at, 1, at, &plan), "is too short");
	memset(code, 0x90, sizeof(code));
	code[13] = 0xc3;
	assert_string_equal(sp_entry_plan(at + 13, 1, at, &plan),
			    "is too short");
}

TEST(far)
{
	uint8_t code[SP_ENTRY_JUMP];
	struct sp_entry_plan plan;

	assert_false(sp_entry_jump(code, 0, 1ul << 32));
	assert_string_equal(sp_entry_plan((uintptr_t)plain, sizeof(plain),
					  (uintptr_t)plain + (1ul << 33),
					  &plan),
			    "is too far away");
}

/* mov %edx,%esi; jmp -16; and one that does more first. */
TEST(followed)
{
	static const uint8_t shuffles[] = {0x89, 0xd6, 0xeb, 0xf0};
	static const uint8_t loads[] = {0x8b, 0x37, 0xc3};

	assert_int_equal(sp_entry_follow((uintptr_t)shuffles, sizeof(shuffles)),
			 (uintptr_t)shuffles + 4 - 16);
	assert_int_equal(sp_entry_follow((uintptr_t)loads, sizeof(loads)), 0);
	assert_int_equal(sp_entry_follow((uintptr_t)plain, sizeof(plain)), 0);
}

TEST_MAIN(NULL, NULL)
