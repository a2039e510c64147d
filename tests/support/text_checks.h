/* SPDX-License-Identifier: MIT */
#pragma once

#include "support/test.h"

/* What a text that people read contains. */

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		print_error("no \"%s\" in:\n%s\n", part, text);
	assert_non_null(strstr(text, part));
}

static inline void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		print_error("\"%s\" in:\n%s\n", part, text);
	assert_null(strstr(text, part));
}

/* The line with `part`, up to its end. */
static inline const char *line_with(const char *text, const char *part)
{
	static char line[512];
	const char *found = strstr(text, part);
	const char *start = found;

	assert_has(text, part);
	while (start > text && start[-1] != '\n')
		start--;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(start, "\n"), start);
	return line;
}
