/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

/*
 * Files that another process names or shows.  It may belong to another user who
 * wants root to open, create or write a file that this user chooses: by a link
 * in a directory, or by another file in the place of the one that was meant.
 * So a path is resolved without opening anything (O_PATH), and what was found
 * is examined on that descriptor.  All descriptors are to be closed.
 */

/* An O_PATH descriptor of an absolute path as process `pid` sees it: links do
 * not lead out of its root directory, and magic links are not followed.  Or a
 * negative errno; -ENOSYS: this kernel cannot do it (before Linux 5.6). */
int sp_inside_find(pid_t pid, const char *path);

/* The same.  Where the kernel cannot do it, links may lead out: the caller has
 * to identify the file by other means, and must create nothing there. */
int sp_inside_look(pid_t pid, const char *path);
