/* SPDX-License-Identifier: MIT */
#include "fleet/watched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/place.h"
#include "base/regular.h"
#include "control/files.h"
#include "read/reader.h"
#include "read/source.h"
#include "text/text.h"

#define NAME ".sampleprof-backlog"

static int open_below(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name,
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -EPERM;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return -EPERM;
}

/*
 * Other users may write to the directory, but must not choose where files get
 * a name here or lose it: that happens in what was opened and looked at.  A
 * descriptor, or negative errno and *err; -ENOENT: there is none.
 */
static int open_backlog(const struct sp_watched_files *files, bool is_made,
			struct sp_error *err)
{
	struct sp_place place;
	int r = sp_place_find(*files->dir ? files->dir : ".", &place, err);

	if (r >= 0 && is_made && mkdirat(place.dir, NAME, 0700) < 0 &&
	    errno != EEXIST)
		r = sp_error_set(err, -errno, files->backlog, "%s",
				 strerror(errno));
	if (r >= 0) {
		r = open_below(place.dir, NAME);
		if (r < 0)
			sp_error_set(err, r, files->backlog, "%s",
				     r == -ENOENT ? strerror(ENOENT)
						  : "is not a directory that "
						    "only this user can write "
						    "to: remove it");
	}
	sp_place_close(&place);
	return r;
}

int sp_watched_init(struct sp_watched_files *files, const char *dir,
		    uint64_t max_bytes, struct sp_error *err)
{
	int fd;

	/* While there is little memory. */
	sp_patience_begin();
	sp_source_are_found();
	*files = (struct sp_watched_files){.dir = dir, .max_bytes = max_bytes};
	if (asprintf(&files->backlog, "%s" NAME "/", dir) < 0) {
		files->backlog = NULL;
		return sp_error_memory(err, NULL);
	}
	fd = open_backlog(files, false, err);
	if (fd >= 0)
		close(fd);
	return fd == -ENOENT || fd >= 0 ? 0 : fd;
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

	if (sp_regular_look_found(path, &st) < 0 || !S_ISREG(st.st_mode))
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
	return r < 0 ? sp_error_memory(err, NULL) : 0;
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

/* The name may belong to another file by now, which is not kept: the next look
 * knows. */
static int give_name(const struct sp_watched *f, int dir, const char *name,
		     struct sp_error *err)
{
	const int place =
		sp_patience_open(AT_FDCWD, f->path, O_PATH | O_CLOEXEC, 0);
	int r = place < 0 ? place : 0;
	char path[32];
	struct stat st;

	/* A link of the kernel: nobody is asked for the name. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	if (r == 0 && linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) != 0)
		r = -errno;
	if (place >= 0)
		close(place);
	if (r < 0)
		return r == -EEXIST || r == -ENOENT
			       ? 0
			       : sp_error_set(err, r, f->path, "%s",
					      strerror(-r));
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    st.st_ino != f->ino || st.st_dev != f->dev)
		unlinkat(dir, name, 0);
	return 0;
}

int sp_watched_keep(struct sp_watched_files *files, struct sp_watched *f,
		    struct sp_error *err)
{
	char *path = NULL;
	int r, dir;

	if (f->link)
		return 0;
	dir = open_backlog(files, true, err);
	if (dir < 0)
		return dir;
	if (asprintf(&path, "%s%ju.%s", files->backlog, (uintmax_t)f->ino,
		     sp_text_base_name(f->path)) < 0)
		r = sp_error_memory(err, NULL);
	else
		r = give_name(f, dir, path + strlen(files->backlog), err);
	close(dir);
	if (r < 0) {
		free(path);
		return r;
	}
	f->link = path;
	f->n_links++;
	return 0;
}

static void take_name(const struct sp_watched_files *files,
		      const struct sp_watched *f)
{
	int dir = open_backlog(files, false, NULL);

	if (dir < 0)
		return;
	unlinkat(dir, sp_text_base_name(f->link), 0);
	close(dir);
}

void sp_watched_release(const struct sp_watched_files *files,
			struct sp_watched *f)
{
	if (!f->link)
		return;
	take_name(files, f);
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
		take_name(files, f);
		f->waits = false;
		f->is_refused = true;
	}
}
