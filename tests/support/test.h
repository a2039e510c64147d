/* SPDX-License-Identifier: MIT */
#pragma once

/* cmocka and the headers that it wants before its own, with those that nearly
 * every test needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/sanitized.h"

/* One of several tests in a program: tests/unit/room.c calls it. */
#ifdef SP_TEST_MAIN
int SP_TEST_MAIN(void);
#define main SP_TEST_MAIN
#endif

/* What a test has made, and what frees it: the helper that makes it says so,
 * and then it is freed when the test has ended, the last one first. */
struct test_made {
	struct test_made *before;
	void (*free)(void *made);
	void *made;
};
__attribute__((weak)) struct test_made *test_last_made;

static inline void at_test_end(void (*free_made)(void *made), void *made)
{
	struct test_made *one = malloc(sizeof(*one));

	assert_non_null(one);
	*one = (struct test_made){test_last_made, free_made, made};
	test_last_made = one;
}

static inline void end_of_test(void)
{
	while (test_last_made) {
		struct test_made *one = test_last_made;

		test_last_made = one->before;
		one->free(one->made);
		free(one);
	}
}

/* Where the block of such a variable ends, what it has is freed, or done with
 *by that function:
 *
 *	FREED char *text = text_of(page);
 *	FREED_BY(model_done) struct model m;
 *
 * A test that has failed does not get there. */
#define FREED_BY(done) __attribute__((cleanup(done)))
#define FREED          FREED_BY(free_at)

static inline void free_at(void *variable)
{
	free(*(void **)variable);
}

/* What takes longer hangs, also where many others want the processor: for
 * alarm(). */
#define HUNG_S 200

/* Rounds of what is tried many times: `many` in the long form of a test, which
 * is unit.NAME.whole of the nightly list. */
static inline unsigned int test_rounds(unsigned int few, unsigned int many)
{
	return getenv("SAMPLEPROF_TEST_WHOLE") ? many : few;
}

/* Rounds that show by their results: a sanitizer looks at memory alone, and
 * needs but some of them. */
static inline unsigned int rounds_of(unsigned int all)
{
	return test_rounds(SP_SANITIZED ? (all + 3) / 4 : all, all);
}

/*
 * A test program is a row of
 *
 *	TEST(name)
 *	{
 *		...
 *	}
 *
 * in the order in which they run, and a TEST_MAIN at its end: a test cannot be
 * written and then forgotten in a list.
 */
#define TEST(name) TEST_BETWEEN(name, NULL, NULL)

/* With a function before it and one after it, or NULL, as cmocka has them: what
 * the first leaves is *test_state. */
#define TEST_BETWEEN(name, begin, end)                                         \
	static void test_##name(void **test_state);                            \
	static int end_test_##name(void **test_state)                          \
	{                                                                      \
		const CMFixtureFunction last = end;                            \
                                                                               \
		end_of_test();                                                 \
		return last ? last(test_state) : 0;                            \
	}                                                                      \
	__attribute__((constructor)) static void add_test_##name(void)         \
	{                                                                      \
		test_list[__COUNTER__] =                                       \
			(struct CMUnitTest){"test_" #name, test_##name, begin, \
					    end_test_##name, NULL};            \
	}                                                                      \
	static void test_##name(void **test_state __attribute__((unused)))

/* The same of a test that calls that state by a name: `struct thing *thing`. */
#define TEST_OF(state, name, begin, end)                                       \
	static void test_of_##name(state);                                     \
	TEST_BETWEEN(name, begin, end)                                         \
	{                                                                      \
		test_of_##name(*test_state);                                   \
	}                                                                      \
	static void test_of_##name(state)

/* What runs once before all of them and once after, or NULL. */
#define TEST_MAIN(begin, end)                                                  \
	int main(void)                                                         \
	{                                                                      \
		return TEST_RUN(begin, end);                                   \
	}
#define TEST_RUN(begin, end) cmocka_run_group_tests(test_list, begin, end)

/* cmocka passes over places that are empty. */
__attribute__((unused)) static struct CMUnitTest test_list[64];
