/* SPDX-License-Identifier: MIT */
/* A command line is shown as one would type it in a shell. */
#include "format/layout.h"
#include "model/command.h"
#include "support/test.h"

/* The arguments joined, in exactly the room that was promised to be enough; a
 * zero byte follows what is in a file. */
static char *join(const char *raw, size_t n)
{
	char *out = malloc(sp_command_room(n)), *arguments = malloc(n + 1);

	if (n)
		memcpy(arguments, raw, n);
	arguments[n] = '\0';
	sp_command_join(arguments, n, out);
	free(arguments);
	return out;
}

TEST(quotes)
{
	static const struct {
		const char *raw;
		size_t n;
		const char *want;
	} table[] = {
		{"ls\0-l\0/tmp", 11, "ls -l /tmp"},
		{"ls\0-l\0/tmp/x=1:2,%@+", 21, "ls -l /tmp/x=1:2,%@+"},
		{"a b", 4, "'a b'"},
		{"x\0\0y", 4, "x '' y"},
		{"x\0\0", 3, "x ''"},
		{"'", 1, "''\\'''"},
		{"'\0'\0'", 5, "''\\''' ''\\''' ''\\'''"},
		{"it's\0$HOME\0*", 13, "'it'\\''s' '$HOME' '*'"},
		{"\0\0\0\0", 4, "'' '' '' ''"},
		{"a: title\0\0\0\0", 12, "'a: title'"},
		{"", 0, ""},
		{"\xff\x1b[31m", 6, "'\xff\x1b[31m'"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		FREED char *got = join(table[i].raw, table[i].n);

		assert_string_equal(got, table[i].want);
	}
}

/* The longest text that quoting can make. */
TEST(room)
{
	static char raw[SP_FORMAT_INFO_MAX];
	static const char fill[] = {'\'', '\0', 'a', ' '};

	for (size_t i = 0; i < sizeof(fill); i++) {
		FREED char *got;
		size_t n;

		memset(raw, fill[i], sizeof(raw));
		got = join(raw, sizeof(raw));
		n = strlen(got);
		assert_int_equal(n, fill[i] == '\''  ? 4 * sizeof(raw) + 2
				    : fill[i] == 0   ? 3 * sizeof(raw) - 1
				    : fill[i] == 'a' ? sizeof(raw)
						     : sizeof(raw) + 2);
	}
}

TEST_MAIN(NULL, NULL)
