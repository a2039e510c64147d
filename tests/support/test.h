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
	__attribute__((constructor)) static void add_test_##name(void)         \
	{                                                                      \
		test_list[__COUNTER__] = (struct CMUnitTest){                  \
			"test_" #name, test_##name, begin, end, NULL};         \
	}                                                                      \
	static void test_##name(void **test_state __attribute__((unused)))

/* What runs once before all of them and once after, or NULL. */
#define TEST_MAIN(begin, end)                                                  \
	int main(void)                                                         \
	{                                                                      \
		return TEST_RUN(begin, end);                                   \
	}
#define TEST_RUN(begin, end) cmocka_run_group_tests(test_list, begin, end)

/* cmocka passes over places that are empty. */
__attribute__((unused)) static struct CMUnitTest test_list[64];
