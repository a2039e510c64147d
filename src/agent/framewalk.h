/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_FRAMEWALK_H
#define SP_AGENT_FRAMEWALK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/frame.h"
#include "agent/lane.h"

/*
 * Return addresses from `from` on, innermost first: from->pc, then by frame
 * pointers; 1 to `max`.  They stay until the next walk with this lane.  NULL if
 * there is no memory.  *is_cut says that outer frames are missing because the
 * chain ended in something that is no frame: in code that was compiled without.
 * A function that calls such code is itself missing, which cannot be seen.
 *
 * Reads only the stack, upwards, as far as that is known to be readable.
 * Context: sampled; sp_thread.lane is `lane`.
 */
const struct sp_walk *sp_framewalk_pointers(struct sp_lane *lane,
					    const struct sp_call_frame *from,
					    unsigned int max, bool *is_cut);

/*
 * The same by rules that have been learned, one for each return address.  NULL:
 * a rule is missing; the walk has to be made by libunwind.  Context: as above.
 */
const struct sp_walk *sp_framewalk_rules(struct sp_lane *lane,
					 const struct sp_call_frame *from,
					 unsigned int max);

/*
 * Learn from a walk that libunwind made: pcs[0..n), beginning with from->pc,
 * is_whole if the last is the outermost one.  A rule comes from the unwind
 * tables (cfi.h) and is taken only if it leads from one address to the next.
 * Context: as above.
 */
void sp_framewalk_learn(struct sp_lane *lane, const struct sp_call_frame *from,
			void *const *pcs, unsigned int n, bool is_whole);

#endif
