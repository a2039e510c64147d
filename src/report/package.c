/* SPDX-License-Identifier: MIT */
#include "report/package.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* /lib is /usr/lib since Debian 12, but lists have the one or the other. */
static const char *without_usr(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

static bool list_has(const char *lists, const char *file, const char *path)
{
	char name[4096];
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	bool is_there = false;
	FILE *list;

	if (snprintf(name, sizeof(name), "%s/%s", lists, file) >=
	    (int)sizeof(name))
		return false;
	list = fopen(name, "re");
	if (!list)
		return false;
	while (!is_there && (n = getline(&line, &room, list)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		is_there = strcmp(without_usr(line), path) == 0;
	}
	free(line);
	fclose(list);
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

bool sp_package_of_debug(const char *lists, const char *path,
			 char name[SP_PACKAGE_NAME_MAX])
{
	DIR *dir = opendir(lists);
	const struct dirent *entry;
	bool is_found = false;

	if (!dir)
		return false;
	path = without_usr(path);
	while (!is_found && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		is_found = dot && strcmp(dot, ".list") == 0 &&
			   list_has(lists, entry->d_name, path) &&
			   name_debug(entry->d_name, name);
	}
	closedir(dir);
	return is_found;
}
