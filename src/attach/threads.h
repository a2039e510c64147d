/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The threads of a process, the main thread first.  0, or negative errno. */
struct sp_threads {
	pid_t *tids;
	size_t n;
};

int sp_threads_list(pid_t pid, struct sp_threads *ret);
void sp_threads_free(struct sp_threads *threads);
