/* SPDX-License-Identifier: MIT */
/* Regular expressions: what matches, and which errors have which words. */
#include <errno.h>

#include "support/test.h"
#include "symbols/pattern.h"

static struct sp_error error;

static int search(const char *pattern, const char *text)
{
	struct sp_pattern *p;
	int r = sp_pattern_new("--focus", pattern, &p, &error);

	if (r < 0)
		return r;
	r = sp_pattern_search(p, text, &error);
	sp_pattern_free(p);
	return r;
}

TEST(search)
{
	assert_int_equal(search("b.d", "abcde"), 1);
	assert_int_equal(search("^b", "abcde"), 0);
	assert_int_equal(search("(?i)BCD|x", "abcde"), 1);
	assert_int_equal(search("\\bmain\\b", "int main(void)"), 1);
	assert_int_equal(search("\\d+", "f12"), 1);
	assert_int_equal(search("", "anything"), 1);
	/* The end is the end of the text, as in RE2. */
	assert_int_equal(search("a$", "a\n"), 0);
	/* Characters, not bytes; what is no character matches nothing. */
	assert_int_equal(search("^.$", "\xc3\xa9"), 1);
	assert_int_equal(search("a.b", "a\xff"
				       "b"),
			 0);
	assert_int_equal(search("b", "a\xff"
				     "b"),
			 1);
}

TEST(errors)
{
	assert_int_equal(search("a(b", "x"), -EINVAL);
	assert_non_null(strstr(error.message, "--focus: missing closing"));
	assert_non_null(strstr(error.message, "after 3 characters of a(b"));
	assert_int_equal(search("\xff", "x"), -EINVAL);
	assert_int_equal(search("\\C", "x"), -EINVAL);
	/* It would take longer than anybody waits. */
	assert_int_equal(
		search("^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
		-EOVERFLOW);
	assert_non_null(strstr(error.message, "--focus: the pattern takes too "
					      "many steps"));
}

TEST_MAIN(NULL, NULL)
