/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_FILE_CARRY_H
#define SP_AGENT_FILE_CARRY_H

#include "agent/unwind/lane.h"

/*
 * After each turn of the ring, the samples of the segment before that are alive
 * are written once more, into the current one: a few records with each sample
 * that is taken, so that no thread is held up.
 */

/* Go some way, with the lane that the caller holds.  Context: sampled. */
void sp_carry_step(struct sp_lane *lane);

/* The segment into which everything was carried, but which is not covered yet;
 * 0: none. */
uint32_t sp_carry_finished(void);

/* The calling thread has left a step for good (inside.h). */
void sp_carry_give_left(void);

/* In a forked child: nothing was begun. */
void sp_carry_reset(void);

#endif
