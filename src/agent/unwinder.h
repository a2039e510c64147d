/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_UNWINDER_H
#define SP_AGENT_UNWINDER_H

#include <stdbool.h>

#include "agent/lane.h"

/*
 * libunwind, opened privately and cut off from everything that could block or
 * enter the kernel (see unwinder.c).
 *
 * Load it and warm it up.  False: not installed or not usable;
 * `sp_unwinder_why` says why.  Context: cold, in the constructor, inside the
 * agent.
 */
bool sp_unwinder_init(void);
const char *sp_unwinder_why(void);

/*
 * Return addresses of the present call stack, innermost first, into
 * lane->pcs[0..max).  Their number, or 0 if unwinding is not possible.
 * Context: sampled; sp_thread.lane is `lane`.
 */
int sp_unwinder_trace(struct sp_lane *lane, int max);

/* What is cached about code may be wrong: an object appeared.  Context:
 * sampled, as above. */
void sp_unwinder_flush(void);

/* In a forked child: locks that vanished threads held are gone; if one was
 * held, the library's state is unknown and it is not used any more. */
void sp_unwinder_reset(void);

#endif
