/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "attach/cpu.h"
#include "attach/hurry.h"

/*
 * One thread of another process: stopped, made to call functions on a stack of
 * its own, and let go as it was.  The other threads run on.  While it is made
 * to call, signals of its process go to other threads, or wait.
 *
 * Whatever comes between, even the end of this program: what the thread is in
 * then, a function or a system call, returns to a frame that takes the thread
 * back to where it was.
 */
struct sp_tracee {
	pid_t pid, tid;
	bool is_traced, is_stopped;
	bool is_borrowed;      /* its registers are ours */
	uint64_t stopped_ns;   /* when, by CLOCK_MONOTONIC */
	sp_cpu_regs regs, now; /* as they were; as they are */
	unsigned char vector[SP_CPU_VECTOR_MAX];
	uint32_t vector_bytes;
	uint64_t sigmask;
	uint64_t syscall;        /* where it has a system call */
	uint64_t way_back;       /* and a return from a signal handler, or 0 */
	uint64_t stack_frame;    /* below its stack, or 0: it has no room */
	struct sp_hurry *hurry;  /* by which it may be run first, or NULL */
	bool undoes_hurry;       /* by stack_frame */
	uint64_t memory;         /* of ours in it, or 0 */
	uint64_t frame;          /* in that */
	int ended;               /* how the calls did, 1: they go on */
	uint64_t missed;         /* signals to be sent again, by their bits */
	void (*idle)(void *arg); /* called while it is waited for, or NULL */
	void *idle_arg;
};

/* Of the memory: the code, the calls, and what is free for us, below a stack.
 */
#define SP_TRACEE_CALLS  4u
#define SP_TRACEE_FREE   1024u
#define SP_TRACEE_ROOM   8192u
#define SP_TRACEE_MEMORY (256u << 10)

/* Before the first, in the process that traces, and for as long as it runs. */
void sp_tracee_begin(void);

/* Wait until a thread that is traced has stopped or ended since the last time,
 * or for a moment. */
void sp_tracee_nap(void);

/*
 * Trace thread `tid` and ask it to stop.  0; -ESRCH: there is none; -EPERM,
 * also if it is ending; with *err.  `without_filter`: system calls that we make
 * it do are not filtered, which only root may ask for.
 */
int sp_tracee_ask(struct sp_tracee *t, pid_t pid, pid_t tid,
		  bool without_filter, struct sp_error *err);

/* 0: it has stopped; -EAGAIN: not yet; -ESRCH: it has ended; -EBUSY: it is
 * stopped for another reason.  After the last two it is traced no more. */
int sp_tracee_look(struct sp_tracee *t);

/* Give a thread that was borrowed what was its, if it is stopped: it still is
 * then. */
void sp_tracee_return(struct sp_tracee *t);

/* Let it go on: as it was, where it was. */
void sp_tracee_release(struct sp_tracee *t);

/* Take its registers, and make it map memory, of which SP_TRACEE_FREE to
 * SP_TRACEE_ROOM are the caller's; `syscall` is the address of
 * SP_CPU_SYSCALL_AT in sp_cpu_syscall_code in its code, `way_back` that of
 * sp_cpu_return_code.  0, or negative errno and *err. */
int sp_tracee_borrow(struct sp_tracee *t, uint64_t syscall, uint64_t way_back,
		     struct sp_error *err);

/* A system call.  What the kernel gave, or -EIO, and the thread is lost.  (If
 * this program is killed just then, so is the other if it has no stack_frame:
 * the calls below have no such moment.) */
long sp_tracee_syscall(struct sp_tracee *t, long n, const uint64_t args[6]);

/* n calls, at most SP_TRACEE_CALLS, which it makes once it goes on, also if
 * another process resumes it. */
bool sp_tracee_prepare(struct sp_tracee *t, const struct sp_cpu_call *calls,
		       size_t n);

/*
 * Let it make them, and read the results of the first n.  0; -ETIMEDOUT: they
 * are not done within timeout_ns, and go on; call it again to wait for longer;
 * -EFAULT: one made a fault; -EIO: the process has ended.  After these only
 * sp_tracee_go_on, sp_tracee_abandon or sp_tracee_release.
 */
int sp_tracee_go_on(struct sp_tracee *t, struct sp_cpu_call *calls, size_t n,
		    uint64_t timeout_ns);

/* After -ETIMEDOUT: stop the thread.  If it waits for a lock, and nobody has
 * woken it, it is as if the call that it is in had not been made.  False: it
 * does not, and may go on. */
bool sp_tracee_abandon(struct sp_tracee *t);

/* Memory of the process. */
bool sp_tracee_read(pid_t pid, uint64_t from, void *to, size_t bytes);
bool sp_tracee_write(const struct sp_tracee *t, uint64_t to, const void *from,
		     size_t bytes);
