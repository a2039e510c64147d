/* SPDX-License-Identifier: MIT */
/*
 * Frames made by hand: a word that is no frame ends the walk, every kind of
 * call is known, nothing beyond the end of a stack is read.
 */
#include <unistd.h>

#include "agent/unwind/framewalk.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"
#include "support/arch.h"
#include "support/given_stack.h"
#include "support/test.h"

#define DEPTH_MAX 512
#define NOINLINE  __attribute__((noinline))

static struct sp_lane *lane;

__asm__(".pushsection .text\n" TEST_CALLS ".popsection\n"
	".pushsection .data.rel.local, \"aw\"\n"
	"behind_calls: .quad " TEST_BEHIND_CALLS "\n"
	"behind_others: .quad " TEST_NOT_BEHIND "\n"
	".popsection");
extern void *const behind_calls[TEST_N_CALLS]
	__attribute__((visibility("hidden")));
extern void *const behind_others[3] __attribute__((visibility("hidden")));

/* What a frame pointer is at. */
struct record {
	const struct record *up;
	void *pc;
};

struct chain {
	struct record frames[6];
};

static void *return_address; /* a real one */

static int NOINLINE take_return_address(void)
{
	return_address = __builtin_return_address(0);
	return 0;
}

static void make_chain(struct chain *c)
{
	for (int i = 0; i < 6; i++)
		c->frames[i] = (struct record){i < 5 ? &c->frames[i + 1] : NULL,
					       return_address};
}

/* From the function whose record that is. */
static int walk_from(const struct record *first, bool *is_cut)
{
	const struct sp_call_frame *frame = test_frame(first);

	return (int)sp_framewalk_pointers(lane, frame, DEPTH_MAX, is_cut)->n;
}

static int walk_chain(const struct chain *c, bool *is_cut)
{
	return walk_from(&c->frames[0], is_cut);
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

	for (int i = 0; i < TEST_N_CALLS; i++) {
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
	const struct record *const odd[] = {
		&c.frames[2], /* itself */
		&c.frames[0], /* back */
		(const struct record *)((char *)&c.frames[3] + 4),
		(const struct record *)~15ul,
		(const struct record *)(1ul << 63),
		(const struct record *)(stack + STACK_BYTES),
		(const struct record *)(end - 8),
		(const struct record *)end,
		(const struct record *)((uintptr_t)&c + (2ul << 20)),
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
	struct record *last = (struct record *)(stack + STACK_BYTES) - 1;
	struct record *first = last - 300;
	bool is_cut;

	*first = (struct record){last, return_address};
	*last = (struct record){last + 1, return_address};
	assert_int_equal(walk_from(first, &is_cut), 2);
	assert_true(is_cut);
	/* Half a frame. */
	first->up = (struct record *)((char *)last + 8);
	assert_int_equal(walk_from(first, &is_cut), 1);
	assert_true(is_cut);
	unmap_stack(stack);
}

static int begin(void **state)
{
	uint8_t hint = 0;

	(void)state;
	sp_modules_init("/opt/program");
	sp_stack_bounds_init(environ, 0);
	lane = sp_lane_take(&hint);
	take_return_address();
	return 0;
}

TEST_MAIN(begin, NULL)
