/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_STACKTAB_H
#define SP_AGENT_STACKTAB_H

#include <stdint.h>

#include "agent/lane.h"

/*
 * Every distinct stack once: lane->frames[0..n) with `flags` to the id that it
 * has in the file, where its STACK record stands before anybody gets the id.
 * 0 if there is no memory or no room in the file (counted).
 * Context: sampled.
 */
uint32_t sp_stacktab_intern(struct sp_lane *lane, unsigned int n,
			    uint32_t flags);

/* In a forked child: its file knows no stacks yet. */
void sp_stacktab_reset(void);

#endif
