/* SPDX-License-Identifier: MIT */
/*
 * I1  A slot's totals only grow.
 * I2  Each thread that has counted anything since the profile began owns a
 *     slot, or a place beside those that share slot 0, or is one of
 *     `unknown_threads`.  Until sp_slots_claim a thread holds only `owned`, and
 *     detach may reset that.
 */
#include "agent/file/slots.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/file/names.h"
#include "agent/file/slots_copy.h"
#include "agent/sys/arena.h"
#include "agent/sys/diag.h"
#include "agent/sys/tid.h"
#include "agent/thread/inside.h"
#include "agent/thread/size_counts.h"
#include "agent/unwind/stack_bounds.h"

#include "agent/sys/poison.h"

/* Linux has no more threads. */
#define SHARERS_MAX (1u << 22)

struct sp_slot_owner sp_slot_owners[SP_FORMAT_SLOTS];
_Atomic unsigned int sp_slot_owners_used;
_Atomic unsigned int sp_slot_owners_none;

/*
 * Who shares slot 0: places 0 to sharers_used were ever held, of sharers_room
 * that there are.  Places come in blocks, which stay.
 */
#define BLOCK_SHARERS 4096u
static sp_inside_lock first_sharers[BLOCK_SHARERS];
static _Atomic(sp_inside_lock *) more_sharers[SHARERS_MAX / BLOCK_SHARERS];
static _Atomic unsigned int sharers_room = BLOCK_SHARERS;
static _Atomic unsigned int sharers_used;
static _Atomic unsigned int unknown_threads; /* without a place */

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

/* The first of words [from, end) that nobody owns; end: there is none. */
static unsigned int hold_word(sp_inside_lock *(*word_of)(unsigned int),
			      unsigned int from, unsigned int end,
			      _Atomic unsigned int *used)
{
	for (unsigned int i = from; i < end; i++) {
		sp_inside_lock *word = word_of(i);
		unsigned int most = atomic_load(used);

		if (atomic_load_explicit(word, memory_order_relaxed) ||
		    !sp_inside_hold(word))
			continue;
		while (most < i &&
		       !atomic_compare_exchange_weak(used, &most, i))
			;
		return i;
	}
	return end;
}

static sp_inside_lock *word_of_slot(unsigned int i)
{
	return &sp_slot_owners[i].owned;
}

static sp_inside_lock *word_of_sharer(unsigned int i)
{
	const unsigned int block = i / BLOCK_SHARERS;

	return (block ? atomic_load(&more_sharers[block]) : first_sharers) +
	       i % BLOCK_SHARERS;
}

/* More places than `room`, unless another thread just made them. */
static bool add_sharers(unsigned int room)
{
	const unsigned int block = room / BLOCK_SHARERS;
	sp_inside_lock *none = NULL, *words;

	if (room == SHARERS_MAX)
		return false;
	if (!atomic_load(&more_sharers[block])) {
		words = sp_arena_get(SP_ARENA_SHARERS,
				     BLOCK_SHARERS * sizeof(*words));
		if (!words)
			return false;
		atomic_compare_exchange_strong(&more_sharers[block], &none,
					       words);
	}
	atomic_compare_exchange_strong(&sharers_room, &room,
				       room + BLOCK_SHARERS);
	return true;
}

static bool hold_sharer(void)
{
	unsigned int room, from = 0;

	do {
		room = atomic_load(&sharers_room);
		if (hold_word(word_of_sharer, from, room, &sharers_used) < room)
			return true;
		from = room;
	} while (add_sharers(room));
	return false;
}

uint16_t sp_slots_hold(void)
{
	unsigned int n = hold_word(word_of_slot, 1, SP_FORMAT_SLOTS,
				   &sp_slot_owners_used);

	if (n < SP_FORMAT_SLOTS)
		return (uint16_t)n;
	if (!hold_sharer())
		atomic_fetch_add(&unknown_threads, 1);
	return 0;
}

static void give_sharer(void)
{
	const unsigned int n = atomic_load(&sharers_used);

	for (unsigned int i = 0; i <= n; i++)
		if (atomic_load(word_of_sharer(i)) == &sp_thread) {
			sp_inside_give(word_of_sharer(i));
			return;
		}
	atomic_fetch_sub(&unknown_threads, 1);
}

void sp_slots_let_go(uint16_t n)
{
	if (n)
		sp_inside_give_left(&sp_slot_owners[n].owned);
	else
		give_sharer();
}

void sp_slots_claim(uint16_t n, uint32_t index)
{
	struct sp_slot_owner *slot = &sp_slot_owners[n];

	if (!n) {
		atomic_fetch_add(&sp_slot_owners_none, 1);
		sp_diag_lose(SP_LOSS_NO_SLOT, 1);
		return;
	}
	set_owner(slot, index, (unsigned long)pthread_self(), sp_tid_own());
	sp_names_get(sp_tid_own(), slot->name);
	sp_names_forget(sp_tid_own());
	/* A reader knows from now on what may be missing. */
	sp_slots_copy_totals(slot, false);
}

static_assert(SP_FORMAT_SLOTS * sizeof(struct sp_size_counts) <
		      SP_ARENA_CLASSES_BYTES,
	      "each slot has size counts");

