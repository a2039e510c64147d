/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The ids of a process's threads, the main thread first. */
struct sp_threads {
	pid_t *tids;
	size_t n;
};

/* 0, and *ret is to be freed; or a negative errno (-ENOENT: no such process,
 * -ENOMEM), and nothing is to be freed. */
int sp_threads_list(pid_t pid, struct sp_threads *ret);
void sp_threads_free(struct sp_threads *threads);

/* What the kernel says of a thread, such as one that it does not let us trace.
 */
struct sp_threads_state {
	bool is_ending; /* or has ended */
	bool is_held;   /* waits in the kernel, which does not let it stop */
	pid_t tracer;   /* 0: none */
};
struct sp_threads_state sp_threads_look(pid_t pid, pid_t tid);
