/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
 * The descriptor, which is by O_PATH if a process serves the file
 * (base/patience.h); -EINVAL: no regular file; -ESTALE: the name leads to
 * another file; -EXDEV: a user may serve its file system; -ETIMEDOUT: who
 * serves it does not answer (base/patience.h); or -errno.
 */
int sp_mapped_open(int dir, const struct sp_proc_map *map, bool is_other);

/* Likewise what is at `place`, opened by O_PATH or a negative errno, if it is
 * the wanted file.  Closes `place`. */
int sp_mapped_open_place(int dir, int place, const struct sp_proc_file *wanted,
			 bool is_other);

/* Likewise the executable of a process. */
int sp_mapped_open_exe(uint64_t pid);

/* Likewise a file that the user names, which is waited for. */
int sp_mapped_open_named(const char *path);

/* Does the name, without a link on its way, lead us to that open file? */
bool sp_mapped_is_at(const char *path, int fd, bool is_other);

/* 0; -ENOEXEC: it is none; or -errno. */
int sp_mapped_check_elf(int fd);
