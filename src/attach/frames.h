/* SPDX-License-Identifier: MIT */
/* Inside of tracee.c: signal frames, by which a thread that was borrowed goes
 * back to where it was if nobody sees to it. */
#pragma once

#include <stdint.h>

#include "attach/tracee.h"

/* Registers that make a system call, and then go back by the frame, if it is
 * not 0. */
sp_cpu_regs sp_frames_regs_of_syscall(const struct sp_tracee *t, long n,
				      const uint64_t args[6], uint64_t frame);

/* The frame that takes the thread back, in memory from `start` to `end`: where
 * it is, or 0. */
uint64_t sp_frames_write(struct sp_tracee *t, uint64_t start, uint64_t end);

/*
 * The same below its stack, where a signal handler would have its own:
 * t->stack_frame.  If the thread is to be run first, and there is room for it,
 * two more are below that, by which it makes itself an ordinary one before:
 * t->undoes_hurry.
 */
void sp_frames_write_on_stack(struct sp_tracee *t);
