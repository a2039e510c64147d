/* SPDX-License-Identifier: MIT */
/*
 * I1  The size counts are ahead of the totals, never behind: the owner counts
 *     there first.  So what they are ahead by is what the owner has not added
 *     yet, unless `adding` is odd.
 */
#include "agent/file/slots_total.h"

#include "agent/thread/size_counts.h"

#include "agent/sys/poison.h"

/* How often a slot is looked at whose owner is adding to it. */
#define LOOKS_MAX 100u

struct sp_slots_totals sp_slots_total_added(const struct sp_slot_owner *slot)
{
	return (struct sp_slots_totals){
		.bytes = atomic_load(&slot->bytes),
		.objects = atomic_load(&slot->objects),
		.unsampled_bytes = atomic_load(&slot->unsampled_bytes),
		.unsampled_objects = atomic_load(&slot->unsampled_objects),
	};
}

/* What the owner has not added yet, by its size counts. */
static struct sp_class_total read_ahead(const struct sp_slots_totals *known,
					const struct sp_size_counts *counts)
{
	const struct sp_class_total all = sp_size_counts_sum(counts, NULL);

	if (all.bytes <= known->bytes || all.objects <= known->objects)
		return (struct sp_class_total){0, 0};
	return (struct sp_class_total){all.bytes - known->bytes,
				       all.objects - known->objects};
}

static void add_ahead(struct sp_slots_totals *totals,
		      const struct sp_class_total *ahead, bool is_unsampled)
{
	totals->bytes += ahead->bytes;
	totals->objects += ahead->objects;
	if (!is_unsampled)
		return;
	totals->unsampled_bytes += ahead->bytes;
	totals->unsampled_objects += ahead->objects;
}

struct sp_slots_totals sp_slots_total_of(const struct sp_slot_owner *slot,
					 uint64_t check_in_bytes)
{
	const struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_acquire);
	struct sp_slots_totals totals;
	struct sp_class_total ahead;
	unsigned int before, tries = 0;
	bool is_unsampled;

	if (!counts || atomic_load(&slot->is_stale)) {
		totals = sp_slots_total_added(slot);
		if (atomic_load(&slot->owned))
			totals.slack_bytes = check_in_bytes;
		return totals;
	}
	do {
		before = atomic_load(&slot->adding);
		is_unsampled = atomic_load(&slot->is_unsampled);
		totals = sp_slots_total_added(slot);
		ahead = read_ahead(&totals, counts);
	} while ((before & 1 || atomic_load(&slot->adding) != before) &&
		 ++tries < LOOKS_MAX);
	/* The owner is held up in there: all of it may be in doubt. */
	if (tries == LOOKS_MAX)
		totals.slack_bytes = ahead.bytes;
	add_ahead(&totals, &ahead, is_unsampled);
	if (totals.unsampled_bytes > totals.bytes)
		totals.unsampled_bytes = totals.bytes;
	if (totals.unsampled_objects > totals.objects)
		totals.unsampled_objects = totals.objects;
	return totals;
}

void sp_slots_total(struct sp_slots_totals *ret, uint64_t check_in_bytes)
{
	unsigned int n = atomic_load(&sp_slot_owners_used);

	*ret = sp_slots_total_added(&sp_slot_owners[0]);
	ret->slack_bytes = atomic_load(&sp_slot_owners_none) * check_in_bytes;
	for (unsigned int i = 1; i <= n; i++) {
		struct sp_slots_totals one =
			sp_slots_total_of(&sp_slot_owners[i], check_in_bytes);

		ret->bytes += one.bytes;
		ret->objects += one.objects;
		ret->unsampled_bytes += one.unsampled_bytes;
		ret->unsampled_objects += one.unsampled_objects;
		ret->slack_bytes += one.slack_bytes;
	}
}

/* What it has allocated since it added is known, and is less than its step. */
static uint64_t unseen_of(const struct sp_slot_owner *slot)
{
	uint64_t step = atomic_load(&slot->step_bytes);
	uint64_t before = atomic_load(&slot->bytes);
	uint64_t ahead = sp_slots_total_of(slot, 0).bytes - before;

	return step > ahead ? step - ahead : 0;
}

uint64_t sp_slots_total_unseen(uint16_t mine, uint64_t check_in_bytes)
{
	unsigned int n = atomic_load(&sp_slot_owners_used);
	unsigned int others = atomic_load(&sp_slot_owners_none);
	uint64_t bytes;

	bytes = (others - (!mine && others)) * check_in_bytes;
	for (unsigned int i = 1; i <= n; i++)
		if (i != mine && atomic_load(&sp_slot_owners[i].owned))
			bytes += unseen_of(&sp_slot_owners[i]);
	return bytes;
}
