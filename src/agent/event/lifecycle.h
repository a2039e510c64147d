/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/process.h"
#include "agent/thread/thread.h"

/* Start, fork and end of the process. */

/* From any state of the process to one in which the allocation is counted;
 * false: it is not.  The thread is suspended; *used is what it has used. */
bool sp_lifecycle_make_ready(struct sp_thread *t, uint64_t *used);

/* Into the agent, with counts of now, whatever the thread is in the middle of;
 * false: nothing is recorded any more, and the thread is not inside. */
bool sp_lifecycle_go_in(struct sp_thread *t, volatile uint32_t *mark);

/*
 * The process, or its parent if this is a child of vfork, may end without a
 * destructor, or execute another program: copy what all threads have counted to
 * the file.  Context: any, also a signal handler that interrupted the agent; no
 * lock is waited for but for a moment, and no state of the thread is touched.
 * Errno is preserved.
 */
void sp_lifecycle_leaving(bool is_exec);

/*
 * Begin a profile in a program that was running before, as attached says, with
 * these settings (NAME=VALUE, a null pointer at the end): before its calls come
 * in.  0; -EBUSY: there is one; -EINVAL: not with these settings, or not in
 * this process; another negative errno: there can be no file.  Context: cold,
 * the loader's lock is held.
 */
int sp_lifecycle_begin_attached(const struct sp_process_attached *attached,
				char *const *settings);

/*
 * End it, after calls have stopped to come in: the file is complete and mapped
 * no longer, and all memory but a few tables went back.  0, or -EAGAIN while
 * another thread has not left: to be called again; -ESRCH: there is none.
 */
int sp_lifecycle_end_attached(void);

/* Delete the file of the profile that has ended, unless system calls are
 * filtered. */
void sp_lifecycle_discard_file(void);
