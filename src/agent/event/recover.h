/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/arch.h"

/*
 * The thread has left the agent for good, by siglongjmp or by ending in a
 * signal handler: give back what it held.  Its counts go on from what its size
 * counts have, if they are of this process.  Context: sampled.
 */
void sp_recover_left(bool is_of_process);

/*
 * A thread that is in an event, or has left one, calls: does the event go on?
 * If not, that is made good.  `mark` is in the caller's frame (inside.h);
 * `from`, NULL if not known, is where the program called.  Context: cold.
 */
bool sp_recover_is_in_event(volatile uint32_t *mark,
			    const struct sp_call_frame *from,
			    bool is_of_process);