struct sp_size_counts *sp_slots_size_counts(uint16_t n)
{
	struct sp_slot_owner *slot = &sp_slot_owners[n];
	struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_relaxed);

	if (!n)
		return NULL;
	if (!counts) {
		/* Too late for a slot that has totals already (slots_total.c,
		 * I1).
		 */
		if (!sp_slot_owner_get(&slot->bytes))
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
	struct sp_slot_owner *slot = &sp_slot_owners[n];

	atomic_fetch_add(&slot->adding, 1);
	/* First the part, then the whole: sp_slots_total_of may find one
	 * alone. */
	if (atomic_load(&slot->is_unsampled)) {
		atomic_fetch_add(&slot->unsampled_bytes, bytes);
		atomic_fetch_add(&slot->unsampled_objects, objects);
	}
	atomic_fetch_add(&slot->bytes, bytes);
	atomic_fetch_add(&slot->objects, objects);
	atomic_fetch_add(&slot->adding, 1);
	sp_slots_copy_totals(slot, false);
	sp_slots_copy_due_size_counts(slot);
}

void sp_slots_set_step(uint16_t n, uint64_t step_bytes)
{
	atomic_store(&sp_slot_owners[n].step_bytes, step_bytes);
}

uint64_t sp_slots_check_in(uint16_t n, uint64_t now_ns)
{
	uint64_t before = sp_slot_owner_get(&sp_slot_owners[n].checked_in_ns);

	atomic_store_explicit(&sp_slot_owners[n].checked_in_ns, now_ns,
			      memory_order_relaxed);
	return now_ns - before;
}

void sp_slots_set_sampling(uint16_t n, bool is_sampling)
{
	atomic_store(&sp_slot_owners[n].is_unsampled, !is_sampling);
}

uint16_t sp_slots_release(uint16_t n)
{
	struct sp_slot_owner *slot = &sp_slot_owners[n];

	if (n == 0) {
		atomic_fetch_sub(&sp_slot_owners_none, 1);
		give_sharer();
		return 0;
	}
	set_owner(slot, 0, 0, sp_slot_owner_get(&slot->tid));
	sp_slots_copy_totals(slot, false);
	sp_inside_give(&slot->owned);
	return 0;
}

void sp_slots_set_name(unsigned long pthread, const char *name)
{
	const uint64_t tid = sp_tid_of(pthread);
	unsigned int n;

	/* First: it may take a slot just now. */
	sp_names_put(tid, name);
	n = atomic_load(&sp_slot_owners_used);
	for (unsigned int i = 1; i <= n; i++) {
		struct sp_slot_owner *slot = &sp_slot_owners[i];
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
		memcpy(ret, sp_slot_owners[slot].name,
		       SP_FORMAT_THREAD_NAME_MAX);
	else
		sp_names_get(sp_tid_own(), ret);
}

/* The greater of the two: a signal handler that left between the two counts
 * has left the size counts behind. */
static uint64_t later_count(uint64_t by_size, uint64_t slot)
{
	return by_size > slot ? by_size : slot;
}

void sp_slots_give_left(uint16_t mine)
{
	const unsigned int n = atomic_load(&sp_slot_owners_used);

	for (unsigned int i = 0; i <= n; i++) {
		struct sp_slot_owner *slot = &sp_slot_owners[i];

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
	struct sp_slot_owner *slot = &sp_slot_owners[n];
	struct sp_size_counts *counts =
		atomic_load_explicit(&slot->counts, memory_order_relaxed);
	struct sp_class_total sum;
	uint64_t bytes, objects;

	if (!n || !counts || atomic_load(&slot->is_stale))
		return false;
	sum = sp_size_counts_sum(counts, NULL);
	bytes = sp_slot_owner_get(&slot->bytes);
	objects = sp_slot_owner_get(&slot->objects);
	*ret = (struct sp_slots_own){
		.counts = counts,
		.bytes = later_count(sum.bytes, bytes) -
			 sp_slot_owner_get(&slot->base_bytes),
		.objects = later_count(sum.objects, objects) -
			   sp_slot_owner_get(&slot->base_objects),
		.added_bytes = bytes - sp_slot_owner_get(&slot->base_bytes),
		.added_objects =
			objects - sp_slot_owner_get(&slot->base_objects),
	};
	return true;
}

/* One that ended unseen has left its memory. */
static bool test_owner(sp_inside_lock *word, bool (*test)(struct sp_thread *))
{
	const uintptr_t t = (uintptr_t)atomic_load(word);

	return t && sp_stack_bounds_probe(t) && test((void *)t);
}

bool sp_slots_any_owner(bool (*test)(struct sp_thread *))
{
	for (unsigned int i = 1; i <= atomic_load(&sp_slot_owners_used); i++)
		if (test_owner(word_of_slot(i), test))
			return true;
	for (unsigned int i = 0; i <= atomic_load(&sharers_used); i++)
		if (test_owner(word_of_sharer(i), test))
			return true;
	return false;
}

bool sp_slots_know_all(void)
{
	return !atomic_load(&unknown_threads);
}

void sp_slots_reset(void)
{
	unsigned int n = atomic_load(&sp_slot_owners_used);

	for (unsigned int i = 0; i <= n; i++) {
		struct sp_size_counts *counts = atomic_load_explicit(
			&sp_slot_owners[i].counts, memory_order_relaxed);

		memset(&sp_slot_owners[i], 0, sizeof(sp_slot_owners[i]));
		/* A thread in the middle of counting there may go on. */
		atomic_store_explicit(&sp_slot_owners[i].counts, counts,
				      memory_order_relaxed);
		atomic_store(&sp_slot_owners[i].is_stale, true);
	}
	atomic_store(&sp_slot_owners_used, 0);
	atomic_store(&sp_slot_owners_none, 0);
	n = atomic_load(&sharers_used);
	for (unsigned int i = 0; i <= n; i++)
		atomic_store_explicit(word_of_sharer(i), NULL,
				      memory_order_relaxed);
	atomic_store(&sharers_used, 0);
	atomic_store(&unknown_threads, 0);
}
