/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/file/liveset.h"
#include "base/hash.h"

/*
 * The hash tables of the live set (liveset.c, which has the invariants), of
 * rising size.  A bucket has its words in one cache line, and what belongs to
 * them in the next two.  Buckets are in the order of the hashes that they are
 * home to; an address that finds its home full goes to one of a few buckets of
 * the SP_LIVETABLE_WINDOW from there on.
 *
 * A word: the address below, then its state, then two counts, `passed`.  A
 * bucket has 16 of these, by a tag of the hash: how many addresses with that
 * tag found it full and are elsewhere.  A count at its maximum stays there.
 * No address of a process has more than 56 bits, and none that an allocator
 * returns is 1.
 */
#define SP_LIVETABLE_COUNT  98u /* 67 million places */
#define SP_LIVETABLE_SLOTS  8u  /* words of a bucket */
#define SP_LIVETABLE_REACH  16u /* buckets that an address may be in */
#define SP_LIVETABLE_WINDOW 64u

#define SP_LIVEWORD_ADDRESS_BITS 56u
#define SP_LIVEWORD_ADDRESS      ((1ull << SP_LIVEWORD_ADDRESS_BITS) - 1)
#define SP_LIVEWORD_EMPTY        0ull
#define SP_LIVEWORD_BUSY         1ull
#define SP_LIVEWORD_LIVE         0ull /* states of an address */
#define SP_LIVEWORD_MOVED        (1ull << SP_LIVEWORD_ADDRESS_BITS)
#define SP_LIVEWORD_COPY         (2ull << SP_LIVEWORD_ADDRESS_BITS)
#define SP_LIVEWORD_STATES       (3ull << SP_LIVEWORD_ADDRESS_BITS)
#define SP_LIVEWORD_CONTENT      ((4ull << SP_LIVEWORD_ADDRESS_BITS) - 1)

/* What belongs to a word, packed: the id, the segment that the sample was
 * rewritten into, as one of 31 marks (0: none), and half of the thread; its
 * clock, and the other half. */
struct sp_livevalues {
	uint64_t id_word;
	uint64_t clock_word;
};

struct sp_livetable_bucket {
	_Atomic uint64_t words[SP_LIVETABLE_SLOTS];
	_Atomic uint64_t values[SP_LIVETABLE_SLOTS][2];
};

/* Where an address is, or may be. */
struct sp_liveplace {
	uint64_t hash;
	unsigned int table;
	unsigned int passes; /* buckets that it is too late for */
	unsigned int slot;
	struct sp_livetable_bucket *bucket;
};

/* Can the sample be packed?  The generation is left out. */
bool sp_livevalues_has_room(const struct sp_live *live);
struct sp_livevalues sp_livevalues_pack(const struct sp_live *live);
struct sp_live sp_livevalues_unpack(struct sp_livevalues values);

/* The word of an id, as of a sample that was rewritten into that segment. */
uint64_t sp_livevalues_mark(uint64_t id_word, uint32_t segment);

static inline uint64_t sp_livevalues_id(uint64_t id_word)
{
	return id_word & ((1ull << SP_LIVESET_ID_BITS) - 1);
}

/* Live samples that make a table have its fill. */
size_t sp_livetable_fill(unsigned int table);

/* All buckets of a table, and the bytes that they take. */
size_t sp_livetable_buckets(unsigned int table);
size_t sp_livetable_bytes(unsigned int table);

/* Make it, zero, if it is not there; false: there is no memory.  Context:
 * sampled. */
bool sp_livetable_have(unsigned int table);
struct sp_livetable_bucket *sp_livetable_first(unsigned int table);

/* Buckets `from` to `to` are empty, too: pages go back.  Context: sampled. */
void sp_livetable_release(unsigned int table, size_t from, size_t to);

static inline uint64_t sp_livetable_hash(uint64_t address)
{
	return sp_hash_word(sp_hash_word(0, address), 0);
}

/* The number of its home, the first of the SP_LIVETABLE_WINDOW buckets that may
 * have it. */
size_t sp_livetable_home(unsigned int table, uint64_t hash);

/* To the home of the hash in that table; and to the next bucket that may have
 * it, false: there is none. */
void sp_livetable_begin(struct sp_liveplace *place, unsigned int table,
			uint64_t hash);
bool sp_livetable_next(struct sp_liveplace *place);

/* Make the first empty word BUSY, and count the address in those that it is too
 * late for; false: there is none. */
bool sp_livetable_claim(struct sp_liveplace *place, unsigned int table,
			uint64_t hash);

/* Count the address in the buckets that it is too late for, or no longer. */
void sp_livetable_count_passes(const struct sp_liveplace *place, bool more);

/* The place is no address any more: count it no longer. */
static inline void sp_livetable_leave(const struct sp_liveplace *place)
{
	if (place->passes)
		sp_livetable_count_passes(place, false);
}

static inline _Atomic uint64_t *sp_livetable_word(const struct sp_liveplace *p)
{
	return &p->bucket->words[p->slot];
}

/* The word but for what has passed. */
static inline uint64_t sp_livetable_content(const struct sp_liveplace *p)
{
	return atomic_load(sp_livetable_word(p)) & SP_LIVEWORD_CONTENT;
}

static inline void sp_livetable_store(const struct sp_liveplace *p,
				      struct sp_livevalues v)
{
	_Atomic uint64_t *at = p->bucket->values[p->slot];

	atomic_store_explicit(&at[0], v.id_word, memory_order_relaxed);
	atomic_store_explicit(&at[1], v.clock_word, memory_order_relaxed);
}

static inline struct sp_livevalues sp_livetable_load(
	const struct sp_liveplace *p)
{
	const _Atomic uint64_t *at = p->bucket->values[p->slot];

	return (struct sp_livevalues){
		atomic_load_explicit(&at[0], memory_order_relaxed),
		atomic_load_explicit(&at[1], memory_order_relaxed)};
}

static inline bool sp_liveword_is_address(uint64_t address)
{
	return address > SP_LIVEWORD_BUSY && address <= SP_LIVEWORD_ADDRESS;
}

/* Change the content of a word; false: it is another than `from`. */
static inline bool sp_liveword_change(_Atomic uint64_t *at, uint64_t from,
				      uint64_t to)
{
	uint64_t w = atomic_load_explicit(at, memory_order_relaxed);

	/* What has passed may change meanwhile. */
	while ((w & SP_LIVEWORD_CONTENT) == from)
		if (atomic_compare_exchange_weak(at, &w, w ^ from ^ to))
			return true;
	return false;
}

/* May the bucket have that address, in whatever state?  The lower halves tell:
 * three instructions a word. */
static inline bool sp_livetable_has(struct sp_livetable_bucket *b,
				    uint64_t address)
{
#pragma GCC unroll 8
	for (unsigned int i = 0; i < SP_LIVETABLE_SLOTS; i++)
		if ((uint32_t)atomic_load(&b->words[i]) == (uint32_t)address)
			return true;
	return false;
}

/* Is the address surely not in the table?  Its home says so, most often. */
bool sp_livetable_lacks(unsigned int table, uint64_t address, uint64_t hash);
