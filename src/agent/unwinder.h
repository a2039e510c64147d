/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_UNWINDER_H
#define SP_AGENT_UNWINDER_H

#include <stdbool.h>

#include "agent/lane.h"

/*
 * libunwind, opened privately and cut off from everything that could block or
 * enter the kernel (unwinder_imports.h).
 *
 * Load it and warm it up.  False: not installed or not usable;
 * `sp_unwinder_why` says why.  Context: cold, in the constructor, inside the
 * agent.
 */
bool sp_unwinder_init(void);
const char *sp_unwinder_why(void);

/*
 * Return addresses of the present call stack, innermost first, into
 * lane->pcs[0..max).  Their number, or 0 if unwinding is not possible.  If
 * sp_modules_count() has changed afterwards, code was met that the library
 * knew nothing about: the result may be wrong, and the next one is right.
 * Context: sampled; sp_thread.lane is `lane`.
 */
int sp_unwinder_trace(struct sp_lane *lane, int max);

#endif
