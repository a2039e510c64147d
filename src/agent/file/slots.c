/* SPDX-License-Identifier: MIT */
/*
 * I1  A slot's totals only grow.
 * I2  The copy in the file is written under `busy`, a try-lock.  A thread that
 *     cannot take it does nothing: the holder reads the totals and `changes`
 *     again after it has released `busy`, and both orders of (change, read) and
 *     (release, read again) are sequentially consistent, so the last state
 *     always reaches the file.
 * I3  `changes` is odd while the owner's fields are being replaced: no copy is
 *     made then, since the thread that replaces them flushes afterwards.
 * I4  The copy of the size counts is written under `counts_busy`.  A thread
 * that wants a copy sets a flag first, and the holder reads the flag after it
 * has released the lock: as in I2, the last state reaches the file. I5  The
 * size counts are ahead of the totals, never behind: the owner counts there
 * first.  So what they are ahead by is what the owner has not added yet, unless
 * `adding` is odd.
 */
#include "agent/file/slots.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/file/names.h"
#include "agent/file/writer.h"
#include "agent/sys/arena.h"
#include "agent/sys/diag.h"
#include "agent/sys/tid.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/inside.h"
#include "agent/unwind/stack_bounds.h"
#include "format/record.h"

#include "agent/sys/poison.h"

/* Size counts are copied when that many objects have come since the last copy:
 * few at first, then as many as there were.  A copy takes as long as some
 * hundred allocations. */
#define CLASSES_OBJECTS_MIN 512u
#define CLASSES_OBJECTS_MAX 16384u
#define CLASSES_BYTES       (8u << 20)

/* How often a slot is looked at whose owner is adding to it. */
#define LOOKS_MAX 100u

