/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * Being told of forks and of the end of threads, by the C library's own means:
 * a fork handler that runs in the child, and the destructor of a
 * thread-specific value.  Context: cold; installed by the first call,
 * for good, like the library (nodelete).
 */
void sp_hooks_install(void (*forked)(void), void (*thread_ended)(void *));

/* Have thread_ended(arg) called when the calling thread exits; false before
 * sp_hooks_install or if that is not possible.  May allocate. */
bool sp_hooks_watch_thread(void *arg);
