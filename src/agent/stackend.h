/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_STACKEND_H
#define SP_AGENT_STACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"

/*
 * How far up the present stack may be read.  Nobody can be asked for that
 * within malloc: the C library's answer takes a lock and allocates.
 */

/* On the main thread, with the environment that the process began with.
 * Context: cold. */
void sp_stackend_init(char *const *environment);

/*
 * An address such that all from `here`, the present stack pointer or above it,
 * up to there is readable, or 0 if that is not known: on a coroutine's stack,
 * and on a signal handler's alternate one.  Deep down in a thread it takes some
 * probing, once.  Context: sampled.
 */
uintptr_t sp_stackend_of(struct sp_lane *lane, uintptr_t here);

/* The same without probing: 64 KiB of a thread, and all of the main one. */
uintptr_t sp_stackend_nearby(uintptr_t here);

/*
 * With frame pointers: is `bp` what main, or the first function of a thread,
 * finds in rbp, where others find an address?  `sp` is its caller's stack
 * pointer.
 */
bool sp_stackend_is_outermost(uintptr_t bp, uintptr_t sp);

/*
 * May the word at that address be read?  Asks the kernel in the one way that a
 * program that is locked up to what malloc needs can still do it.
 */
bool sp_stackend_probe(uintptr_t address);

#endif
