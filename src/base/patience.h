/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/deputy.h"

/*
 * System calls that another process may have to answer: one that serves a file
 * system (FUSE), or the pages of a memory that is read (userfaultfd).  It may
 * never do so, and then nothing ends such a call, not even SIGKILL.  So a child
 * makes it (base/deputy.h).  It is killed when there is no answer in time, and
 * nobody waits for its end.  Offline code only.
 *
 * What the call gives, or -errno; -ETIMEDOUT: no answer; -ECHILD: there can be
 * no child.  After a call without an answer the following ones to the same
 * device have half of the time, so that many of them take little together; a
 * minute later they have all of it again.  To 8 children that are left to one
 * device, or 64 to all, none is added.
 *
 * To close a descriptor is such a call too.  Of a file that a process serves
 * keep one by O_PATH, which asks nobody; all of these functions take it, and
 * the child opens the file.
 */
#define SP_PATIENCE_NS SP_DEPUTY_NS

/* How long the last one was waited for that had no answer. */
unsigned int sp_patience_waited_ms(void);

/* The child begins, before there is much memory that it keeps; or ends: when
 * there is none for long. */
void sp_patience_begin(void);
void sp_patience_rest(void);

/* Is it a regular file on a device?  Then the kernel itself answers, and no
 * child is made. */
bool sp_patience_has_disk(int fd);

/* Is it open by O_PATH? */
bool sp_patience_is_place(int fd);

/* `resolve` is that of openat2(), or 0.  The child has no descriptor that
 * `path` names, but for one as "/proc/self/fd/3". */
int sp_patience_open(int dir, const char *path, int flags, uint64_t resolve);

/* `path` "" is `fd` itself; a link is followed. */
int sp_patience_stat(int fd, const char *path, struct stat *ret);

/* Of an open file what the kernel knows by itself: kind, mode, inode and
 * device; before Linux 4.11 it asks, as above. */
int sp_patience_know(int fd, struct stat *ret);

/* At most 1 MiB at once, as pread(). */
ssize_t sp_patience_read(int fd, void *to, size_t bytes, off_t at);

/* The same, to that place of a file in memory. */
ssize_t sp_patience_copy(int fd, int copy, size_t bytes, off_t at);

/* Of another process's memory, as pread() of its /proc/PID/mem. */
ssize_t sp_patience_memory(pid_t pid, uint64_t from, void *to, size_t bytes);

/* What call() gives in a child for the file at `place`, which is opened with
 * `flags` for that.  It makes system calls alone: it may not allocate, nor lock
 * anything.  It finds a copy of the data, which is taken back from there. */
typedef long sp_patience_call(int fd, void *data);
long sp_patience_ask(int place, int flags, sp_patience_call *call, void *data,
		     size_t bytes);
