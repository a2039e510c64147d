/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread/thread.h"

/* Between the two a thread is in an event: what it allocates passes. */

/* Suspend the countdown, so that allocations while the agent works do not use
 * it.  Returns the bytes that were counted since the last event, to be added; 0
 * while paused.  `mark` is in the frame of the caller, which has to call
 * sp_suspend_end(). */
uint64_t sp_suspend_begin(struct sp_thread *t, volatile uint32_t *mark);

/* Set the countdown to the next event: the next sample, the next check-in, or
 * the next allocation if `must_come_back`, which may change at any time. */
void sp_suspend_end(struct sp_thread *t, const volatile uint32_t *mark,
		    bool (*must_come_back)(const struct sp_thread *t));
