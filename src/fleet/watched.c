/* SPDX-License-Identifier: MIT */
#include "fleet/watched.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/files.h"
#include "read/reader.h"
#include "text/text.h"

#define BACKLOG ".sampleprof-backlog/"

/* Other users may write to the directory, but must not choose the files that
 * are deleted here. */
static int check_backlog(const struct sp_watched_files *files,
			 struct sp_error *err)
{
	char path[4096];
	struct stat st;

	/* Without the slash: what is behind a symbolic link does not count. */
	snprintf(path, sizeof(path), "%.*s", (int)strlen(files->backlog) - 1,
		 files->backlog);
	if (lstat(path, &st) != 0 && errno == ENOENT)
		return 0;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return sp_error_set(err, -EPERM, files->backlog,
			    "is not a directory that only this user can write "
			    "to: remove it");
}

int sp_watched_init(struct sp_watched_files *files, const char *dir,
		    uint64_t max_bytes, struct sp_error *err)
{
	*files = (struct sp_watched_files){.dir = dir, .max_bytes = max_bytes};
	if (asprintf(&files->backlog, "%s" BACKLOG, dir) < 0) {
		files->backlog = NULL;
		return sp_error_memory(err, NULL);
	}
	return check_backlog(files, err);
}

static void free_file(struct sp_watched *f)
{
	free(f->path);
	free(f->link);
	free(f);
}

void sp_watched_done(struct sp_watched_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free_file(files->list[i]);
	free(files->list);
	free(files->backlog);
}

const char *sp_watched_name(const struct sp_watched *f)
{
	const char *name = sp_text_base_name(f->path);
	const char *dot;

	/* In the backlog the inode stands before it. */
	if (f->link && strcmp(f->link, f->path) == 0) {
		dot = strchr(name, '.');
		return dot ? dot + 1 : name;
	}
	return name;
}

/* ---- looking ---- */

static int compare_files(const void *a, const void *b)
{
	const struct sp_watched *x = *(const struct sp_watched *const *)a;
	const struct sp_watched *y = *(const struct sp_watched *const *)b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* The first n are sorted, the others are new. */
static struct sp_watched *find_file(const struct sp_watched_files *files,
				    size_t n, const struct stat *st)
{
	const struct sp_watched key = {.dev = st->st_dev, .ino = st->st_ino};
	const struct sp_watched *wanted = &key;
	struct sp_watched **found =
		n ? bsearch(&wanted, files->list, n, sizeof(*files->list),
			    compare_files)
		  : NULL;

	for (size_t i = n; i < files->n && !found; i++)
		if (compare_files(&wanted, &files->list[i]) == 0)
			found = &files->list[i];
	return found ? *found : NULL;
}

static struct sp_watched *add_file(struct sp_watched_files *files,
				   const struct stat *st)
{
	struct sp_watched **more =
		realloc(files->list, (files->n + 1) * sizeof(*files->list));
	struct sp_watched *f = calloc(1, sizeof(*f));

	if (more)
		files->list = more;
	if (!more || !f) {
		free(f);
		return NULL;
	}
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	files->list[files->n++] = f;
	return f;
}

static int take_file(struct sp_watched_files *files, size_t n_sorted,
		     const char *path, bool is_kept)
{
	struct sp_watched *f;
	struct stat st;
	char *copy;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	copy = strdup(path);
	f = find_file(files, n_sorted, &st);
	if (copy && !f)
		f = add_file(files, &st);
	if (!copy || !f) {
		free(copy);
		return -ENOMEM;
	}
	f->mtime = st.st_mtim;
	f->bytes = st.st_size;
	f->disk_bytes = (uint64_t)st.st_blocks * 512u;
	f->n_links = st.st_nlink;
	if (is_kept) {
		free(f->link);
		f->link = copy;
		copy = f->is_there ? NULL : strdup(path);
		if (!f->is_there && !copy)
			return -ENOMEM;
	}
	if (copy) {
		free(f->path);
		f->path = copy;
	}
	f->is_there = true;
	return 0;
}

static int look_into(struct sp_watched_files *files, const char *dir,
		     bool is_kept, struct sp_error *err)
{
	const size_t n_sorted = files->n;
	struct sp_files found;
	int r = sp_files_list(dir, 0, &found, err);

	if (r == -ENOENT && is_kept)
		return 0;
	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < found.n; i++)
		r = take_file(files, n_sorted, found.paths[i], is_kept);
	sp_files_free(&found);
	if (files->n)
		qsort(files->list, files->n, sizeof(*files->list),
		      compare_files);
	return r < 0 ? sp_error_set(err, r, NULL, "not enough memory") : 0;
}

