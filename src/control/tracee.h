/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "control/cpu.h"
#include "control/hurry.h"

/*
 * One thread of another process: it is stopped by ptrace, makes remote calls on
 * a stack of its own, and then continues as it was.  The other threads keep
 * running.  While the thread is borrowed, signals of its process go to other
 * threads, or stay pending.
 *
 * The thread always has a way back, even if this program is killed: the
 * function or system call that it is in returns to a signal frame, and the
 * frame takes the thread back to where it was.  (sp_tracee_syscall has the one
 * exception.)
 */
struct sp_tracee {
	pid_t pid, tid;
	bool is_traced, is_stopped;
	bool is_borrowed;    /* its registers and signal mask are ours */
	uint64_t stopped_ns; /* when it was last seen running */
	sp_cpu_regs regs;    /* its own, to be restored */
	sp_cpu_regs now;     /* as they are at this stop */
	unsigned char vector[SP_CPU_VECTOR_MAX]; /* to be restored, too */
	uint32_t vector_bytes;
	uint64_t sigmask;       /* to be restored, too */
	uint64_t syscall;       /* address of a system call instruction */
	uint64_t sigreturn;     /* of a return from a signal handler, or 0 */
	uint64_t stack_frame;   /* signal frame on its own stack, or 0 */
	struct sp_hurry *hurry; /* raises its priority; borrowed, or NULL */
	bool undoes_hurry;      /* stack_frame restores the priority */
	uint64_t code;          /* our memory in the process, or 0 */
	uint64_t memory;        /* the part of it that can be written to */
	uint64_t frame;         /* signal frame in that memory */
	/* The remote calls: 1: not known to have ended; 0: they have; or the
	 * negative errno with which they ended. */
	int ended;
	uint64_t missed; /* signals to be sent again: bit number - 1 */
	void (*idle)(
		void *arg); /* called while a stop is waited for, or NULL */
	void *idle_arg;
};

/*
 * Our memory in the process, SP_TRACEE_MEMORY bytes, has code, which cannot be
 * written to, in its first SP_TRACEE_CODE bytes, the largest page that there
 * is.  The rest, which cannot be executed, has the list of calls, then from
 * SP_TRACEE_FREE to SP_TRACEE_ROOM bytes for the caller, then a stack.
 */
#define SP_TRACEE_CALLS  4u /* the most remote calls at a time */
#define SP_TRACEE_FREE   1024u
#define SP_TRACEE_ROOM   10240u
#define SP_TRACEE_CODE   (64u << 10)
#define SP_TRACEE_MEMORY (320u << 10)

/*
 * Trace thread `tid` of process `pid` and ask it to stop.  *t keeps `idle` and
 * `idle_arg`; the rest is initialised.  `without_filter`: seccomp filters do
 * not apply to the thread while it is traced, which only root may ask for.  0;
 * or *err and -ESRCH: there is no such thread; -EPERM: it may not be traced, is
 * traced by another process, or is just ending; -EINTR: a thread of the process
 * is in execve; -EINVAL or -EIO: this kernel cannot suspend filters.
 */
int sp_tracee_ask(struct sp_tracee *t, pid_t pid, pid_t tid,
		  bool without_filter, struct sp_error *err);

/* Has the thread stopped?  0: yes, and t->regs has its registers; -EAGAIN: not
 * yet; -ESRCH: it has ended; -EBUSY: it has stopped for another reason.  After
 * the last two it is not traced any more. */
int sp_tracee_look(struct sp_tracee *t);

/* Unmap our memory in the process, and restore a borrowed thread that is
 * stopped.  The thread stays stopped. */
void sp_tracee_return(struct sp_tracee *t);

/* Restore the thread if it was borrowed, let it run, and stop tracing it. */
void sp_tracee_release(struct sp_tracee *t);

/*
 * Save the state of a stopped thread, and make it map memory for remote calls.
 * `syscall`: address of the system call instruction in sp_cpu_syscall_code,
 * `sigreturn`: address of sp_cpu_sigreturn_code or 0, both in the process.  0;
 * or a negative errno and *err.  In any case call sp_tracee_return.
 */
int sp_tracee_borrow(struct sp_tracee *t, uint64_t syscall, uint64_t sigreturn,
		     struct sp_error *err);

/*
 * Make a borrowed thread do the system call n.  Its result (a negative errno if
 * it failed); -EIO: the thread cannot be controlled any more.  If this program
 * is killed while our memory is mapped or unmapped, and the thread has no
 * stack_frame, the process crashes; other calls have no such moment.
 */
long sp_tracee_syscall(struct sp_tracee *t, long n, const uint64_t args[6]);

/* Set up n remote calls, at most SP_TRACEE_CALLS.  The thread makes them when
 * it is next resumed, even if another process resumes it.  False: too many, or
 * the process has ended. */
bool sp_tracee_prepare(struct sp_tracee *t, const struct sp_cpu_call *calls,
		       size_t n);

/*
 * Resume the thread until it has made the prepared calls, and read the first n
 * of them with their results.  0; -ETIMEDOUT: the calls take longer than
 * timeout_ns and go on, call it again to wait on; -EFAULT: a call raised a
 * fault; -EIO: the process has ended.  After a failure only
 * sp_tracee_go_on, sp_tracee_abandon, sp_tracee_return and sp_tracee_release
 * are allowed.
 */
int sp_tracee_go_on(struct sp_tracee *t, struct sp_cpu_call *calls, size_t n,
		    uint64_t timeout_ns);

/* After -ETIMEDOUT: has the first of the prepared calls been made?  Its result
 * was SP_TRACEE_NOT_MADE, which it does not return itself. */
bool sp_tracee_has_made_first(const struct sp_tracee *t);
#define SP_TRACEE_NOT_MADE UINT64_MAX

/*
 * After -ETIMEDOUT: stop the thread.  True: the first of its calls waits for
 * a lock and was not woken, so it can be given up as if it had not been made;
 * t->now has the registers of its wait.  False: the calls have to end; call
 * sp_tracee_go_on.
 */
bool sp_tracee_abandon(struct sp_tracee *t);

/* Copy memory of the process.  False: not all of it could be copied. */
bool sp_tracee_read(pid_t pid, uint64_t from, void *to, size_t bytes);
bool sp_tracee_write(const struct sp_tracee *t, uint64_t to, const void *from,
		     size_t bytes);

/* Write a word to memory that the process itself may not write to; the thread
 * is stopped.  False: there is no such memory. */
bool sp_tracee_force(const struct sp_tracee *t, uint64_t to, uint64_t word);
