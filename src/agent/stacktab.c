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
 * I3  An entry has for its key the return addresses if the stack is permanent,
 *     else the frames.  Objects that are never unloaded do not move, so a stack
 *     has one entry either way.
 */
#include "agent/stacktab.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/arena.h"
#include "agent/diag.h"
#include "agent/writer.h"
#include "base/hash.h"

#include "agent/poison.h"

#define BUCKETS 32768u /* a power of two; 256 KiB, touched as used */

/* What tells stacks apart. */
struct key {
	const uint64_t *words;
	uint32_t n_words;
	uint32_t flags;
	bool is_permanent;
	uint64_t hash;
};

struct entry {
	struct entry *next;
	uint64_t hash;
	uint32_t id;
	uint32_t n_words;
	uint32_t flags;
	uint32_t generation; /* of the file that has its record */
	bool is_permanent;
	uint64_t words[];
};

static _Atomic(struct entry *) buckets[BUCKETS];
static _Atomic uint32_t last_id;
static _Atomic uint32_t generation; /* changes in a forked child */

/* Two chains of multiplications, so that each need not wait for the other. */
static uint64_t hash_words(uint64_t h, const uint64_t *words, size_t n)
{
	uint64_t even = h, odd = ~h;
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		even = (even ^ words[i]) * SP_HASH_MULTIPLIER;
		odd = (odd ^ words[i + 1]) * SP_HASH_MULTIPLIER;
	}
	if (i < n)
		even = (even ^ words[i]) * SP_HASH_MULTIPLIER;
	return sp_hash_word(even, odd);
}

static void set_key(struct key *key, const void *words, size_t n_words,
		    const struct sp_stack_walk *walk, bool is_permanent)
{
	key->words = words;
	key->n_words = (uint32_t)n_words;
	key->flags = walk->flags;
	key->is_permanent = is_permanent;
	key->hash = hash_words(sp_hash_word(walk->flags, is_permanent), words,
			       n_words);
}

static void key_by_addresses(struct key *key, const struct sp_stack_walk *walk)
{
	static_assert(sizeof(*walk->pcs) == sizeof(uint64_t), "64 bits");
	set_key(key, walk->pcs, walk->n, walk, true);
}

static void key_by_frames(struct key *key, const struct sp_lane *lane,
			  const struct sp_stack_walk *walk)
{
	static_assert(sizeof(lane->frames[0]) == 2 * sizeof(uint64_t),
		      "no padding");
	set_key(key, lane->frames, 2 * (size_t)walk->n, walk, false);
}

static struct entry *find(struct entry *from, const struct key *key)
{
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);

	for (struct entry *e = from; e; e = e->next)
		if (e->hash == key->hash && e->generation == now &&
		    e->n_words == key->n_words && e->flags == key->flags &&
		    e->is_permanent == key->is_permanent &&
		    memcmp(e->words, key->words,
			   key->n_words * sizeof(uint64_t)) == 0)
			return e;
	return NULL;
}

static _Atomic(struct entry *) *bucket_of(const struct key *key)
{
	return &buckets[(key->hash >> 32) % BUCKETS];
}

static struct entry *make(struct sp_lane *lane, const struct key *key,
			  const struct sp_stack_walk *walk)
{
	size_t bytes = key->n_words * sizeof(uint64_t);
	struct entry *e = sp_arena_get(sizeof(*e) + bytes);

	if (!e)
		return NULL;
	e->hash = key->hash;
	e->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) +
		1;
	e->n_words = key->n_words;
	e->flags = key->flags;
	e->is_permanent = key->is_permanent;
	e->generation = atomic_load_explicit(&generation, memory_order_relaxed);
	memcpy(e->words, key->words, bytes);
	return sp_writer_stack(lane, e->id, walk->flags, walk->n) ? e : NULL;
}

uint32_t sp_stacktab_find(const struct sp_stack_walk *walk)
{
	const struct entry *e;
	struct key key;

	key_by_addresses(&key, walk);
	e = find(atomic_load_explicit(bucket_of(&key), memory_order_acquire),
		 &key);
	return e ? e->id : 0;
}

uint32_t sp_stacktab_intern(struct sp_lane *lane,
			    const struct sp_stack_walk *walk)
{
	_Atomic(struct entry *) *bucket;
	struct entry *head, *e;
	struct key key;

	if (walk->is_permanent)
		key_by_addresses(&key, walk);
	else
		key_by_frames(&key, lane, walk);
	bucket = bucket_of(&key);
	head = atomic_load_explicit(bucket, memory_order_acquire);
	e = find(head, &key);
	if (e)
		return e->id;
	e = make(lane, &key, walk);
	if (!e) {
		sp_diag_lose(SP_LOSS_STACK_TABLE, 1);
		return 0;
	}
	do {
		struct entry *other = find(head, &key);

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
