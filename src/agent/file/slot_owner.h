/* SPDX-License-Identifier: MIT */
/* Inside of the slots: what slots.c writes, slots_copy.c copies to the file and
 * slots_total.c adds up. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/thread/inside.h"
#include "format/layout.h"

struct sp_size_counts;

struct sp_slot_owner {
	_Atomic uint64_t bytes;
	_Atomic uint64_t objects;
	sp_inside_lock busy;
	sp_inside_lock owned;
	/* Written by the owner when it claims or gives back (slots_copy.c,
	 * I2). */
	_Atomic unsigned int changes;
	_Atomic uint64_t base_bytes;
	_Atomic uint64_t base_objects;
	_Atomic uint64_t tid;
	_Atomic unsigned long pthread;
	_Atomic uint32_t thread;
	/* Of the totals: what the owner, or the process for slot 0, allocated
	 * while it was not sampling. */
	_Atomic uint64_t unsampled_bytes;
	_Atomic uint64_t unsampled_objects;
	_Atomic bool is_unsampled;
	_Atomic unsigned int adding; /* odd: the owner is (slots_total.c) */
	/* The owner's: sp_slots_set_step, sp_slots_check_in. */
	_Atomic uint64_t step_bytes;
	_Atomic uint64_t checked_in_ns;
	/* Written under `busy`. */
	uint64_t seq;
	char name[SP_FORMAT_THREAD_NAME_MAX];

	/* The first owner's, for good.  In a forked child it has the parent's
	 * counts until it is claimed. */
	_Atomic(struct sp_size_counts *) counts;
	_Atomic bool is_stale;
	sp_inside_lock counts_busy;
	_Atomic unsigned int counts_wanted;
	/* Written under `counts_busy`. */
	uint64_t counts_seq;
	_Atomic uint64_t counts_bytes; /* totals of the last copy */
	_Atomic uint64_t counts_objects;
};

extern struct sp_slot_owner sp_slot_owners[SP_FORMAT_SLOTS]
	__attribute__((visibility("hidden")));

/* Slots that were ever claimed are 1 to used; threads that share slot 0. */
extern _Atomic unsigned int sp_slot_owners_used
	__attribute__((visibility("hidden")));
extern _Atomic unsigned int sp_slot_owners_none
	__attribute__((visibility("hidden")));

static inline uint64_t sp_slot_owner_get(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}
