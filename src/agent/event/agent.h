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

/* The program gave a thread (pthread_t) that name: asking the kernel for names
 * later would be a system call that a sandboxed program may not survive.
 * Context: any.  Errno is preserved. */
void sp_agent_note_name(unsigned long thread, const char *name);

/* A sample was freed by a thread that is in the agent: has it left without
 * notice?  `from` is the frame of the function that frees.  Context: any. Errno
 * is preserved. */
void sp_agent_look(const struct sp_call_frame *from);

/* The loader has other objects than before: look for allocators that are linked
 * into them.  Context: cold, in the loader.  Errno is preserved. */
void sp_agent_look_at_loaded(const struct sp_call_frame *from);

/* The program is about to filter its system calls: create the file now rather
 * than with the first sample, and open none later. */
void sp_agent_enter_sandbox(void);

/*
 * Between the two the calling thread is in the agent: its allocations pass, and
 * its counts are those of now.  `mark` is in the caller's frame (inside.h), and
 * `from` is the frame of the function that the program has called.
 * False, and there is nothing to leave: nothing is counted, or the thread is in
 * the agent already (this is a signal handler).
 */
bool sp_agent_enter(volatile uint32_t *mark, const struct sp_call_frame *from);
void sp_agent_leave(const volatile uint32_t *mark);

/* Inside the agent: add the thread's counts to the totals. */
void sp_agent_publish(void);
