/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/*
 * Ids of what a segment of the file has, by hash: a cache, which may forget.
 * Zero-initialise.  Lookups and inserts take no lock.
 */
#define SP_IDTABLE_LEVELS 5u

struct sp_idtable {
	_Atomic(struct sp_idtable_entry *) levels[SP_IDTABLE_LEVELS];
	_Atomic unsigned int newest;
	_Atomic uint32_t generation; /* changes in a forked child */
};

struct sp_idtable_key {
	uint64_t check;
	uint64_t place;
};

/* Remember it, if there is memory.  Context: as above. */
void sp_idtable_put(struct sp_idtable *table, const struct sp_idtable_key *key,
		    uint32_t id, uint32_t segment);

/* In a forked child: nothing is known. */
void sp_idtable_reset(struct sp_idtable *table);

#define SP_IDTABLE_WAYS 8u /* of a bucket: two cache lines */
/* Entries of the first level, 64 KiB, and of the last, 16 MiB: more than the
 * stacks of a segment of 64 MiB. */
#define SP_IDTABLE_FIRST_BITS 12u
#define SP_IDTABLE_BITS_MORE  2u
#define SP_IDTABLE_BITS(level)                                                 \
	(SP_IDTABLE_FIRST_BITS + (level)*SP_IDTABLE_BITS_MORE)

struct sp_idtable_entry {
	_Atomic uint64_t check;
	_Atomic uint64_t value; /* id | segment << 32; 0: none */
};

#define SP_IDTABLE_FACTOR_A SP_HASH_MULTIPLIER
#define SP_IDTABLE_FACTOR_B 0xd6e8feb86659fd93ull

static inline uint64_t sp_idtable_mix_a(uint64_t h, uint64_t word)
{
	h = (h ^ word) * SP_IDTABLE_FACTOR_A;
	return h ^ h >> 32;
}

static inline uint64_t sp_idtable_mix_b(uint64_t h, uint64_t word)
{
	h = (h + word) * SP_IDTABLE_FACTOR_B;
	return h ^ h >> 29;
}

/* The key of 128 bits of hash; `kind` and `flags` (24 bits) keep apart what has
 * the same ones. */
static inline struct sp_idtable_key sp_idtable_key(
	const struct sp_idtable *table, unsigned int kind, uint32_t flags,
	uint64_t low, uint64_t high)
{
	const uint64_t seed =
		(uint64_t)kind << 56 | (uint64_t)flags << 32 |
		atomic_load_explicit(&table->generation, memory_order_relaxed);

	return (struct sp_idtable_key){
		sp_idtable_mix_a(sp_idtable_mix_a(seed, low), high),
		sp_idtable_mix_b(sp_idtable_mix_b(seed, high), low)};
}

static inline uint32_t sp_idtable_segment(uint64_t value)
{
	return (uint32_t)(value >> 32);
}

/* NULL: there is no such level, or no memory. */
static inline struct sp_idtable_entry *sp_idtable_bucket(
	struct sp_idtable *table, unsigned int level,
	const struct sp_idtable_key *key)
{
	struct sp_idtable_entry *at = atomic_load_explicit(
		&table->levels[level], memory_order_acquire);

	return at ? &at[key->place >> (64 - SP_IDTABLE_BITS(level)) &
			~(uint64_t)(SP_IDTABLE_WAYS - 1)]
		  : NULL;
}

static inline uint64_t sp_idtable_load(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline uint32_t sp_idtable_find_in(struct sp_idtable *table,
					  unsigned int level,
					  const struct sp_idtable_key *key,
					  uint32_t segment)
{
	struct sp_idtable_entry *e = sp_idtable_bucket(table, level, key);

	for (unsigned int i = 0; e && i < SP_IDTABLE_WAYS; i++, e++) {
		const uint64_t value = sp_idtable_load(&e->value);

		if (sp_idtable_segment(value) == segment &&
		    (sp_idtable_load(&e->check) ^ value) == key->check)
			return (uint32_t)value;
	}
	return 0;
}

/* The id in that segment, or 0.  Context: sampled. */
static inline uint32_t sp_idtable_find(struct sp_idtable *table,
				       const struct sp_idtable_key *key,
				       uint32_t segment)
{
	const unsigned int last =
		atomic_load_explicit(&table->newest, memory_order_acquire);
	uint32_t id = sp_idtable_find_in(table, last, key, segment);

	for (unsigned int level = last; !id && level--;) {
		id = sp_idtable_find_in(table, level, key, segment);
		if (id)
			sp_idtable_put(table, key, id, segment);
	}
	return id;
}
