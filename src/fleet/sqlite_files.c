/* SPDX-License-Identifier: MIT */
/*
 * SQLite opens files by their names, again and again, and writes to a journal
 * that it finds.  Its system calls can be replaced: these are the three that
 * depend on who gave a file its name.
 */
#include "fleet/sqlite_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"

struct sp_sqlite_refusal sp_sqlite_refusal;

/* As a system call fails.  What SQLite tries instead does not count. */
static int fail_call(const char *path, int r, const char *why)
{
	const char *slash = strrchr(path, '/');

	errno = -r;
	if (r != -EPERM || *sp_sqlite_refusal.why)
		return -1;
	snprintf(sp_sqlite_refusal.name, sizeof(sp_sqlite_refusal.name), "%s",
		 slash ? slash + 1 : path);
	snprintf(sp_sqlite_refusal.why, sizeof(sp_sqlite_refusal.why), "%.199s",
		 why);
	return -1;
}

static int open_to_read(const char *path, int flags)
{
	int fd = open(path, flags | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || (fstat(fd, &st) == 0 &&
		       (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))))
		return fd;
	close(fd);
	return fail_call(path, -EPERM, "is not a regular file");
}

/* SQLite gives a file that has no mode yet the one that it wants. */
static int open_file(const char *path, int flags, int mode)
{
	struct sp_place place;
	struct sp_error err = {.message = ""};
	int r;

	if ((flags & O_ACCMODE) == O_RDONLY)
		return open_to_read(path, flags);
	r = sp_place_find(path, &place, &err);
	if (r >= 0)
		r = sp_place_open(&place, path, flags, (mode_t)mode & 0600,
				  &err);
	sp_place_close(&place);
	return r < 0 ? fail_call(path, r, err.message) : r;
}

static int unlink_file(const char *path)
{
	struct sp_place place;
	struct sp_error err = {.message = ""};
	int r = sp_place_find(path, &place, &err);

	if (r >= 0)
		r = unlinkat(place.dir, place.name, 0) < 0 ? -errno : 0;
	sp_place_close(&place);
	return r < 0 ? fail_call(path, r, err.message) : 0;
}

static ssize_t read_link(const char *path, char *text, size_t room)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && sp_place_is_trusted(st.st_uid))
		n = readlinkat(fd, "", text, room);
	else
		n = fail_call(path, -EPERM,
			      "is a symbolic link of another user: give the "
			      "path that is meant");
	close(fd);
	return n;
}

void sp_sqlite_guard_files(void)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} calls[] = {
		{"open", (sqlite3_syscall_ptr)open_file},
		{"unlink", (sqlite3_syscall_ptr)unlink_file},
		{"readlink", (sqlite3_syscall_ptr)read_link},
	};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	sp_sqlite_refusal.why[0] = '\0';
	for (size_t i = 0; vfs && i < sizeof(calls) / sizeof(*calls); i++)
		vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
}
