/* SPDX-License-Identifier: MIT */
/* Labels: the shortest texts that tell the functions of a report apart. */
#include "report/label.h"
#include "support/test.h"

/* Names and the labels that they get; up to the first NULL. */
static void assert_labels(const char *const pairs[][2])
{
	const char *names[16] = {NULL};
	char **labels;
	size_t n = 0;

	for (; pairs[n][0]; n++)
		names[n] = pairs[n][0];
	assert_int_equal(sp_labels_new(names, n, false, &labels), 0);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(labels[i], pairs[i][1]);
	sp_labels_free(labels, n);
}

TEST(alone)
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

	assert_labels(pairs);
	assert_labels(pairs + 6);
}

TEST(told_apart)
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

	assert_labels(pairs);
}

/* Those that read the same without what nobody writes. */
TEST(spelled)
{
	static const char *const pairs[][2] = {
		{"std::vector<int, std::allocator<int> >::clear()",
		 "std::vector<int>::clear"},
		{"libx.so!std::__cxx11::f(int)", "libx.so!std::f"},
		/* by their traits */
		{"<app::A as core::fmt::Display>::fmt",
		 "<app::A as Display>::fmt"},
		{"<app::A as core::fmt::Debug>::fmt", "<app::A as Debug>::fmt"},
		{"<app::B as core::fmt::Debug>::fmt", "app::B::fmt"},
		/* by all that there is */
		{"std::__cxx11::g(int)", "std::__cxx11::g"},
		{"std::g(int)", "std::g"},
		/* parameters are spelled, too */
		{"h(std::__cxx11::basic_string<char, "
		 "std::char_traits<char>, std::allocator<char> >)",
		 "h(std::string)"},
		{"h(int)", "h(int)"},
		{NULL, NULL}};
	const char *const name = "std::vector<int, std::allocator<int> >::f()";
	char **labels;

	assert_labels(pairs);
	assert_int_equal(sp_labels_new(&name, 1, true, &labels), 0);
	assert_string_equal(labels[0],
			    "std::vector<int, std::allocator<int> >::f");
	sp_labels_free(labels, 1);
}

/* As much of their homes as tells functions of one name apart, behind what else
 * does. */
TEST(homes)
{
	static const char *const pairs[][2] = {
		{"make [in a.c]", "make [in a.c]"},
		{"make [in b.c]", "make [in b.c]"},
		{"make", "make"},
		{"alone [in a.c]", "alone"},
		{"init [in /app/x/u.c]", "init [in x/u.c]"},
		{"init [in /app/y/u.c]", "init [in y/u.c]"},
		{"init [in /app/y/v.c]", "init [in v.c]"},
		{"at [in u.c+0x10]", "at [in u.c+0x10]"},
		{"at [in u.c+0x20]", "at [in u.c+0x20]"},
		{"f(int) [in a.cc]", "f(int) [in a.cc]"},
		{"f(int) [in b.cc]", "f(int) [in b.cc]"},
		{"f(long) [in b.cc]", "f(long)"},
		/* not a home */
		{"g [clone .part.0]", "g [clone .part.0]"},
		{"operator new[]", "operator new[]"},
		{NULL, NULL}};

	assert_labels(pairs);
}

/* A name that comes later changes what the others need. */
TEST(by_name)
{
	FREED_BY(sp_labels_done) struct sp_labels labels = {0};

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
}

TEST_MAIN(NULL, NULL)
