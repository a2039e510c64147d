/* SPDX-License-Identifier: MIT */
/*
 * I1  A slot's totals only grow.
 * I2  The copy in the file is written under `busy`, a try-lock.  Whoever cannot
 *     have it goes away: the holder looks at the totals and at `changes` again
 *     after giving it back, and both orders of (change, look) and (give back,
 *     look again) are sequentially consistent, so the last state always reaches
 *     the file.
 * I3  `changes` is odd while the owner's fields are being replaced: no copy is
 *     made then, since whoever replaces them flushes afterwards.
 */
#include "agent/slots.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/diag.h"
#include "agent/writer.h"
#include "format/record.h"

#include "agent/poison.h"

struct sp_slot_owner {
	_Atomic uint64_t bytes;
	_Atomic uint64_t objects;
	_Atomic unsigned int busy;
	_Atomic unsigned int owned;
	/* Written by the owner when it claims or gives back (I3). */
	_Atomic unsigned int changes;
	_Atomic uint64_t base_bytes;
	_Atomic uint64_t base_objects;
	_Atomic uint64_t tid;
	_Atomic unsigned long pthread;
	_Atomic uint32_t thread;
	/* Written under `busy`. */
	uint64_t seq;
	char name[SP_FORMAT_THREAD_NAME_MAX];
};

static struct sp_slot_owner slots[SP_FORMAT_SLOTS];
static _Atomic unsigned int used; /* slots that were ever claimed: 1..used */

uint64_t sp_slots_tid(void)
{
	/* A recursive mutex notes its owner. */
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	uint64_t tid;

	pthread_mutex_lock(&m);
	tid = (uint64_t)m.__data.__owner;
	pthread_mutex_unlock(&m);
	return tid;
}

static uint64_t get(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* A new owner, or none: what it adds counts from here on. */
static void set_owner(struct sp_slot_owner *slot, uint32_t thread,
		      unsigned long pthread, uint64_t tid)
{
	atomic_fetch_add(&slot->changes, 1);
	atomic_store_explicit(&slot->base_bytes, atomic_load(&slot->bytes),
			      memory_order_relaxed);
	atomic_store_explicit(&slot->base_objects, atomic_load(&slot->objects),
			      memory_order_relaxed);
	atomic_store_explicit(&slot->tid, tid, memory_order_relaxed);
	atomic_store_explicit(&slot->pthread, pthread, memory_order_relaxed);
	atomic_store_explicit(&slot->thread, thread, memory_order_relaxed);
	atomic_fetch_add(&slot->changes, 1);
}

static void write_copy(struct sp_slot_owner *slot, struct sp_slot *to,
		       uint64_t bytes, uint64_t objects)
{
	struct sp_slot_copy c = {
		.seq = ++slot->seq,
		.alloc_bytes = bytes,
		.alloc_objects = objects,
		.base_bytes = get(&slot->base_bytes),
		.base_objects = get(&slot->base_objects),
		.thread = atomic_load_explicit(&slot->thread,
					       memory_order_relaxed),
		.tid = get(&slot->tid),
	};
	uint8_t *at = (uint8_t *)&to->copy[c.seq & 1];

	c.check = sp_format_check(sp_writer_file_id(), SP_CHECK_SLOT, &c,
				  sizeof(c));
	memcpy(at, &c, sizeof(c) - sizeof(c.check));
	atomic_thread_fence(memory_order_release);
	memcpy(at + sizeof(c) - sizeof(c.check), &c.check, sizeof(c.check));
}

static void flush(struct sp_slot_owner *slot)
{
	struct sp_slot *to = sp_writer_slot((unsigned int)(slot - slots));
	uint64_t bytes, objects;
	unsigned int changes;

	if (!to)
		return;
	do {
		if (atomic_exchange(&slot->busy, 1))
			return;
		changes = atomic_load(&slot->changes);
		bytes = atomic_load(&slot->bytes);
		objects = atomic_load(&slot->objects);
		if (!(changes & 1))
			write_copy(slot, to, bytes, objects);
		atomic_exchange(&slot->busy, 0);
	} while (atomic_load(&slot->bytes) != bytes ||
		 atomic_load(&slot->objects) != objects ||
		 atomic_load(&slot->changes) != changes);
}

struct sp_slot_owner *sp_slots_claim(uint32_t index)
{
	for (unsigned int i = 1; i < SP_FORMAT_SLOTS; i++) {
		struct sp_slot_owner *slot = &slots[i];
		unsigned int most = atomic_load(&used);

		if (atomic_load_explicit(&slot->owned, memory_order_relaxed) ||
		    atomic_exchange_explicit(&slot->owned, 1,
					     memory_order_acquire))
			continue;
		while (most < i &&
		       !atomic_compare_exchange_weak(&used, &most, i))
			;
		slot->name[0] = '\0';
		set_owner(slot, index, (unsigned long)pthread_self(),
			  sp_slots_tid());
		return slot;
	}
	sp_diag_lose(SP_LOSS_NO_SLOT, 1);
	return &slots[0];
}

void sp_slots_add(struct sp_slot_owner *slot, uint64_t bytes, uint64_t objects)
{
	atomic_fetch_add(&slot->bytes, bytes);
	atomic_fetch_add(&slot->objects, objects);
	flush(slot);
}

struct sp_slot_owner *sp_slots_release(struct sp_slot_owner *slot)
{
	if (slot == &slots[0])
		return slot;
	set_owner(slot, 0, 0, get(&slot->tid));
	flush(slot);
	atomic_store_explicit(&slot->owned, 0, memory_order_release);
	return &slots[0];
}

void sp_slots_set_name(unsigned long pthread, const char *name)
{
	unsigned int n = atomic_load(&used);

	for (unsigned int i = 1; i <= n; i++) {
		struct sp_slot_owner *slot = &slots[i];
		size_t at = 0;

		if (atomic_load_explicit(&slot->pthread,
					 memory_order_relaxed) != pthread ||
		    atomic_exchange(&slot->busy, 1))
			continue;
		for (; name[at] && at + 1 < sizeof(slot->name); at++)
			slot->name[at] = name[at];
		slot->name[at] = '\0';
		atomic_exchange(&slot->busy, 0);
		return;
	}
}

const char *sp_slots_name(const struct sp_slot_owner *slot)
{
	return slot->name;
}

void sp_slots_flush_all(void)
{
	unsigned int n = atomic_load(&used);

	for (unsigned int i = 0; i <= n; i++)
		flush(&slots[i]);
}

void sp_slots_total(uint64_t *ret_bytes, uint64_t *ret_objects)
{
	unsigned int n = atomic_load(&used);

	*ret_bytes = *ret_objects = 0;
	for (unsigned int i = 0; i <= n; i++) {
		*ret_bytes += atomic_load(&slots[i].bytes);
		*ret_objects += atomic_load(&slots[i].objects);
	}
}

void sp_slots_reset(void)
{
	unsigned int n = atomic_load(&used);

	for (unsigned int i = 0; i <= n; i++)
		memset(&slots[i], 0, sizeof(slots[i]));
	atomic_store(&used, 0);
}