static void forget_missing(struct sp_watched_files *files, sp_watched_fn *gone,
			   void *arg)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++) {
		if (files->list[i]->is_there) {
			files->list[n++] = files->list[i];
			continue;
		}
		gone(arg, files->list[i]);
		free_file(files->list[i]);
	}
	files->n = n;
}

int sp_watched_look(struct sp_watched_files *files, sp_watched_fn *gone,
		    void *arg, struct sp_error *err)
{
	int r;

	for (size_t i = 0; i < files->n; i++)
		files->list[i]->is_there = false;
	r = look_into(files, files->dir, false, err);
	if (r >= 0)
		r = look_into(files, files->backlog, true, err);
	if (r >= 0)
		forget_missing(files, gone, arg);
	return r;
}

enum sp_watched_state sp_watched_state(const struct sp_watched *f)
{
	enum sp_watched_state state = SP_WATCHED_ENDED;
	struct sp_reader *reader = malloc(sizeof(*reader));

	/* An unreadable file has no later state; adding it gives the reason. */
	if (reader && sp_reader_open(reader, f->path, NULL) >= 0) {
		if (reader->is_running)
			state = SP_WATCHED_RUNNING;
		else if (reader->status.end_kind == SP_END_NONE)
			state = SP_WATCHED_SILENT;
	}
	if (reader)
		sp_reader_close(reader);
	free(reader);
	return state;
}

/* ---- the backlog ---- */

static int make_backlog(const struct sp_watched_files *files,
			struct sp_error *err)
{
	if (mkdir(files->backlog, 0700) == 0)
		return 0;
	if (errno == EEXIST)
		return check_backlog(files, err);
	return sp_error_set(err, -errno, files->backlog, "%s", strerror(errno));
}

int sp_watched_keep(struct sp_watched_files *files, struct sp_watched *f,
		    struct sp_error *err)
{
	char *path = NULL;
	int r = make_backlog(files, err);

	if (r < 0 || f->link)
		return r;
	if (asprintf(&path, "%s%ju.%s", files->backlog, (uintmax_t)f->ino,
		     sp_text_base_name(f->path)) < 0)
		return sp_error_memory(err, NULL);
	/* The name may belong to another file by now: the next look knows. */
	if (linkat(AT_FDCWD, f->path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0 &&
	    errno != EEXIST && errno != ENOENT) {
		r = sp_error_set(err, -errno, f->path, "%s", strerror(errno));
		free(path);
		return r;
	}
	f->link = path;
	f->n_links++;
	return 0;
}

void sp_watched_release(struct sp_watched *f)
{
	if (!f->link)
		return;
	unlink(f->link);
	/* If that was its last name, the next look finds it gone. */
	if (strcmp(f->link, f->path) != 0) {
		free(f->link);
		f->link = NULL;
	}
}

static struct sp_watched *oldest_kept(const struct sp_watched_files *files,
				      uint64_t *ret_bytes)
{
	struct sp_watched *oldest = NULL;

	*ret_bytes = 0;
	for (size_t i = 0; i < files->n; i++) {
		struct sp_watched *f = files->list[i];

		if (!f->link || !f->waits || f->n_links > 1)
			continue;
		*ret_bytes += f->disk_bytes;
		if (!oldest || f->mtime.tv_sec < oldest->mtime.tv_sec)
			oldest = f;
	}
	return oldest;
}

void sp_watched_limit(struct sp_watched_files *files, sp_watched_fn *dropped,
		      void *arg)
{
	struct sp_watched *f;
	uint64_t bytes;

	while ((f = oldest_kept(files, &bytes)) && bytes > files->max_bytes) {
		dropped(arg, f);
		unlink(f->link);
		f->waits = false;
		f->is_refused = true;
	}
}
