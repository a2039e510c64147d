/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

/*
 * Open a file whose name somebody else may have chosen: offline code only.  It
 * is looked at before it is opened, and what was looked at is what is opened: a
 * device, a pipe or a socket never is, because to open it can mean something.
 * Who serves its file system is waited for, as for any file that the user
 * names.
 *
 * `flags` are those of open() without O_CREAT.  The descriptor; or -EINVAL: it
 * is not a regular file; -ELOOP: with O_NOFOLLOW it is a link; or -errno.
 */
int sp_regular_open(const char *path, int flags);

/* The same, to be read, of a file that nobody has named, as one of those in a
 * directory: it is waited for as base/patience.h says, or -ETIMEDOUT.
 * If a process serves it, it is by O_PATH: base/patience.h reads that. */
int sp_regular_open_found(const char *path);

/* What that has: up to n bytes at once, as pread(), and what fstat() says. */
ssize_t sp_regular_read_found(int fd, void *to, size_t n, off_t at);
int sp_regular_stat_found(int fd, struct stat *ret);

/* The last of a name. */
int sp_regular_look_found(const char *path, struct stat *ret);

/* The same of a file of at most `max` bytes that a profile names, or what a
 * profile names: if a process serves it, it is a copy in memory, for which
 * base/served.h has room.  `flags`: O_NOFOLLOW or 0.  *ret is that of the file
 * itself.  -EFBIG: it is larger. */
int sp_regular_open_foreign(const char *path, int flags, off_t max,
			    struct stat *ret);

/* The same of a descriptor by O_PATH, which stays open, of a file that another
 * process has chosen. */
int sp_regular_reopen(int fd, int flags);
