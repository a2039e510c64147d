/* SPDX-License-Identifier: MIT */
/*
 * Frames made by hand: a word that is no frame ends the walk, every kind of
 * call is known, nothing beyond the end of a stack is read.
 */
#include <unistd.h>

#include "agent/unwind/framewalk.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"
#include "support/given_stack.h"
#include "support/test.h"

#define DEPTH_MAX 512
#define NOINLINE  __attribute__((noinline))

static struct sp_lane *lane;

struct chain {
	struct sp_call_frame frames[6];
};

/* Every kind of instruction that calls, and behind which addresses that is;
 * then something else.  It is never run. */
__asm__(".pushsection .text\n"
	"	.skip 16, 0x90\n"
	"	call *%rax\n1:	call *%r11\n2:	call *(%rbx)\n"
	"3:	call *(%r12)\n4:	call *8(%rbp)\n5:	call *8(%rsp)\n"
	"6:	call *0x100(%rcx)\n7:	call *0x100(%r12)\n"
	"8:	call *(%rax,%rbx,8)\n9:	call *0x1234(,%rbx,8)\n"
	"10:	call *10b(%rip)\n11:	call 11b\n12:	notrack call *%rdx\n"
	"13:	jmp *%rax\n"
	"14:	.skip 16, 0x90\n"
	"	.popsection\n"
	"	.pushsection .data.rel.local, \"aw\"\n"
	"behind_calls: .quad 1b, 2b, 3b, 4b, 5b, 6b, 7b, 8b, 9b, 10b, 11b, "
	"12b, 13b\n"
	"behind_others: .quad 14b, 14b + 8, 1b - 2\n"
	"	.popsection");
extern void *const behind_calls[13], *const behind_others[3];

static void *return_address; /* a real one */

static int NOINLINE take_return_address(void)
{
	return_address = __builtin_return_address(0);
	return 0;
}

static void make_chain(struct chain *c)
{
	for (int i = 0; i < 6; i++)
		c->frames[i] = (struct sp_call_frame){
			i < 5 ? &c->frames[i + 1] : NULL, return_address};
}

static int walk_chain(const struct chain *c, bool *is_cut)
{
	return (int)sp_framewalk_pointers(lane, &c->frames[0], DEPTH_MAX,
					  is_cut)
		->n;
}

/* Each oddity ends the walk where it is. */
TEST(odd_chains)
{
	static void *const not_code[] = {NULL, (void *)0x1234, (void *)~0ul,
					 &lane,
					 (void *)(uintptr_t)0x7ffff0000000ul};
	struct chain c;
	bool is_cut;

	make_chain(&c);
	assert_int_equal(walk_chain(&c, &is_cut), 6);
	/* Nobody is outermost that far down. */
	assert_true(is_cut);
	for (size_t i = 0; i < sizeof(not_code) / sizeof(not_code[0]); i++) {
		make_chain(&c);
		c.frames[3].pc = not_code[i];
		assert_int_equal(walk_chain(&c, &is_cut), 3);
		assert_true(is_cut);
	}
}

TEST(calls)
{
	struct chain c;
	bool is_cut;

	for (int i = 0; i < 13; i++) {
		make_chain(&c);
		c.frames[3].pc = behind_calls[i];
		assert_int_equal(walk_chain(&c, &is_cut), 6);
	}
	for (int i = 0; i < 3; i++) {
		make_chain(&c);
		c.frames[3].pc = behind_others[i];
		assert_int_equal(walk_chain(&c, &is_cut), 3);
		assert_true(is_cut);
	}
}

TEST(odd_pointers)
{
	char *stack = map_stack();
	struct chain c;
	const uintptr_t end =
		sp_stack_bounds_around(lane->stacks, (uintptr_t)&c).high;
	const struct sp_call_frame *const odd[] = {
		&c.frames[2], /* itself */
		&c.frames[0], /* back */
		(const struct sp_call_frame *)((char *)&c.frames[3] + 4),
		(const struct sp_call_frame *)~15ul,
		(const struct sp_call_frame *)(1ul << 63),
		(const struct sp_call_frame *)(stack + STACK_BYTES),
		(const struct sp_call_frame *)(end - 8),
		(const struct sp_call_frame *)end,
		(const struct sp_call_frame *)((uintptr_t)&c + (2ul << 20)),
	};
	bool is_cut;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		make_chain(&c);
		c.frames[2].up = odd[i];
		assert_int_equal(walk_chain(&c, &is_cut), 3);
		assert_true(is_cut);
	}
	unmap_stack(stack);
}

/* On a stack that nothing is known of, up to its very last word and not
 * further. */
TEST(end_of_unknown_stack)
{
	char *stack = map_stack();
	struct sp_call_frame *last =
		(struct sp_call_frame *)(stack + STACK_BYTES) - 1;
	struct sp_call_frame *first = last - 300;
	bool is_cut;

	*first = (struct sp_call_frame){last, return_address};
	*last = (struct sp_call_frame){last + 1, return_address};
	assert_int_equal(
		sp_framewalk_pointers(lane, first, DEPTH_MAX, &is_cut)->n, 2);
	assert_true(is_cut);
	/* Half a frame. */
	first->up = (struct sp_call_frame *)((char *)last + 8);
	assert_int_equal(
		sp_framewalk_pointers(lane, first, DEPTH_MAX, &is_cut)->n, 1);
	assert_true(is_cut);
	unmap_stack(stack);
}

static int begin(void **state)
{
	uint8_t hint = 0;

	(void)state;
	sp_modules_init("/opt/program");
	sp_stack_bounds_init(environ);
	lane = sp_lane_take(&hint);
	take_return_address();
	return 0;
}

TEST_MAIN(begin, NULL)
