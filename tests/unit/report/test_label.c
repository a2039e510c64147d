/* SPDX-License-Identifier: MIT */
/* Labels: the shortest texts that tell the functions of a report apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/label.h"

/* Names and the labels that they get; up to the first NULL. */
static void assert_labels(const char *const pairs[][2])
{
	const char *names[16] = {NULL};
	char **labels;
	size_t n = 0;

	for (; pairs[n][0]; n++)
		names[n] = pairs[n][0];
	assert_int_equal(sp_labels_new(names, n, &labels), 0);
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

/* A name that comes later changes what the others need. */
static void test_by_name(void **state)
{
	struct sp_labels labels = {0};

	(void)state;
	assert_null(sp_labels_find(&labels, "f(int)"));
	for (int i = 0; i < 2; i++)
		assert_int_equal(sp_labels_add(&labels, "f(int)"), 0);
	assert_int_equal(sp_labels_make(&labels), 0);
	assert_string_equal(sp_labels_find(&labels, "f(int)"), "f");
	assert_int_equal(sp_labels_add(&labels, "f(long)"), 0);
	assert_null(sp_labels_find(&labels, "f(long)"));
	assert_int_equal(sp_labels_make(&labels), 0);
	assert_string_equal(sp_labels_find(&labels, "f(int)"), "f(int)");
	assert_string_equal(sp_labels_find(&labels, "f(long)"), "f(long)");
	assert_null(sp_labels_find(&labels, "f"));
	sp_labels_done(&labels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_told_apart),
		cmocka_unit_test(test_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
