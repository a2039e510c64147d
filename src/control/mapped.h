/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc.h"

/*
 * Open, for reading, a file that another process has mapped.  Its name is the
 * process's choice and leads wherever the process likes: the kernel is asked
 * for the file itself, or else what the name leads to, inside of the root
 * directory of the process, has to be the file that is mapped.
 *
 * `dir` is the process's (sp_proc_open()).  A file of a process that
 * `is_other`, another user's, is opened only where the kernel itself, or what
 * an administrator mounted, answers: a file system that a user serves may never
 * answer.
 *
 * The descriptor; -EINVAL: no regular file; -ESTALE: the name leads to another
 * file; -EXDEV: a user may serve its file system; -ETIMEDOUT: who serves it
 * does not answer (base/patience.h); or -errno.
 */
int sp_mapped_open(int dir, const struct sp_proc_map *map, bool is_other);

/* Likewise the executable of a process. */
int sp_mapped_open_exe(uint64_t pid);

/* Does the name, without a link on its way, lead us to that open file? */
bool sp_mapped_is_at(const char *path, int fd, bool is_other);

/* The number in mountinfo of the mount that an open file was reached through;
 * 0: not known. */
uint64_t sp_mapped_mount(int fd);

/* A copy in memory of so many bytes of an open file.  -1: there is no room for
 * it, no answer, no time any more, or *is_over (may be NULL) has become true.
 */
int sp_mapped_copy(int fd, off_t bytes, uint64_t until_ns,
		   const atomic_bool *is_over);

/* The open file itself or, if a process serves its file system, which may stop
 * to answer at any time, a copy of it.  Closes `fd` if it is another.
 * -ETIMEDOUT. */
int sp_mapped_keep(int dir, int fd);
