/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_STACK_H
#define SP_AGENT_STACK_H

#include <stdint.h>

#include "agent/lane.h"

/*
 * Capture the caller's call stack into lane->frames, innermost first: this
 * library's own frames removed, each address resolved to its object.  Returns
 * the number of frames, 1..depth; *ret_flags gets SP_STACK_*.  If the stack
 * cannot be unwound it is the one frame `caller`, the return address into the
 * program.
 *
 * Context: sampled; sp_thread.lane is `lane`.
 */
unsigned int sp_stack_capture(struct sp_lane *lane, unsigned int depth,
			      const void *caller, uint32_t *ret_flags);

#endif
