/* SPDX-License-Identifier: MIT */
#include "report/sourcefile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"

struct sp_sourcefile {
	char *path;
	uint64_t changed_ns;
	char *text;
	size_t size;
	uint32_t *begins; /* offset of each line, and the size */
	uint32_t n_lines;
};

/* All of a regular file; -ENOENT if there is none of that name. */
static int read_all(struct sp_sourcefile *s, const char *path)
{
	struct stat st;
	const int fd =
		sp_regular_open_foreign(path, 0, SP_SOURCEFILE_BYTES_MAX, &st);
	int r;

	if (fd < 0)
		return fd == -ENOTDIR || fd == -EINVAL ? -ENOENT : fd;
	r = -ENOMEM;
	s->text = malloc((size_t)st.st_size + 1);
	if (!s->text)
		goto out;
	s->changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 +
			(uint64_t)st.st_mtim.tv_nsec;
	r = 0;
	while (s->size < (size_t)st.st_size) {
		ssize_t n = read(fd, s->text + s->size,
				 (size_t)st.st_size - s->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		s->size += (size_t)n;
	}
out:
	close(fd);
	return r;
}

static int split_lines(struct sp_sourcefile *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->size; i++)
		n += s->text[i] == '\n' || i + 1 == s->size;
	s->begins = calloc((size_t)n + 1, sizeof(*s->begins));
	if (!s->begins)
		return -ENOMEM;
	for (size_t i = 0; i < s->size; i++)
		if (s->text[i] == '\n' || i + 1 == s->size)
			s->begins[++s->n_lines] = (uint32_t)i + 1;
	return 0;
}

/* May the rest of a name be looked for below a directory? */
static bool stays_below(const char *name)
{
	while (*name) {
		size_t n = strcspn(name, "/");

		if (n == 2 && !strncmp(name, "..", 2))
			return false;
		name += n + (name[n] == '/');
	}
	return true;
}

static int try_path(struct sp_sourcefile *s, const char *dir, size_t dir_length,
		    const char *name)
{
	size_t room = dir_length + strlen(name) + 2;
	char *path = malloc(room);
	int r;

	if (!path)
		return -ENOMEM;
	memcpy(path, dir, dir_length);
	path[dir_length] = dir_length ? '/' : '\0';
	strcpy(path + dir_length + (dir_length != 0), name);
	r = read_all(s, path);
	if (r < 0)
		free(path);
	else
		s->path = path;
	return r;
}

static int search_dirs(struct sp_sourcefile *s, const char *name,
		       const char *dirs, bool anywhere)
{
	const char *rest;
	int r = -ENOENT;

	while (dirs && *dirs && r == -ENOENT) {
		size_t n = strcspn(dirs, ":");

		for (rest = name; n && rest && r == -ENOENT;
		     rest = strchr(rest, '/')) {
			rest += strspn(rest, "/");
			if (*rest && stays_below(rest))
				r = try_path(s, dirs, n, rest);
		}
		dirs += n + (dirs[n] == ':');
	}
	return r == -ENOENT && anywhere ? try_path(s, "", 0, name) : r;
}

int sp_sourcefile_new(const char *name, const char *dirs, bool anywhere,
		      struct sp_sourcefile **ret, struct sp_error *err)
{
	struct sp_sourcefile *s = calloc(1, sizeof(*s));
	int r = s ? search_dirs(s, name, dirs, anywhere) : -ENOMEM;

	if (r >= 0)
		r = split_lines(s);
	if (r < 0) {
		sp_sourcefile_free(s);
		return sp_error_set(
			err, r, NULL,
			r != -ENOENT ? "cannot be read: %s"
			: anywhere || (dirs && *dirs)
				? "not found: give its directory with "
				  "--source-path"
				: "not read: --source-path DIR has to name its "
				  "directory",
			strerror(-r));
	}
	*ret = s;
	return 0;
}

uint64_t sp_sourcefile_changed_ns(const struct sp_sourcefile *s)
{
	return s->changed_ns;
}

uint32_t sp_sourcefile_lines(const struct sp_sourcefile *s)
{
	return s->n_lines;
}

const char *sp_sourcefile_line(const struct sp_sourcefile *s, uint32_t line,
			       size_t *ret_length)
{
	const char *begin = s->text + s->begins[line - 1];
	size_t n = s->begins[line] - s->begins[line - 1];

	while (n && (begin[n - 1] == '\n' || begin[n - 1] == '\r'))
		n--;
	*ret_length = n;
	return begin;
}

void sp_sourcefile_free(struct sp_sourcefile *s)
{
	if (!s)
		return;
	free(s->path);
	free(s->text);
	free(s->begins);
	free(s);
}
