/* SPDX-License-Identifier: MIT */
/* Part of tracee.c: signal frames.  If nobody restores a borrowed thread, it
 * returns through such a frame to where it was. */
#pragma once

#include <stdint.h>

#include "control/tracee.h"

/* Registers that make the system call n with these arguments.  The thread then
 * returns through the signal frame at address `frame`; 0: no frame. */
sp_cpu_regs sp_frames_regs_of_syscall(const struct sp_tracee *t, long n,
				      const uint64_t args[6], uint64_t frame);

/*
 * Write the frame that restores the thread below the thread's stack, where the
 * kernel would put that of a signal handler, and store its address in
 * t->stack_frame; 0: no room or not a stack that may be written to.  If the
 * thread has t->hurry and there is room, further frames go below that one: they
 * restore the thread's scheduling, and t->undoes_hurry is set.
 */
void sp_frames_write_on_stack(struct sp_tracee *t);

/* Write a frame at the end of our memory in the process: it unmaps that memory
 * and returns through t->stack_frame, or, if there is none, restores the thread
 * and leaves the memory.  The frame's address; 0: it cannot be written. */
uint64_t sp_frames_write_in_memory(const struct sp_tracee *t);
