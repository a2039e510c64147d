/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_STACKTAB_H
#define SP_AGENT_STACKTAB_H

#include <stdint.h>

#include "agent/lane.h"
#include "agent/stack.h"

/*
 * Every distinct stack once, with the id that it has in the file, where its
 * STACK record stands before anybody gets the id.
 *
 * By its return addresses: the id, or 0 if it has none yet or is not permanent.
 * Context: sampled.
 */
uint32_t sp_stacktab_find(const struct sp_stack_walk *walk);

/*
 * By what it was resolved to, lane->frames[0..walk->n).  0 if there is no
 * memory or no room in the file (counted).  Context: sampled.
 */
uint32_t sp_stacktab_intern(struct sp_lane *lane,
			    const struct sp_stack_walk *walk);

/* In a forked child: its file knows no stacks yet. */
void sp_stacktab_reset(void);

#endif
