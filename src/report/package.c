/* SPDX-License-Identifier: MIT */
#include "report/package.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* /lib is /usr/lib since Debian 12, but lists have the one or the other. */
static const char *without_usr(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

/* Is [at, to) a whole line of the text, except for a "/usr" before it? */
static bool is_line(const char *text, const char *end, const char *at,
		    const char *to)
{
	if (at - text >= 4 && memcmp(at - 4, "/usr", 4) == 0)
		at -= 4;
	return (at == text || at[-1] == '\n') && (to == end || *to == '\n');
}

static bool text_has(const char *text, size_t n, const char *path)
{
	const char *const end = text + n, *at = text;
	const size_t length = strlen(path);

	while (length && (at = memmem(at, (size_t)(end - at), path, length))) {
		if (is_line(text, end, at, at + length))
			return true;
		at++;
	}
	return false;
}

/* All of the file, to be freed; NULL if it cannot be read. */
static char *read_list(const char *name, size_t *ret_bytes)
{
	FILE *list = fopen(name, "re");
	char *text = NULL;
	struct stat st;

	if (list && fstat(fileno(list), &st) == 0)
		text = malloc((size_t)st.st_size + 1);
	if (text)
		*ret_bytes = fread(text, 1, (size_t)st.st_size, list);
	if (list)
		fclose(list);
	return text;
}

static bool list_has(const char *lists, const char *file, const char *path)
{
	char name[4096];
	char *text;
	size_t n;
	bool is_there;

	if (snprintf(name, sizeof(name), "%s/%s", lists, file) >=
	    (int)sizeof(name))
		return false;
	text = read_list(name, &n);
	is_there = text && text_has(text, n, path);
	free(text);
	return is_there;
}

/* Of the package in "libsqlite3-0:amd64.list". */
static bool name_debug(const char *file, char name[SP_PACKAGE_NAME_MAX])
{
	const int n = (int)strcspn(file, ":");
	const int length = file[n] ? n : (int)strlen(file) - 5;
	const bool is_libc = strncmp(file, "libc6", (size_t)length) == 0;

	return snprintf(name, SP_PACKAGE_NAME_MAX, "%.*s%s", length, file,
			is_libc ? "-dbg" : "-dbgsym") < SP_PACKAGE_NAME_MAX;
}

/* Does the list begin as the file does, as "libz" or "python"?  Its package is
 * the one to look at first. */
static bool is_near(const char *list, const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strncmp(list, name + 1, 4) == 0;
}

static bool find_package(DIR *dir, const char *lists, const char *path,
			 bool near, char name[SP_PACKAGE_NAME_MAX])
{
	const struct dirent *entry;
	bool is_found = false;

	while (!is_found && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		is_found = dot && strcmp(dot, ".list") == 0 &&
			   is_near(entry->d_name, path) == near &&
			   list_has(lists, entry->d_name, path) &&
			   name_debug(entry->d_name, name);
	}
	return is_found;
}

bool sp_package_of_debug(const char *lists, const char *path,
			 char name[SP_PACKAGE_NAME_MAX])
{
	DIR *dir = opendir(lists);
	bool is_found;

	if (!dir)
		return false;
	path = without_usr(path);
	is_found = find_package(dir, lists, path, true, name);
	rewinddir(dir);
	is_found = is_found || find_package(dir, lists, path, false, name);
	closedir(dir);
	return is_found;
}
