/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/file/slot_owner.h"

/* What the slots have in sum. */

/*
 * Exact totals of the process up to now: also what running threads have not
 * added yet, from their size counts.  Each thread is cut somewhere within the
 * call. What cannot be told, at most check_in_bytes for each thread that has no
 * slot or whose slot has no size counts, is in slack_bytes.  Takes some 1 us
 * for each slot.
 */
struct sp_slots_totals {
	uint64_t bytes;
	uint64_t objects;
	/* Of these: allocated by threads that were not sampling. */
	uint64_t unsampled_bytes;
	uint64_t unsampled_objects;
	uint64_t slack_bytes;
};

void sp_slots_total(struct sp_slots_totals *ret, uint64_t check_in_bytes);

/* Of one slot: what its owner has added; and up to now, with its size counts.
 */
struct sp_slots_totals sp_slots_total_added(const struct sp_slot_owner *slot);
struct sp_slots_totals sp_slots_total_of(const struct sp_slot_owner *slot,
					 uint64_t check_in_bytes);

/*
 * Bytes that all threads but the owner of `mine` may allocate, at most, before
 * they add to their slots again, beyond what their size counts have;
 * check_in_bytes is the step of those without a slot.  It does not cover bytes
 * of an owner that adds to its slot during this call: after adding, that owner
 * sees everything that the caller stored before the call.
 */
uint64_t sp_slots_total_unseen(uint16_t mine, uint64_t check_in_bytes);
