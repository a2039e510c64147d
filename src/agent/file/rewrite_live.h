/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/unwind/lane.h"

/*
 * After each rotation of the ring, the samples of the segment before that are
 * alive are written once more, into the current one: a few records with each
 * sample that is taken or freed, so that no thread is held up.
 */

/* Go some way, with the lane that the caller holds.  Context: sampled. */
void sp_rewrite_live_step(struct sp_lane *lane);

/* The segment into which everything was rewritten, but which is not complete
 * yet; 0: none. */
uint32_t sp_rewrite_live_finished(void);

/* The calling thread has left a step for good (inside.h). */
void sp_rewrite_live_give_left(void);

/* In a forked child: nothing was begun. */
void sp_rewrite_live_reset(void);
