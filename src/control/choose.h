/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "control/tracee.h"

/*
 * Stops the threads of a process, one after the other, until one is suitable.
 * A thread has to be scheduled before it can stop, and on a busy machine that
 * takes most of the time.  So up to SP_CHOICE_ASKED threads are asked to stop
 * at once, and each is released as soon as it was examined.
 */
#define SP_CHOICE_ASKED 16u

/* The caller sets the first group; zero-initialise the rest. */
struct sp_choice {
	pid_t pid;
	bool without_filter; /* as of sp_tracee_ask */
	/* Called with each thread that has stopped.  -EAGAIN: the thread is
	 * released and the search goes on; any other value ends the search and
	 * is its result. */
	int (*look)(void *arg, struct sp_tracee *t, struct sp_error *err);
	/* False: the search has to end. */
	bool (*may_go_on)(void *arg);
	void *arg;
	/* Thread pointer (control block) of the main thread; 0: it has not
	 * stopped yet. */
	uint64_t main_thread;
	/* The last thread that was asked could not be traced, because one was
	 * in execve. */
	bool is_in_exec;
	pid_t tracer; /* after -EALREADY: the other process */
	/* The rest is private. */
	size_t n_ended; /* of the threads that were asked in this round */
	struct sp_tracee asked[SP_CHOICE_ASKED];
	const struct sp_tracee *chosen; /* while `look` is called with it */
};

/*
 * Examine all threads once, the main thread first.  The result of `look`;
 * -EAGAIN: no thread is suitable, or none stopped in time; or another negative
 * errno and *err (-ESRCH: the process has ended; -EALREADY: another process
 * traces it; -EPERM: it may not be traced; -EOPNOTSUPP: without_filter, and
 * this kernel cannot suspend filters).
 *
 * A thread that was asked and has not stopped stays traced.  The next round
 * examines and releases it; the kernel releases it, without a stop, when the
 * calling process ends.
 */
int sp_choice_round(struct sp_choice *c, struct sp_error *err);
