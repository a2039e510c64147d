/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The calls of the process that traces which could wait for the process that is
 * traced, with an end to each wait; and threads that execute another program.
 * Process-wide: there is one that traces at a time.
 */

/* To be called once before all others.  Blocks SIGCHLD, by which the kernel
 * reports stops, and takes SIGALRM.  *moved_ns (borrowed) gets the time at
 * which this process last moved; CLOCK_MONOTONIC. */
void sp_seize_begin(_Atomic uint64_t *moved_ns);

/* Note that this process moves. */
void sp_seize_move(void);

/* Wait until a traced thread has stopped or ended, at most 1 ms. */
void sp_seize_nap(void);

/*
 * Trace thread `tid`, without a stop, with these PTRACE_O_ options; a later
 * execve is reported.  0; -EINTR: the kernel does not let it be traced now, for
 * a thread of that process is in execve; or another negative errno as of
 * PTRACE_SEIZE.
 */
int sp_seize(pid_t tid, long options);

/*
 * Has the traced thread *tid of process pid stopped?  1, and *ret_status as of
 * waitpid; 0: not yet; -ESRCH: it has ended, or it runs another program now and
 * is traced no longer.  A thread that executes a program gets the process's id:
 * then *tid becomes that.
 */
int sp_seize_look(pid_t pid, pid_t *tid, int *ret_status);
