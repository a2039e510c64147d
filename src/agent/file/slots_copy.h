/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "agent/file/slot_owner.h"

/* The slots in the profile file, if there is one: any thread may copy them. */

/* The totals of one; with what the owner has not added yet, or without: then
 * the owner's next copy has no less. */
void sp_slots_copy_totals(struct sp_slot_owner *slot, bool is_ahead);

/* Its size counts, if much was added since the last time; or however little. */
void sp_slots_copy_due_size_counts(struct sp_slot_owner *slot);
void sp_slots_copy_size_counts(uint16_t slot);

/* Copy every slot, with what its owner has not added yet, into a file that was
 * just made, or is about to end; in the second case the size counts, too. */
void sp_slots_copy_all(void);
void sp_slots_copy_all_size_counts(void);
