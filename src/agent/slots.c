/* SPDX-License-Identifier: MIT */
/*
 * I1  A slot's totals only grow.
 * I2  The copy in the file is written under `busy`, a try-lock.  Whoever cannot
 *     have it goes away: the holder looks at the totals again after giving it
 *     back, and both orders of (add, look) and (give back, look again) are
 *     sequentially consistent, so the last totals always reach the file.
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
	/* Written by the owner when it claims or gives back. */
	uint64_t base_bytes;
	uint64_t base_objects;
	uint64_t tid;
	unsigned long pthread;
	uint32_t thread;
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

static void write_copy(struct sp_slot_owner *slot, struct sp_slot *to,
		       uint64_t bytes, uint64_t objects)
{
	struct sp_slot_copy c = {
		.seq = ++slot->seq,
		.alloc_bytes = bytes,
		.alloc_objects = objects,
		.base_bytes = slot->base_bytes,
		.base_objects = slot->base_objects,
		.thread = slot->thread,
		.tid = slot->tid,
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

	if (!to)
		return;
	do {
		if (atomic_exchange(&slot->busy, 1))
			return;
		bytes = atomic_load(&slot->bytes);
		objects = atomic_load(&slot->objects);
		write_copy(slot, to, bytes, objects);
		atomic_exchange(&slot->busy, 0);
	} while (atomic_load(&slot->bytes) != bytes ||
		 atomic_load(&slot->objects) != objects);
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
		slot->base_bytes = atomic_load(&slot->bytes);
		slot->base_objects = atomic_load(&slot->objects);
		slot->tid = sp_slots_tid();
		slot->pthread = (unsigned long)pthread_self();
		slot->thread = index;
		slot->name[0] = '\0';
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
	slot->base_bytes = atomic_load(&slot->bytes);
	slot->base_objects = atomic_load(&slot->objects);
	slot->thread = 0;
	slot->pthread = 0;
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

		if (slot->pthread != pthread || atomic_exchange(&slot->busy, 1))
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