struct owner {
	_Atomic uint64_t bytes;
	_Atomic uint64_t objects;
	sp_inside_lock busy;
	sp_inside_lock owned;
	/* Written by the owner when it claims or gives back (I3). */
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
	_Atomic unsigned int adding; /* odd: the owner is (I5) */
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

static struct owner slots[SP_FORMAT_SLOTS];
static _Atomic unsigned int used; /* slots that were ever claimed: 1..used */
static _Atomic unsigned int slotless; /* threads that share slot 0 */

static uint64_t get_field(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* A new owner, or none: what it adds counts from here on. */
static void set_owner(struct owner *slot, uint32_t thread,
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

static void write_copy(struct owner *slot, struct sp_slot *to, uint64_t bytes,
		       uint64_t objects)
{
	struct sp_slot_copy c = {
		.seq = ++slot->seq,
		.alloc_bytes = bytes,
		.alloc_objects = objects,
		.base_bytes = get_field(&slot->base_bytes),
		.base_objects = get_field(&slot->base_objects),
		.thread = atomic_load_explicit(&slot->thread,
					       memory_order_relaxed),
		.tid = get_field(&slot->tid),
	};
	uint8_t *at = (uint8_t *)&to->copy[c.seq & 1];

	c.check = sp_format_check(sp_writer_file_id(), SP_CHECK_SLOT, &c,
				  sizeof(c));
	memcpy(at, &c, sizeof(c) - sizeof(c.check));
	atomic_thread_fence(memory_order_release);
	memcpy(at + sizeof(c) - sizeof(c.check), &c.check, sizeof(c.check));
}

/* One slot without its size counts. */
static struct sp_slots_totals read_slot(const struct owner *slot)
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

/* One slot, up to now. */
static struct sp_slots_totals look_at(const struct owner *slot,
				      uint64_t check_in_bytes)
{
	const struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_acquire);
	struct sp_slots_totals totals;
	struct sp_class_total ahead;
	unsigned int before, tries = 0;
	bool is_unsampled;

	if (!counts || atomic_load(&slot->is_stale)) {
		totals = read_slot(slot);
		if (atomic_load(&slot->owned))
			totals.slack_bytes = check_in_bytes;
		return totals;
	}
	do {
		before = atomic_load(&slot->adding);
		is_unsampled = atomic_load(&slot->is_unsampled);
		totals = read_slot(slot);
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

/* Its totals to the file; with what the owner has not added yet, or without:
 * then the owner's next copy has no less. */
static void flush_totals(struct owner *slot, bool is_ahead)
{
	struct sp_slot *to = sp_writer_slot((unsigned int)(slot - slots));
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
		now = is_ahead ? look_at(slot, 0) : read_slot(slot);
		if (!(changes & 1))
			write_copy(slot, to, now.bytes, now.objects);
		sp_inside_give(&slot->busy);
	} while (atomic_load(&slot->bytes) != bytes ||
		 atomic_load(&slot->objects) != objects ||
		 atomic_load(&slot->changes) != changes);
}

/* The totals are looked at before the size counts: what is added in between
 * counts towards the next copy. */
static void write_counts(struct owner *slot,
			 const struct sp_size_counts *counts, uint8_t *to)
{
	uint64_t bytes = atomic_load(&slot->bytes);
	uint64_t objects = atomic_load(&slot->objects);

	sp_size_counts_write(counts, sp_writer_file_id(),
			     (uint64_t)(slot - slots), ++slot->counts_seq, to);
	atomic_store_explicit(&slot->counts_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->counts_objects, objects,
			      memory_order_relaxed);
}

static void flush_counts(struct owner *slot)
{
	const struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_acquire);
	uint8_t *to;

	if (!counts || atomic_load(&slot->is_stale))
		return;
	to = sp_writer_class_pages((unsigned int)(slot - slots));
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

static bool are_counts_due(const struct owner *slot)
{
	uint64_t before = get_field(&slot->counts_objects);
	uint64_t objects = get_field(&slot->objects) - before;

	if (get_field(&slot->bytes) - get_field(&slot->counts_bytes) >=
	    CLASSES_BYTES)
		return true;
	return objects >= CLASSES_OBJECTS_MAX ||
	       (objects >= CLASSES_OBJECTS_MIN && objects >= before);
}

uint16_t sp_slots_claim(uint32_t index)
{
	for (unsigned int i = 1; i < SP_FORMAT_SLOTS; i++) {
		struct owner *slot = &slots[i];
		unsigned int most = atomic_load(&used);

		if (atomic_load_explicit(&slot->owned, memory_order_relaxed) ||
		    !sp_inside_hold(&slot->owned))
			continue;
		while (most < i &&
		       !atomic_compare_exchange_weak(&used, &most, i))
			;
		set_owner(slot, index, (unsigned long)pthread_self(),
			  sp_tid_own());
		sp_names_get(sp_tid_own(), slot->name);
		sp_names_forget(sp_tid_own());
		/* A reader knows from now on what may be missing. */
		flush_totals(slot, false);
		return (uint16_t)i;
	}
	atomic_fetch_add(&slotless, 1);
	sp_diag_lose(SP_LOSS_NO_SLOT, 1);
	return 0;
}

static_assert(SP_FORMAT_SLOTS * sizeof(struct sp_size_counts) <
		      SP_ARENA_CLASSES_BYTES,
	      "each slot has size counts");

struct sp_size_counts *sp_slots_size_counts(uint16_t n)
{
	struct owner *slot = &slots[n];
	struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_relaxed);

	if (!n)
		return NULL;
	if (!counts) {
		/* Too late for a slot that has totals already (I5). */
		if (!get_field(&slot->bytes))
			counts =
				sp_arena_get(SP_ARENA_CLASSES, sizeof(*counts));
		if (!counts)
			sp_diag_lose(SP_LOSS_CLASS_TOTALS, 1);
	} else if (atomic_load(&slot->is_stale)) {
		memset(counts, 0, sizeof(*counts));
	}
	atomic_store_explicit(&slot->counts, counts, memory_order_release);
	atomic_store(&slot->is_stale, false);
	return counts;
}

void sp_slots_add(uint16_t n, uint64_t bytes, uint64_t objects)
{
	struct owner *slot = &slots[n];

	atomic_fetch_add(&slot->adding, 1);
	/* First the part, then the whole: look_at may find one alone. */
	if (atomic_load(&slot->is_unsampled)) {
		atomic_fetch_add(&slot->unsampled_bytes, bytes);
		atomic_fetch_add(&slot->unsampled_objects, objects);
	}
	atomic_fetch_add(&slot->bytes, bytes);
	atomic_fetch_add(&slot->objects, objects);
	atomic_fetch_add(&slot->adding, 1);
	flush_totals(slot, false);
	if (are_counts_due(slot))
		flush_counts(slot);
}

void sp_slots_set_step(uint16_t n, uint64_t step_bytes)
{
	atomic_store(&slots[n].step_bytes, step_bytes);
}

uint64_t sp_slots_check_in(uint16_t n, uint64_t now_ns)
{
	uint64_t before = get_field(&slots[n].checked_in_ns);

	atomic_store_explicit(&slots[n].checked_in_ns, now_ns,
			      memory_order_relaxed);
	return now_ns - before;
}

/* What it has allocated since it added is known, and is less than its step. */
static uint64_t unseen_of(const struct owner *slot)
{
	uint64_t step = atomic_load(&slot->step_bytes);
	uint64_t before = atomic_load(&slot->bytes);
	uint64_t ahead = look_at(slot, 0).bytes - before;

	return step > ahead ? step - ahead : 0;
}

uint64_t sp_slots_unseen(uint16_t mine, uint64_t check_in_bytes)
{
	unsigned int n = atomic_load(&used);
	unsigned int others = atomic_load(&slotless);
	uint64_t bytes;

	bytes = (others - (!mine && others)) * check_in_bytes;
	for (unsigned int i = 1; i <= n; i++)
		if (i != mine && atomic_load(&slots[i].owned))
			bytes += unseen_of(&slots[i]);
	return bytes;
}

void sp_slots_set_sampling(uint16_t n, bool is_sampling)
{
	atomic_store(&slots[n].is_unsampled, !is_sampling);
}

void sp_slots_flush_size_counts(uint16_t n)
{
	flush_counts(&slots[n]);
}

uint16_t sp_slots_release(uint16_t n)
{
	struct owner *slot = &slots[n];

	if (n == 0) {
		atomic_fetch_sub(&slotless, 1);
		return 0;
	}
	set_owner(slot, 0, 0, get_field(&slot->tid));
	flush_totals(slot, false);
	sp_inside_give(&slot->owned);
	return 0;
}

void sp_slots_set_name(unsigned long pthread, const char *name)
{
	const uint64_t tid = sp_tid_of(pthread);
	unsigned int n;

	/* First: it may take a slot just now. */
	sp_names_put(tid, name);
	n = atomic_load(&used);
	for (unsigned int i = 1; i <= n; i++) {
		struct owner *slot = &slots[i];
		size_t at = 0;

		if (atomic_load_explicit(&slot->pthread,
					 memory_order_relaxed) != pthread ||
		    !sp_inside_hold(&slot->busy))
			continue;
		for (; name[at] && at + 1 < sizeof(slot->name); at++)
			slot->name[at] = name[at];
		slot->name[at] = '\0';
		sp_inside_give(&slot->busy);
		sp_names_forget(tid);
		return;
	}
}

void sp_slots_name(uint16_t slot, char ret[SP_FORMAT_THREAD_NAME_MAX])
{
	if (slot)
		memcpy(ret, slots[slot].name, SP_FORMAT_THREAD_NAME_MAX);
	else
		sp_names_get(sp_tid_own(), ret);
}

void sp_slots_flush_all(void)
{
	unsigned int n = atomic_load(&used);

	for (unsigned int i = 0; i <= n; i++)
		flush_totals(&slots[i], true);
}

void sp_slots_flush_all_size_counts(void)
{
	unsigned int n = atomic_load(&used);

	for (unsigned int i = 1; i <= n; i++)
		flush_counts(&slots[i]);
}

void sp_slots_total(struct sp_slots_totals *ret, uint64_t check_in_bytes)
{
	unsigned int n = atomic_load(&used);

	*ret = read_slot(&slots[0]);
	ret->slack_bytes = atomic_load(&slotless) * check_in_bytes;
	for (unsigned int i = 1; i <= n; i++) {
		struct sp_slots_totals one = look_at(&slots[i], check_in_bytes);

		ret->bytes += one.bytes;
		ret->objects += one.objects;
		ret->unsampled_bytes += one.unsampled_bytes;
		ret->unsampled_objects += one.unsampled_objects;
		ret->slack_bytes += one.slack_bytes;
	}
}

/* What is greater: the size counts are behind if a signal handler has left a
 * count between the two. */
static uint64_t later_count(uint64_t by_size, uint64_t slot)
{
	return by_size > slot ? by_size : slot;
}

void sp_slots_give_left(uint16_t mine)
{
	const unsigned int n = atomic_load(&used);

	for (unsigned int i = 0; i <= n; i++) {
		struct owner *slot = &slots[i];

		sp_inside_give_left(&slot->busy);
		sp_inside_give_left(&slot->counts_busy);
		if (atomic_load(&slot->owned) != &sp_thread)
			continue;
		if (atomic_load(&slot->adding) & 1)
			atomic_fetch_add(&slot->adding, 1);
		if (atomic_load(&slot->changes) & 1)
			atomic_fetch_add(&slot->changes, 1);
		if (i != mine)
			sp_slots_release((uint16_t)i);
	}
}

bool sp_slots_own(uint16_t n, struct sp_slots_own *ret)
{
	struct owner *slot = &slots[n];
	struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_relaxed);
	struct sp_class_total sum;
	uint64_t bytes, objects;

	if (!n || !counts || atomic_load(&slot->is_stale))
		return false;
	sum = sp_size_counts_sum(counts, NULL);
	bytes = get_field(&slot->bytes);
	objects = get_field(&slot->objects);
	*ret = (struct sp_slots_own){
		.counts = counts,
		.bytes = later_count(sum.bytes, bytes) -
			 get_field(&slot->base_bytes),
		.objects = later_count(sum.objects, objects) -
			   get_field(&slot->base_objects),
		.added_bytes = bytes - get_field(&slot->base_bytes),
		.added_objects = objects - get_field(&slot->base_objects),
	};
	return true;
}

/* One that ended unseen has left its memory. */
bool sp_slots_any_owner(bool (*test)(struct sp_thread *))
{
	for (unsigned int i = 1; i <= atomic_load(&used); i++) {
		uintptr_t t = (uintptr_t)atomic_load(&slots[i].owned);

		if (t && sp_stack_bounds_probe(t) && test((void *)t))
			return true;
	}
	return false;
}

void sp_slots_reset(void)
{
	unsigned int n = atomic_load(&used);

	for (unsigned int i = 0; i <= n; i++) {
		struct sp_size_counts *counts = atomic_load_explicit(
			&slots[i].counts, memory_order_relaxed);

		memset(&slots[i], 0, sizeof(slots[i]));
		/* A thread in the middle of counting there may go on. */
		atomic_store_explicit(&slots[i].counts, counts,
				      memory_order_relaxed);
		atomic_store(&slots[i].is_stale, true);
	}
	atomic_store(&used, 0);
	atomic_store(&slotless, 0);
}
