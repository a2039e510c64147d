/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/label.h"

/* Names and the labels that they get, of one module; up to the first NULL. */
static void assert_labels(const char *const pairs[][2])
{
	struct sp_label_of of[16] = {{NULL, NULL}};
	char **labels;
	size_t n = 0;

	for (; pairs[n][0]; n++)
		of[n] = (struct sp_label_of){pairs[n][0], "app"};
	assert_int_equal(sp_labels_new(of, n, &labels), 0);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(labels[i], pairs[i][1]);
	sp_labels_free(labels, n);
}

static void test_alone(void **state)
{
	static const char *const pairs[][2] = {
		{"main", "main"},
		{"ns::push(int)", "ns::push"},
		{"ns::pop(int) const", "ns::pop"},
		/* one function that several rows name */
		{"twice(int)", "twice"},
		{"twice(int)", "twice"},
		{"operator()", "operator()"},
		{NULL, NULL}};

	(void)state;
	assert_labels(pairs);
	assert_labels(pairs + 6);
}

static void test_told_apart(void **state)
{
	static const char *const pairs[][2] = {
		/* by the first parameter, and more is not shown */
		{"push(int, long, char)", "push(int, ...)"},
		{"push(long, long, char)", "push(long, ...)"},
		/* by the second one */
		{"add(int, A<int, long>, char)", "add(int, A<int, long>, ...)"},
		{"add(int, A<int, char>, char)", "add(int, A<int, char>, ...)"},
		{"add(long, char)", "add(long, ...)"},
		/* by how many there are, or by what is behind them */
		{"f(int)", "f(int)"},
		{"f(int, long)", "f(int, ...)"},
		{"f(int) const", "f(int) const"},
		{"f()", "f()"},
		{"f", "f"},
		/* pointers to functions, and a lambda's own scope */
		{"g(void (*)(int, int), long)", "g(void (*)(int, int), ...)"},
		{"g(int, long)", "g(int, ...)"},
		{"h(int)::{lambda(int)#1}::operator()(int) const",
		 "h(int)::{lambda(int)#1}::operator()"},
		{NULL, NULL}};

	(void)state;
	assert_labels(pairs);
}

/* Overloads of another module are told apart by that. */
static void test_modules(void **state)
{
	static const struct sp_label_of of[] = {
		{"f(int)", "a.so"}, {"f(long)", "b.so"}, {"f(char)", "b.so"}};
	char **labels;

	(void)state;
	assert_int_equal(sp_labels_new(of, 3, &labels), 0);
	assert_string_equal(labels[0], "f");
	assert_string_equal(labels[1], "f(long)");
	assert_string_equal(labels[2], "f(char)");
	sp_labels_free(labels, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_told_apart),
		cmocka_unit_test(test_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
