/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A child process, the worker, that does all the tracing and nothing else: when
 * it ends for any reason, the kernel releases every thread that it traces.  It
 * ends with this process, whatever ends that, and this process ends it if it
 * waits in the kernel for longer than SP_WORKER_STUCK_NS.
 */
#define SP_WORKER_STUCK_NS 5000000000ull

/* In memory that both share. */
struct sp_worker {
	_Atomic uint64_t moved_ns; /* the worker writes it as it moves */
	_Atomic bool is_cancelled; /* the worker is to end soon */
};

/*
 * Run work(arg) in a worker, and wait for its end.  0; -EINTR: the worker was
 * killed; -ETIMEDOUT: it did not move any more, and was killed; or the errno of
 * fork.  *ret_signal: the first signal that came to end this process, which
 * cancels the work; 0: none.  The caller has to raise it again.
 */
int sp_worker_run(struct sp_worker *shared, void (*work)(void *arg), void *arg,
		  int *ret_signal);
