/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * System calls that another process may have to answer: one that serves a file
 * system (FUSE), or the pages of a memory that is read (userfaultfd).  It may
 * never do so, and nothing but the end of the process ends such a call.  So a
 * thread makes it, and is left to it when there is no answer in time; it ends
 * with the process.  Of 64 that are left none is added.  Offline code only.
 *
 * What the call gives, or -errno; -ETIMEDOUT: no answer.  After that the
 * following calls have half of the time, so that many of them take little
 * together; a minute later they have all of it again.
 */
#define SP_PATIENCE_NS 2000000000ull

/* How long the last one was waited for that had no answer. */
unsigned int sp_patience_waited_ms(void);

/* Is it a regular file on a device?  Then the kernel itself answers, and no
 * thread is made. */
bool sp_patience_has_disk(int fd);

/* `resolve` is that of openat2(), or 0. */
int sp_patience_open(int dir, const char *path, int flags, uint64_t resolve);

/* `path` "" is `fd` itself; a link is followed. */
int sp_patience_stat(int fd, const char *path, struct stat *ret);

/* At most 1 MiB at once, as pread(). */
ssize_t sp_patience_read(int fd, void *to, size_t bytes, off_t at);

/* Of another process's memory, as process_vm_readv(). */
ssize_t sp_patience_memory(pid_t pid, uint64_t from, void *to, size_t bytes);
