/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"
#include "read/reader.h"

/*
 * The exact totals of a file: what the process has allocated for certain, by
 * everything that the file has of it.  Of a thread that lives that is what it
 * published, what its slot has by size class, or what its samples add up to,
 * whichever is most; so no part of a report contradicts another.
 */

/* After all samples (sp_profile_count_samples()): one slot of a file that was
 * read to its end; `owner` is the thread that has it, or NULL. */
void sp_totals_take_slot(struct sp_profile *profile,
			 const struct sp_reader *reader, unsigned int slot,
			 struct sp_thread_info *owner);

/*
 * At the very end: with a period of 1 each allocation of the totals is a
 * sample, or one that was lost.  What neither accounts for is the loss
 * UNRECORDED, so that nothing takes for whole what is not.  A process that did
 * not end may lack 4 KiB of each thread.
 */
void sp_totals_find_unrecorded(struct sp_profile *profile);

/* After all slots: totals by size class, and how much may be missing. */
void sp_totals_finish(struct sp_profile *profile,
		      const struct sp_reader *reader);
