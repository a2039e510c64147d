/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "attach/tracee.h"

/*
 * Looking at the threads of a process, one stopped after the other, until one
 * will do.  A thread that is asked to stop has to be run first, which on a busy
 * machine takes longer than all else: so several are asked at once, and each is
 * let go as soon as it was looked at.
 */
#define SP_CHOICE_ASKED 16u

struct sp_choice {
	pid_t pid;
	bool without_filter; /* as of sp_tracee_ask */
	/* Of a thread that has stopped: -EAGAIN, and it is let go; anything
	 * else ends the search, and is its result. */
	int (*look)(void *arg, struct sp_tracee *t, struct sp_error *err);
	void *arg;
	uint64_t main_thread; /* its control block, or 0: not seen yet */
	/* The rest is the module's. */
	struct sp_tracee asked[SP_CHOICE_ASKED];
	const struct sp_tracee *chosen;
};

/*
 * Look at all threads once, the main thread first.  What `look` says; -EAGAIN:
 * no thread will do, or did not stop; or negative errno and *err.  Threads that
 * were asked and have not stopped are let go by the next round, or by the end
 * of this process, which does not stop them.
 */
int sp_choice_round(struct sp_choice *c, struct sp_error *err);
