/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sys/arch.h"
#include "format/layout.h"

/*
 * Count, and perhaps sample, the allocation of n bytes that was made at p and
 * for which the countdown did not suffice.  `frame` is that of the function
 * that the program called.  Errno is preserved.
 */
void sp_agent_count(void *p, uint64_t n, enum sp_entry entry,
		    const struct sp_call_frame *frame);

/* Set this thread up, so that it has an identity for its name; and carry out
 * orders that wait. */
void sp_agent_attach(void);

/* The program gave a thread (pthread_t) that name: asking the kernel for names
 * later would be a system call that a sandboxed program may not survive.
 * Context: any.  Errno is preserved. */
void sp_agent_note_name(unsigned long thread, const char *name);

/* A sample was freed by a thread that is in the agent: has it left without
 * notice?  Context: any.  Errno is preserved. */
void sp_agent_look(void);

/* The program is about to filter its system calls: create the file now rather
 * than with the first sample, and open none later. */
void sp_agent_enter_sandbox(void);

/* Is anything being counted in this process? */
bool sp_agent_is_running(void);

/*
 * Between the two the calling thread is in the agent: its allocations pass, and
 * its counts are those of now.  `mark` is in the caller's frame (inside.h).
 * False, and there is nothing to leave: nothing is counted, or the thread is in
 * the agent already (this is a signal handler).
 */
bool sp_agent_enter(volatile uint32_t *mark);
void sp_agent_leave(const volatile uint32_t *mark);

/*
 * The process, or its parent if this is a child of vfork, may end without a
 * destructor, or execute another program: copy what all threads have counted to
 * the file.  Context: any, also a signal handler that interrupted the agent; no
 * lock is waited for but for a moment, and no state of the thread is touched.
 * Errno is preserved.
 */
void sp_agent_leaving(bool is_exec);

/*
 * Begin a profile in a program that was running before, as attached says, with
 * these settings (NAME=VALUE, a null pointer at the end): before its calls come
 * in.  0; -EBUSY: there is one; -EINVAL: not with these settings, or not in
 * this process; another negative errno: there can be no file.  Context: cold,
 * the loader's lock is held.
 */
struct sp_process_attached;
int sp_agent_begin_attached(const struct sp_process_attached *attached,
			    char *const *settings);

/*
 * End it, after calls have stopped to come in: the file is complete and mapped
 * no longer, and all memory but a few tables went back.  0, or -EAGAIN while
 * another thread has not left: to be called again; -ESRCH: there is none.
 */
int sp_agent_end_attached(void);

/* Steps of sp_agent_end_attached().  stop: publish the final totals, unless
 * that is done; false: there is no profile.  forget, when no thread uses the
 * profile any more: shorten the file and reset all state of it. */
bool sp_agent_stop(void);
void sp_agent_forget(void);
void sp_agent_reset_records(void);

/* Inside the agent: add the thread's counts to the totals. */
void sp_agent_publish(void);
