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

static bool find_package(struct dirent **entries, int n, const char *lists,
			 const char *path, bool near,
			 char name[SP_PACKAGE_NAME_MAX])
{
	for (int i = 0; i < n; i++) {
		const char *list = entries[i]->d_name;

		if (is_near(list, path) == near &&
		    list_has(lists, list, path) && name_debug(list, name))
			return true;
	}
	return false;
}

static int is_list(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".list") == 0;
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* To find that out by the lists of packages is to read them all. */
bool sp_package_is_users_own(const char *path)
{
	static const char *const places[] = {
		"/dev/", "/home/", "/memfd:", "/proc/", "/root/", "/tmp/"};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

/* Of several packages with the file the first by name, in whichever order the
 * directory has them. */
bool sp_package_of_debug(const char *lists, const char *path,
			 char name[SP_PACKAGE_NAME_MAX])
{
	struct dirent **entries;
	bool is_found;
	int n;

	if (sp_package_is_users_own(path))
		return false;
	n = scandir(lists, &entries, is_list, compare_entries);
	if (n < 0)
		return false;
	path = without_usr(path);
	is_found = find_package(entries, n, lists, path, true, name) ||
		   find_package(entries, n, lists, path, false, name);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return is_found;
}

/* ---- what has to be done ---- */

/* Systems with an archive of debug packages, or a server of debug files. */
static const struct system {
	const char *id; /* of os-release, or among those that it is like */
	const char *server;
	/* "URL", and what stands behind the code name of the release; NULL:
	 * there is none.  A part of it that stands in settings which name it.
	 */
	const char *archive;
	const char *suffix;
	const char *components;
	const char *mark;
	/* The same of what is newer than a release that is out. */
	const char *security;
} systems[] = {
	{"debian", "https://debuginfod.debian.net",
	 "http://deb.debian.org/debian-debug", "-debug", "main", "debian-debug",
	 "http://deb.debian.org/debian-security-debug"},
	{"ubuntu", "https://debuginfod.ubuntu.com", "http://ddebs.ubuntu.com",
	 "", "main restricted universe multiverse", "ddebs.ubuntu.com", NULL},
	{"fedora", "https://debuginfod.fedoraproject.org", NULL, NULL, NULL,
	 NULL, NULL},
	{"centos", "https://debuginfod.centos.org", NULL, NULL, NULL, NULL,
	 NULL},
	{"arch", "https://debuginfod.archlinux.org", NULL, NULL, NULL, NULL,
	 NULL},
	{"opensuse", "https://debuginfod.opensuse.org", NULL, NULL, NULL, NULL,
	 NULL},
};

#define ANY_SERVER "https://debuginfod.elfutils.org"

/* The value of a line KEY=VALUE or KEY="VALUE" of os-release. */
static bool read_release(const char *etc, const char *key, char *value,
			 size_t size)
{
	const size_t n_key = strlen(key);
	char path[4096], line[512];
	bool is_found = false;
	FILE *in;

	snprintf(path, sizeof(path), "%s/os-release", etc);
	in = fopen(path, "re");
	while (in && !is_found && fgets(line, sizeof(line), in)) {
		const char *from = line + n_key + 1;

		if (strncmp(line, key, n_key) != 0 || line[n_key] != '=')
			continue;
		from += *from == '"';
		snprintf(value, size, "%.*s", (int)strcspn(from, "\"\n"), from);
		is_found = *value != '\0';
	}
	if (in)
		fclose(in);
	return is_found;
}

static const struct system *find_system(const char *etc)
{
	char ids[256] = "", like[256] = "";

	read_release(etc, "ID", ids, sizeof(ids));
	read_release(etc, "ID_LIKE", like, sizeof(like));
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
			if (pass ? strstr(like, systems[i].id) != NULL
				 : strcmp(ids, systems[i].id) == 0)
				return &systems[i];
	return NULL;
}

const char *sp_package_server(const char *etc)
{
	const struct system *system = find_system(etc);

	return system ? system->server : ANY_SERVER;
}

static bool file_has(const char *path, const char *mark)
{
	size_t n = 0;
	char *text = read_list(path, &n);
	const bool has = text && memmem(text, n, mark, strlen(mark));

	free(text);
	return has;
}

/* Do the settings of apt name it? */
static bool is_named(const char *etc, const char *mark)
{
	char path[4096];
	struct dirent *entry;
	bool is_found;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/apt/sources.list", etc);
	is_found = file_has(path, mark);
	snprintf(path, sizeof(path), "%s/apt/sources.list.d", etc);
	dir = opendir(path);
	while (dir && !is_found && (entry = readdir(dir))) {
		if (snprintf(path, sizeof(path), "%s/apt/sources.list.d/%s",
			     etc, entry->d_name) < (int)sizeof(path) &&
		    entry->d_name[0] != '.')
			is_found = file_has(path, mark);
	}
	if (dir)
		closedir(dir);
	return is_found;
}

static bool is_in_archive(const char *name)
{
	static const char end[] = "-dbgsym";
	const size_t n = strlen(name);

	return n > sizeof(end) && !strcmp(name + n - (sizeof(end) - 1), end);
}

/* A word that the shell takes as it is. */
static bool is_plain(const char *text)
{
	return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
					   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789.+-_:")];
}

/* The first of the names behind `last`, or NULL. */
static const char *next_of(const char (*names)[SP_PACKAGE_NAME_MAX], size_t n,
			   const char *last)
{
	const char *next = NULL;

	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], last) > 0 &&
		    (!next || strcmp(names[i], next) < 0))
			next = names[i];
	return next;
}

void sp_package_print_install(FILE *out, const char *etc,
			      const char (*names)[SP_PACKAGE_NAME_MAX],
			      size_t n)
{
	const struct system *system = find_system(etc);
	bool needs_archive = false;
	char release[128], version[128];

	for (size_t i = 0; i < n; i++)
		needs_archive |= is_in_archive(names[i]);
	if (needs_archive && system && system->archive &&
	    read_release(etc, "VERSION_CODENAME", release, sizeof(release)) &&
	    is_plain(release) && !is_named(etc, system->mark)) {
		fprintf(out, "(echo deb %s %s%s %s", system->archive, release,
			system->suffix, system->components);
		if (system->security &&
		    read_release(etc, "VERSION_ID", version, sizeof(version)))
			fprintf(out, "; echo deb %s %s-security%s %s",
				system->security, release, system->suffix,
				system->components);
		fputs(") >/etc/apt/sources.list.d/debug.list && "
		      "apt-get update && ",
		      out);
	}
	fputs("apt-get install", out);
	/* By name, each once. */
	for (const char *last = "", *next; (next = next_of(names, n, last));
	     last = next)
		if (is_plain(next))
			fprintf(out, " %s", next);
}
