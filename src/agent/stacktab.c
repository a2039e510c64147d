/* SPDX-License-Identifier: MIT */
/*
 * A fixed array of buckets, each a list that only grows at its head; lookups
 * and inserts take no lock.
 *
 * I1  An entry is complete, and its STACK record committed, before it is
 *     published by the compare-and-swap of the head (release; pairs with the
 *     acquire loads of the walk).
 * I2  Two threads that intern the same new stack at the same moment may both
 *     write a record; one entry wins, the other's id is never used.
 */
#include "agent/stacktab.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/arena.h"
#include "agent/diag.h"
#include "agent/writer.h"
#include "base/hash.h"

#include "agent/poison.h"

#define BUCKETS 32768u /* a power of two; 256 KiB, touched as used */

struct entry {
	struct entry *next;
	uint64_t hash;
	uint32_t id;
	uint32_t n;
	uint32_t flags;
	uint32_t generation; /* of the file that has its record */
	struct sp_record_frame frames[];
};

static _Atomic(struct entry *) buckets[BUCKETS];
static _Atomic uint32_t last_id;
static _Atomic uint32_t generation; /* changes in a forked child */

static uint64_t hash_stack(const struct sp_record_frame *frames, unsigned int n,
			   uint32_t flags)
{
	uint64_t h = sp_hash_word(flags, n);

	for (unsigned int i = 0; i < n; i++)
		h = sp_hash_word(h, frames[i].offset ^
					    ((uint64_t)frames[i].module << 48));
	return h;
}

static bool same_stack(const struct entry *e,
		       const struct sp_record_frame *frames, unsigned int n,
		       uint32_t flags)
{
	if (e->n != n || e->flags != flags)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (e->frames[i].module != frames[i].module ||
		    e->frames[i].offset != frames[i].offset)
			return false;
	return true;
}

static struct entry *find(struct entry *from, uint64_t hash,
			  const struct sp_lane *lane, unsigned int n,
			  uint32_t flags)
{
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);

	for (struct entry *e = from; e; e = e->next)
		if (e->hash == hash && e->generation == now &&
		    same_stack(e, lane->frames, n, flags))
			return e;
	return NULL;
}

static struct entry *make(struct sp_lane *lane, uint64_t hash, unsigned int n,
			  uint32_t flags)
{
	struct entry *e = sp_arena_get(sizeof(*e) + n * sizeof(e->frames[0]));

	if (!e)
		return NULL;
	e->hash = hash;
	e->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) +
		1;
	e->n = n;
	e->flags = flags;
	e->generation = atomic_load_explicit(&generation, memory_order_relaxed);
	for (unsigned int i = 0; i < n; i++)
		e->frames[i] = lane->frames[i];
	return sp_writer_stack(lane, e->id, flags, n) ? e : NULL;
}

uint32_t sp_stacktab_intern(struct sp_lane *lane, unsigned int n,
			    uint32_t flags)
{
	uint64_t hash = hash_stack(lane->frames, n, flags);
	_Atomic(struct entry *) *bucket = &buckets[(hash >> 32) % BUCKETS];
	struct entry *head = atomic_load_explicit(bucket, memory_order_acquire);
	struct entry *e = find(head, hash, lane, n, flags);

	if (e)
		return e->id;
	e = make(lane, hash, n, flags);
	if (!e) {
		sp_diag_lose(SP_LOSS_STACK_TABLE, 1);
		return 0;
	}
	do {
		struct entry *other = find(head, hash, lane, n, flags);

		if (other)
			return other->id;
		e->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		bucket, &head, e, memory_order_acq_rel, memory_order_acquire));
	return e->id;
}

void sp_stacktab_reset(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	atomic_store_explicit(&last_id, 0, memory_order_relaxed);
}
