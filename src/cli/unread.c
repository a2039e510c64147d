/* SPDX-License-Identifier: MIT */
#include "cli/unread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/debuginfod.h"

static void note_path(struct sp_unread *u, const char *path)
{
	if (!*u->note && u->user)
		snprintf(u->note, sizeof(u->note),
			 "%.150s: %s, whose rights are taken, cannot read "
			 "%.150s: `symbolize --user 0` keeps root's rights, or "
			 "put a copy where that user can read it",
			 u->file, u->user->words, path);
}

int sp_unread_descriptor(const char *path)
{
	int fd, end = 0;

	return sscanf(path, "/proc/self/fd/%d%n", &fd, &end) == 1 && !path[end]
		       ? fd
		       : -1;
}

static bool is_refused(const char *path, int mode)
{
	return access(path, mode) != 0 && errno == EACCES;
}

/* Nothing can be read by it, and its number stays taken: the next file that is
 * opened would have it, and be read in place of this one. */
static void make_useless(int fd, const char *path)
{
	const int useless = open(path, O_PATH | O_CLOEXEC);

	if (useless < 0 || dup3(useless, fd, O_CLOEXEC) < 0)
		dup2(STDIN_FILENO, fd);
	/* cppcheck-suppress invalidFunctionArg ; of -1 nothing is closed */
	close(useless);
}

static void note_roots(struct sp_unread *u, const char *roots)
{
	char *copy = strdup(roots), *rest = NULL;
	char *root = copy ? strtok_r(copy, ":", &rest) : NULL;

	for (; root; root = strtok_r(NULL, ":", &rest))
		if (is_refused(root, R_OK | X_OK))
			note_path(u, root);
	free(copy);
}

void sp_unread_options(struct sp_unread *u,
		       const struct sp_symbolizer_options *options)
{
	const char *cache = NULL, *name;

	for (size_t i = 0; i < options->n_moved; i++) {
		const struct sp_moved_module *m = &options->moved[i];
		const int fd = sp_unread_descriptor(m->file);

		if (!is_refused(m->file, R_OK))
			continue;
		note_path(u, fd < 0 ? m->file : m->path);
		if (fd >= 0)
			make_useless(fd, m->file);
	}
	if (options->debug_path)
		note_roots(u, options->debug_path);
	if (options->use_debuginfod)
		cache = sp_debuginfod_cache(&name);
	if (cache && is_refused(cache, W_OK | X_OK))
		note_path(u, cache);
}

void sp_unread_module(void *unread, const struct sp_module *module,
		      const char *text)
{
	if (strstr(text, strerror(EACCES)))
		note_path(unread, module->path);
}
