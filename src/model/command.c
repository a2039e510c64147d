/* SPDX-License-Identifier: MIT */
#include "model/command.h"

#include <stdbool.h>
#include <string.h>

/* Does a shell take the argument as it is? */
static bool is_plain(const char *text)
{
	return text[0] && text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
					    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789_-./:=,+@%")] == '\0';
}

static char *quote_argument(char *to, const char *argument)
{
	*to++ = '\'';
	for (const char *p = argument; *p; p++) {
		if (*p == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *p;
	}
	*to++ = '\'';
	return to;
}

/* Quoting an argument at most quadruples it. */
size_t sp_command_room(size_t bytes)
{
	return bytes * 4 + 3;
}

/* A program that writes a title over its arguments leaves zeros behind it. */
static size_t without_padding(const char *arguments, size_t bytes)
{
	size_t n = bytes;

	while (n > 1 && !arguments[n - 1] && !arguments[n - 2])
		n--;
	return n > 1 && bytes - n > 1 ? n : bytes;
}

void sp_command_join(const char *arguments, size_t bytes, char *out)
{
	char *to = out;
	size_t at = 0;

	bytes = without_padding(arguments, bytes);
	while (at < bytes) {
		const char *argument = arguments + at;

		if (to > out)
			*to++ = ' ';
		to = is_plain(argument) ? stpcpy(to, argument)
					: quote_argument(to, argument);
		at += strlen(argument) + 1;
	}
	*to = '\0';
}
