/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "format/layout.h"

/*
 * Names of threads that have no slot to keep them: those that were named before
 * their first event, and those beyond the number of slots.  By the kernel's
 * thread id, in a table of fixed size, where the newest names stay.
 *
 * An unnamed thread has its creator's name, and the first thread has the
 * program's.  So until a thread is named, all have the program's name.
 *
 * Context: any.  No lock is waited for.
 */
#define SP_NAMES_MAX 1024u

/* The process begins with one thread.  Its name is that of the program that the
 * kernel executed, or of `path` if that is not known; in a forked child the
 * name of the thread that forked.  All other names are forgotten. */
void sp_names_begin_program(const char *path);
void sp_names_begin(const char *name);

/* Thread `tid` has that name now. */
void sp_names_put(uint64_t tid, const char *name);
void sp_names_forget(uint64_t tid);

/* The calling thread has left one of these for good (inside.h). */
void sp_names_give_left(void);

/* The name of thread `tid`: as it was put, or that of all; else "". */
void sp_names_get(uint64_t tid, char ret[SP_FORMAT_THREAD_NAME_MAX]);
