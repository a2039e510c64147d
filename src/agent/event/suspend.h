/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread/thread.h"

/* Between the two a thread is in an event: what it allocates passes. */

/* Keep the word away from allocations made while the agent works.  Returns
 * bytes that were counted since the last event, to be added; 0 while paused.
 * `mark` is in the frame of the caller, which resumes sampling. */
uint64_t sp_suspend_begin(struct sp_thread *t, volatile uint32_t *mark);

/* The word until the next event: the next sample, the next check-in, or the
 * next allocation if `must_come_back`, which may change at any time. */
void sp_suspend_end(struct sp_thread *t, const volatile uint32_t *mark,
		    bool (*must_come_back)(const struct sp_thread *t));
