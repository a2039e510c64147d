/* SPDX-License-Identifier: MIT */
/*
 * An address that leads to no code is not learned; a thread's stack is not
 * taken for that of a dead thread.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/thread/thread.h"
#include "agent/unwind/framewalk.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/rules.h"
#include "agent/unwind/stack_bounds.h"
#include "agent/unwind/step.h"
#include "support/arch.h"
#include "support/test.h"

#define DEPTH_MAX  512
#define PAGE_BYTES 4096ul

static struct sp_lane *lane;

/* A frame of the library's function, as the program called it, with a stack
 * above it that nothing of the program is on. */
TEST(wrong_stack)
{
	struct {
		struct sp_call_frame frame;
		uintptr_t words[600];
	} made = {.frame = {.pc = NULL}};
	struct sp_cfi_rule rule;
	bool is_cut = false;
	void *pc;

	/* Where nothing was learned yet: behind a call of this function. */
	pc = (char *)&&here;
here:
	for (int i = 0; i < 64; i++) {
		if (sp_step_is_return_address(lane, (uintptr_t)pc) &&
		    !sp_rules_find((uintptr_t)pc, &rule))
			break;
		pc = (char *)pc + 1;
	}
	for (int value = 0; value < 3; value++) {
		const uintptr_t words[] = {1, (uintptr_t)&made, ~0ul};

		made.frame = (struct sp_call_frame)TEST_FRAME(&made.frame + 4,
							      pc, made.words);
		for (int i = 0; i < 600; i++)
			made.words[i] = words[value];
		assert_int_equal(sp_framewalk_tables(lane, &made.frame,
						     DEPTH_MAX, &is_cut)
					 ->n,
				 1);
		assert_true(is_cut);
		assert_false(sp_rules_find((uintptr_t)pc, &rule));
	}
}

/* A thread's control block may be where another's was, above a smaller stack:
 * what was known of the first says nothing about the second. */
#define BLOCK_BYTES (256ul << 10)

static uintptr_t known_end(const void *here)
{
	return sp_stack_bounds_around(lane->stacks, (uintptr_t)here).high;
}

static void *begin_with_all(void *arg)
{
	sp_thread.index = 1;
	assert_true(known_end((char *)arg + PAGE_BYTES) >
		    (uintptr_t)arg + BLOCK_BYTES / 2);
	return NULL;
}

static void *begin_with_half(void *arg)
{
	/* One that is looked for at the same place. */
	sp_thread.index = 1 + SP_STACK_BOUNDS_KNOWN;
	/* Its own stack, and memory of somebody else below a hole. */
	assert_true(known_end(&arg) > (uintptr_t)&arg);
	assert_true(known_end((char *)arg + PAGE_BYTES) <=
		    (uintptr_t)arg + 2 * PAGE_BYTES);
	return NULL;
}

static void run_on(char *stack, size_t bytes, void *(*run)(void *), void *arg)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, bytes), 0);
	assert_int_equal(pthread_create(&thread, &attributes, run, arg), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

TEST(stack_of_dead_thread)
{
	char *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(block != MAP_FAILED);
	run_on(block, BLOCK_BYTES, begin_with_all, block);
	assert_int_equal(
		mprotect(block + BLOCK_BYTES / 4, PAGE_BYTES, PROT_NONE), 0);
	run_on(block + BLOCK_BYTES / 2, BLOCK_BYTES / 2, begin_with_half,
	       block);
	munmap(block, BLOCK_BYTES);
}

static int begin(void **state)
{
	uint8_t hint = 0;

	(void)state;
	sp_modules_init("/opt/program");
	sp_stack_bounds_init(environ, 0);
	lane = sp_lane_take(&hint);
	return 0;
}

TEST_MAIN(begin, NULL)
