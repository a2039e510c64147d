/* SPDX-License-Identifier: MIT */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/vfs.h>
#include <unistd.h>

/* As the kernel has it. */
#define LINKS_MAX 40u

/* The way to a place. */
struct walk {
	const char *path; /* as it was asked for */
	char *left;       /* not yet walked */
	int at;           /* the directory that was reached */
	unsigned int links;
	struct sp_error *err;
};

bool sp_place_is_trusted(uid_t owner)
{
	struct stat root;

	/* Where the real root has no number, it owns the root directory. */
	return owner == 0 || owner == (uid_t)setfsuid((uid_t)-1) ||
	       (stat("/", &root) == 0 && owner == root.st_uid);
}

/* ---- finding ---- */

static int fail_walk(const struct walk *w, int r)
{
	char *copy = strdup(w->path);

	if (copy && r == -ENOENT && *w->path)
		sp_error_set(w->err, r, w->path,
			     "cannot create it: there is no directory %.150s",
			     dirname(copy));
	else
		sp_error_set(w->err, r, w->path, "cannot create it: %s",
			     strerror(-r));
	free(copy);
	return r;
}

/* A slash at the end stands for the directory. */
static int take_part(struct walk *w, char part[NAME_MAX + 1])
{
	char *from = w->left + strspn(w->left, "/");
	const size_t n = strcspn(from, "/");
	char *next = from + n + strspn(from + n, "/");

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(part, n ? from : ".", n ? n : 1);
	part[n ? n : 1] = '\0';
	if (from[n] && !*next)
		memcpy(w->left, ".", 2);
	else
		memmove(w->left, next, strlen(next) + 1);
	return 0;
}

static void step_into(struct walk *w, int dir)
{
	close(w->at);
	w->at = dir;
}

static bool is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Its text is no path: only the kernel can follow it. */
static int follow_proc(struct walk *w, const char *part, struct sp_place *ret)
{
	int fd = openat(w->at, part, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &ret->there) != 0)
		return fail_walk(w, -errno);
	step_into(w, fd);
	ret->is_given = !*w->left && !S_ISDIR(ret->there.st_mode);
	if (!*w->left && !ret->is_given)
		strcpy(ret->name, ".");
	return !*w->left;
}

static int follow_link(struct walk *w, const char *part, int link,
		       struct sp_place *ret)
{
	char text[PATH_MAX], *joined;
	ssize_t n;

	if (!sp_place_is_trusted(ret->there.st_uid))
		return sp_error_set(
			w->err, -EPERM, w->path,
			"its part %.100s is a symbolic link of another user "
			"(uid %ld): give the path that is meant",
			part, (long)ret->there.st_uid);
	if (++w->links > LINKS_MAX)
		return fail_walk(w, -ELOOP);
	if (is_of_proc(link))
		return follow_proc(w, part, ret);
	n = readlinkat(link, "", text, sizeof(text));
	if (n <= 0 || (size_t)n == sizeof(text))
		return fail_walk(w, n < 0 ? -errno : -ENAMETOOLONG);
	if (asprintf(&joined, "%.*s%s%s", (int)n, text, *w->left ? "/" : "",
		     w->left) < 0)
		return fail_walk(w, -ENOMEM);
	free(w->left);
	w->left = joined;
	if (*joined == '/')
		step_into(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	return 0;
}

/* 1: there it is. */
static int walk_on(struct walk *w, struct sp_place *ret)
{
	char part[NAME_MAX + 1];
	int fd, r = take_part(w, part);

	if (r < 0)
		return fail_walk(w, r);
	fd = openat(w->at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !*w->left) {
		strcpy(ret->name, part);
		ret->there = (struct stat){.st_mode = 0};
		return 1;
	}
	if (fd < 0 || fstat(fd, &ret->there) != 0) {
		r = fail_walk(w, -errno);
	} else if (S_ISLNK(ret->there.st_mode)) {
		r = follow_link(w, part, fd, ret);
	} else if (*w->left) {
		step_into(w, fd);
		return 0;
	} else {
		strcpy(ret->name, part);
		r = 1;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int sp_place_find(const char *path, struct sp_place *ret, struct sp_error *err)
{
	struct walk w = {.path = path, .left = strdup(path), .err = err};
	int r;

	*ret = (struct sp_place){.dir = -1};
	w.at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.at < 0)
		r = fail_walk(&w, -errno);
	else if (!w.left)
		r = fail_walk(&w, -ENOMEM);
	else
		r = *path ? 0 : fail_walk(&w, -ENOENT);
	while (r == 0)
		r = walk_on(&w, ret);
	free(w.left);
	ret->dir = w.at;
	return r < 0 ? r : 0;
}

void sp_place_close(struct sp_place *place)
{
	if (place->dir >= 0)
		close(place->dir);
	place->dir = -1;
}

/* ---- opening ---- */

static bool look_at_directory(const struct sp_place *place, struct stat *ret)
{
	return !place->is_given && fstat(place->dir, ret) == 0;
}

bool sp_place_is_closed(const struct sp_place *place)
{
	struct stat dir;

	return look_at_directory(place, &dir) &&
	       !(dir.st_mode & (S_IWGRP | S_IWOTH)) &&
	       sp_place_is_trusted(dir.st_uid);
}

/* May it be written to?  NULL: yes. */
static const char *why_not(const struct sp_place *place, const struct stat *st)
{
	struct stat dir;

	if (place->is_given || S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ||
	    sp_place_is_closed(place))
		return NULL;
	if (S_ISREG(st->st_mode) && st->st_nlink > 1)
		return "has a second name (a hard link), and others can write "
		       "to its directory";
	if (sp_place_is_trusted(st->st_uid))
		return NULL;
	if (!S_ISREG(st->st_mode))
		return "is a pipe of another user";
	if (look_at_directory(place, &dir) && !(dir.st_mode & S_IWOTH) &&
	    (st->st_uid == dir.st_uid ||
	     (st->st_gid == dir.st_gid && st->st_mode & S_IWGRP)))
		return NULL;
	return "belongs to another user, who can put files into its directory";
}

static int open_given(const struct sp_place *place, int flags)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", place->dir);
	return open(self, flags | O_NOCTTY | O_CLOEXEC);
}

/* Only a pipe of ours may keep us waiting; what is there by now is looked at
 * once it is open. */
static int open_named(const struct sp_place *place, int flags, mode_t mode)
{
	const bool may_wait = S_ISFIFO(place->there.st_mode) &&
			      sp_place_is_trusted(place->there.st_uid);
	int fd = openat(place->dir, place->name,
			flags | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC |
				(may_wait ? 0 : O_NONBLOCK),
			mode);

	if (fd >= 0 && !may_wait)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int sp_place_open(const struct sp_place *place, const char *path, int flags,
		  mode_t mode, struct sp_error *err)
{
	struct stat st = place->there;
	const char *why = st.st_mode ? why_not(place, &st) : NULL;
	int code, fd;

	if (why)
		return sp_error_set(err, -EPERM, path, "%s", why);
	fd = place->is_given ? open_given(place, flags & ~O_CREAT)
			     : open_named(place, flags, mode);
	if (fd < 0) {
		code = -errno;
		return sp_error_set(err, code, path, "cannot be opened: %s",
				    strerror(-code));
	}
	why = fstat(fd, &st) == 0 ? why_not(place, &st) : strerror(errno);
	if (!why)
		return fd;
	close(fd);
	return sp_error_set(err, -EPERM, path, "%s", why);
}
