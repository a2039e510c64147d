/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sys/arch.h"
#include "agent/unwind/lane.h"

/*
 * Return addresses from `from` on, innermost first: from->pc, then by frame
 * pointers; 1 to `max`.  They stay until the next walk with this lane.  NULL if
 * there is no memory.  *is_cut says that outer frames are missing: the chain
 * ended in code that was compiled without frame pointers.  The function that
 * calls such code is missing, too, which cannot be detected.
 *
 * Reads only the stack, upwards, as far as that is known to be readable.
 * Context: sampled.
 */
const struct sp_walk *sp_framewalk_pointers(struct sp_lane *lane,
					    const struct sp_call_frame *from,
					    unsigned int max, bool *is_cut);

/*
 * The same by the unwind tables of each object, which is right for any code
 * that has some; by the frame pointer where it has none.  *is_cut says that
 * outer frames are missing, because neither leads on.
 *
 * Reads only memory that is known to be readable, and looks into tables only
 * for addresses that it meets for the first time.  Context: as above.
 */
const struct sp_walk *sp_framewalk_tables(struct sp_lane *lane,
					  const struct sp_call_frame *from,
					  unsigned int max, bool *is_cut);

/*
 * Do the program's own calls lead from `from` to beyond `place`, further out on
 * the same stack?  Then no call of this library is there, and no signal came
 * in between.  False also where the unwind tables alone do not say it.
 * Context: sampled.
 */
bool sp_framewalk_passes(struct sp_lane *lane, const struct sp_call_frame *from,
			 uintptr_t place);
