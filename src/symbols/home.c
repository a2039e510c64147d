/* SPDX-License-Identifier: MIT */
#include "symbols/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN      " [in "
#define ADDRESS   "+0x"
#define HEX       "0123456789abcdef"
#define BYTES(of) (sizeof(of) - 1)

/* Bytes of the file before "+0x1139" at the end. */
static size_t file_bytes(const char *text, size_t n)
{
	size_t at = n;

	while (at && memchr(HEX, text[at - 1], BYTES(HEX)))
		at--;
	return at < n && at >= BYTES(ADDRESS) &&
			       !memcmp(text + at - BYTES(ADDRESS), ADDRESS,
				       BYTES(ADDRESS))
		       ? at - BYTES(ADDRESS)
		       : n;
}

struct sp_home sp_home_of(const char *full)
{
	const size_t n = strlen(full);
	struct sp_home home = {.name_bytes = n};
	size_t at = n;

	if (!n || full[n - 1] != ']')
		return home;
	/* a file has no brackets: sp_home_join() */
	while (at && full[at - 1] != '[')
		at--;
	if (at < 2 || strncmp(full + at - 2, OPEN, BYTES(OPEN)) != 0)
		return home;
	home.name_bytes = at - 2;
	home.text = full + at - 2 + BYTES(OPEN);
	home.bytes = (size_t)(full + n - 1 - home.text);
	home.file_bytes = file_bytes(home.text, home.bytes);
	return home;
}

char *sp_home_join(const char *name, const char *file, uint64_t address)
{
	const size_t name_bytes = sp_home_of(name).name_bytes;
	char number[32] = "";
	char *full;

	if (!file && !address)
		return strdup(name);
	if (address)
		snprintf(number, sizeof(number), ADDRESS "%" PRIx64, address);
	if (asprintf(&full, "%.*s" OPEN "%s%s]", (int)name_bytes, name,
		     file ? file : "", number) < 0)
		return NULL;
	for (char *c = full + name_bytes + BYTES(OPEN); c[1]; c++)
		if (*c == '[' || *c == ']')
			*c = '_';
	return full;
}

char *sp_home_without(const char *full)
{
	return strndup(full, sp_home_of(full).name_bytes);
}

char *sp_home_without_address(const char *full)
{
	const struct sp_home home = sp_home_of(full);
	char *file, *joined;

	if (home.file_bytes == home.bytes)
		return strdup(full);
	if (!home.file_bytes)
		return sp_home_without(full);
	file = strndup(home.text, home.file_bytes);
	joined = file ? sp_home_join(full, file, 0) : NULL;
	free(file);
	return joined;
}

const char *sp_home_tail(const char *path, size_t n, size_t parts)
{
	const char *at = path + n;

	while (at > path && (at[-1] != '/' || --parts))
		at--;
	return at;
}

size_t sp_home_common(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t parts = 0;

	while (n_a && n_b && a[n_a - 1] == b[n_b - 1]) {
		parts += a[n_a - 1] == '/';
		n_a--;
		n_b--;
	}
	/* the part at which one ends is shared if the other's begins there */
	return parts +
	       ((!n_a || a[n_a - 1] == '/') && (!n_b || b[n_b - 1] == '/'));
}
