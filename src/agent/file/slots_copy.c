/* SPDX-License-Identifier: MIT */
/*
 * I1  The copy of the totals is written under `busy`, a try-lock.  A thread
 *     that cannot take it does nothing: the holder reads the totals and
 *     `changes` again after it has released `busy`, and both orders of (change,
 *     read) and (release, read again) are sequentially consistent, so the last
 *     state always reaches the file.
 * I2  `changes` is odd while the owner's fields are being replaced: no copy is
 *     made then, since the thread that replaces them copies afterwards.
 * I3  The copy of the size counts is written under `counts_busy`.  A thread
 *     that wants a copy sets a flag first, and the holder reads the flag after
 *     it has released the lock: as in I1, the last state reaches the file.
 */
#include "agent/file/slots_copy.h"

#include <string.h>

#include "agent/file/slots_total.h"
#include "agent/file/writer.h"
#include "agent/thread/size_counts.h"
#include "format/record.h"

#include "agent/sys/poison.h"

/* Size counts are copied when that many objects have come since the last copy:
 * few at first, then as many as there were.  A copy takes as long as some
 * hundred allocations. */
#define CLASSES_OBJECTS_MIN 512u
#define CLASSES_OBJECTS_MAX 16384u
#define CLASSES_BYTES       (8u << 20)

static void write_copy(struct sp_slot_owner *slot, struct sp_slot *to,
		       uint64_t bytes, uint64_t objects)
{
	struct sp_slot_copy c = {
		.seq = ++slot->seq,
		.alloc_bytes = bytes,
		.alloc_objects = objects,
		.base_bytes = sp_slot_owner_get(&slot->base_bytes),
		.base_objects = sp_slot_owner_get(&slot->base_objects),
		.thread = atomic_load_explicit(&slot->thread,
					       memory_order_relaxed),
		.tid = sp_slot_owner_get(&slot->tid),
	};
	uint8_t *at = (uint8_t *)&to->copy[c.seq & 1];

	c.check = sp_format_check(sp_writer_file_id(), SP_CHECK_SLOT, &c,
				  sizeof(c));
	memcpy(at, &c, sizeof(c) - sizeof(c.check));
	atomic_thread_fence(memory_order_release);
	memcpy(at + sizeof(c) - sizeof(c.check), &c.check, sizeof(c.check));
}

void sp_slots_copy_totals(struct sp_slot_owner *slot, bool is_ahead)
{
	struct sp_slot *to =
		sp_writer_slot((unsigned int)(slot - sp_slot_owners));
	struct sp_slots_totals now;
	uint64_t bytes, objects;
	unsigned int changes;

	if (!to)
		return;
	do {
		if (!sp_inside_hold(&slot->busy))
			return;
		changes = atomic_load(&slot->changes);
		bytes = atomic_load(&slot->bytes);
		objects = atomic_load(&slot->objects);
		now = is_ahead ? sp_slots_total_of(slot, 0)
			       : sp_slots_total_added(slot);
		if (!(changes & 1))
			write_copy(slot, to, now.bytes, now.objects);
		sp_inside_give(&slot->busy);
	} while (atomic_load(&slot->bytes) != bytes ||
		 atomic_load(&slot->objects) != objects ||
		 atomic_load(&slot->changes) != changes);
}

/* The totals are looked at before the size counts: what is added in between
 * counts towards the next copy. */
static void write_counts(struct sp_slot_owner *slot,
			 const struct sp_size_counts *counts, uint8_t *to)
{
	uint64_t bytes = atomic_load(&slot->bytes);
	uint64_t objects = atomic_load(&slot->objects);

	sp_size_counts_write(counts, sp_writer_file_id(),
			     (uint64_t)(slot - sp_slot_owners),
			     ++slot->counts_seq, to);
	atomic_store_explicit(&slot->counts_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->counts_objects, objects,
			      memory_order_relaxed);
}

static void copy_counts(struct sp_slot_owner *slot)
{
	const struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_acquire);
	uint8_t *to;

	if (!counts || atomic_load(&slot->is_stale))
		return;
	to = sp_writer_class_pages((unsigned int)(slot - sp_slot_owners));
	if (!to)
		return;
	atomic_store(&slot->counts_wanted, 1);
	while (atomic_load(&slot->counts_wanted) &&
	       sp_inside_hold(&slot->counts_busy)) {
		atomic_store(&slot->counts_wanted, 0);
		write_counts(slot, counts, to);
		sp_inside_give(&slot->counts_busy);
	}
}

static bool are_counts_due(const struct sp_slot_owner *slot)
{
	uint64_t before = sp_slot_owner_get(&slot->counts_objects);
	uint64_t objects = sp_slot_owner_get(&slot->objects) - before;

	if (sp_slot_owner_get(&slot->bytes) -
		    sp_slot_owner_get(&slot->counts_bytes) >=
	    CLASSES_BYTES)
		return true;
	return objects >= CLASSES_OBJECTS_MAX ||
	       (objects >= CLASSES_OBJECTS_MIN && objects >= before);
}

void sp_slots_copy_size_counts(uint16_t slot)
{
	copy_counts(&sp_slot_owners[slot]);
}

void sp_slots_copy_due_size_counts(struct sp_slot_owner *slot)
{
	if (are_counts_due(slot))
		copy_counts(slot);
}

void sp_slots_copy_all(void)
{
	unsigned int n = atomic_load(&sp_slot_owners_used);

	for (unsigned int i = 0; i <= n; i++)
		sp_slots_copy_totals(&sp_slot_owners[i], true);
}

void sp_slots_copy_all_size_counts(void)
{
	unsigned int n = atomic_load(&sp_slot_owners_used);

	for (unsigned int i = 1; i <= n; i++)
		copy_counts(&sp_slot_owners[i]);
}
