/* SPDX-License-Identifier: MIT */
/*
 * Buckets of a few entries, found by hash; lookups and inserts take no lock.
 *
 * I1  The two words of an entry prove each other: `check` is the key exclusive-
 *     or the value.  A thread that reads them while another one writes them
 *     finds a key that no stack has.
 * I2  A key is 128 bits of hash, half of them the place.  So another stack is
 *     taken for this one once in 2^60 lookups that find nothing.
 * I3  An entry counts in the segment that it names and in no other.  What a
 *     bucket has of earlier ones is room; where all of it is of the present
 *     one, the next level begins, four times as large.  Those before it are
 *     still asked.
 * I4  Two threads that meet the same new stack at the same moment both write a
 *     record; readers know that.
 */
#include "agent/file/stacktab.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "agent/file/chunks.h"
#include "agent/file/ring.h"
#include "agent/sys/sys.h"
#include "base/hash.h"
#include "base/wide.h"

#include "agent/sys/poison.h"

#define WAYS 8u /* of a bucket: two cache lines */
/* Entries of the first level, 64 KiB, and of the last, 16 MiB: more than the
 * stacks of a segment of 64 MiB. */
#define FIRST_BITS  12u
#define BITS_MORE   2u
#define LEVELS      5u
#define BITS(level) (FIRST_BITS + (level)*BITS_MORE)

struct entry {
	_Atomic uint64_t check;
	_Atomic uint64_t value; /* id | segment << 32; 0: none */
};

static _Atomic(struct entry *) levels[LEVELS];
static _Atomic unsigned int newest;
static _Atomic uint32_t generation; /* changes in a forked child */

/* What a key is made of: stacks have one of each. */
enum kind { BY_ADDRESSES = 1, BY_FRAMES, BY_ID };

struct key {
	uint64_t check;
	uint64_t place;
};

#define FACTOR_A SP_HASH_MULTIPLIER
#define FACTOR_B 0xd6e8feb86659fd93ull

static inline uint64_t mix_a(uint64_t h, uint64_t word)
{
	h = (h ^ word) * FACTOR_A;
	return h ^ h >> 32;
}

static inline uint64_t mix_b(uint64_t h, uint64_t word)
{
	h = (h + word) * FACTOR_B;
	return h ^ h >> 29;
}

static struct key finish_key(enum kind kind, uint32_t flags, uint64_t low,
			     uint64_t high)
{
	const uint64_t seed =
		(uint64_t)kind << 56 | (uint64_t)flags << 32 |
		atomic_load_explicit(&generation, memory_order_relaxed);

	return (struct key){mix_a(mix_a(seed, low), high),
			    mix_b(mix_b(seed, high), low)};
}

/*
 * A sum of products of two words each, so that no step has to wait for another.
 * To each word a number is added that its place has: powers, since the same
 * frames in another order would meet where those are evenly spaced (f g g f and
 * g f f g).
 */
static struct key key_of(enum kind kind, uint32_t flags, const void *from,
			 size_t n)
{
	const uint64_t *words = from;
	const uint64_t *const end = words + (n & ~(size_t)1);
	uint64_t a = FACTOR_A, b = FACTOR_B;
	sp_u128 sum = n;

	for (; words < end; words += 2) {
		sum += (sp_u128)(words[0] + a) * (words[1] + b);
		a *= FACTOR_A;
		b *= FACTOR_B;
	}
	if (n % 2)
		sum += (sp_u128)(words[0] + a) * b;
	return finish_key(kind, flags, (uint64_t)sum, (uint64_t)(sum >> 64));
}

static struct key key_by_addresses(const struct sp_stack_walk *walk)
{
	return finish_key(BY_ADDRESSES, walk->flags,
			  walk->hash.low + walk->unloads, walk->hash.high);
}

static struct key key_by_frames(const struct sp_lane *lane, uint32_t flags,
				unsigned int n)
{
	static_assert(sizeof(lane->frames[0]) == 2 * sizeof(uint64_t),
		      "no padding");
	return key_of(BY_FRAMES, flags, lane->frames, 2 * (size_t)n);
}

static struct key key_by_id(uint32_t id, uint32_t segment)
{
	const uint64_t words[] = {id, segment};

	return key_of(BY_ID, 0, words, 2);
}

/* ---- the table ---- */

static uint32_t segment_of(uint64_t value)
{
	return (uint32_t)(value >> 32);
}

static size_t level_bytes(unsigned int level)
{
	return sizeof(struct entry) << BITS(level);
}

/* NULL: there is no such level, or no memory. */
static struct entry *get_bucket(unsigned int level, const struct key *key)
{
	struct entry *at =
		atomic_load_explicit(&levels[level], memory_order_acquire);

	return at ? &at[key->place >> (64 - BITS(level)) &
			~(uint64_t)(WAYS - 1)]
		  : NULL;
}

static struct entry *map_level(unsigned int level)
{
	struct entry *none = NULL, *fresh = sp_sys_map(level_bytes(level));

	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(&levels[level], &none, fresh))
		return fresh;
	sp_sys_unmap(fresh, level_bytes(level));
	return none;
}

static uint64_t load_word(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static uint32_t find_in(unsigned int level, const struct key *key,
			uint32_t segment)
{
	struct entry *e = get_bucket(level, key);

	for (unsigned int i = 0; e && i < WAYS; i++, e++) {
		const uint64_t value = load_word(&e->value);

		if (segment_of(value) == segment &&
		    (load_word(&e->check) ^ value) == key->check)
			return (uint32_t)value;
	}
	return 0;
}

static void put_entry(struct entry *e, const struct key *key, uint64_t value)
{
	atomic_store_explicit(&e->check, key->check ^ value,
			      memory_order_relaxed);
	atomic_store_explicit(&e->value, value, memory_order_relaxed);
}

/* False: all of the bucket is of the segment that the value is of. */
static bool put_in(unsigned int level, const struct key *key, uint64_t value)
{
	struct entry *e = get_bucket(level, key);

	for (unsigned int i = 0; e && i < WAYS; i++, e++)
		if (segment_of(load_word(&e->value)) != segment_of(value)) {
			put_entry(e, key, value);
			return true;
		}
	return false;
}

/* The next level, if there is memory for it. */
static bool grow_level(unsigned int level)
{
	if (level + 1 == LEVELS || !map_level(level + 1))
		return false;
	atomic_compare_exchange_strong(&newest, &level, level + 1);
	return true;
}

static void remember_place(const struct key *key, struct sp_stack_place place)
{
	/* The analyzer shifts before it widens.
	 * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
	const uint64_t value = place.id | (uint64_t)place.segment << 32;
	const unsigned int level = atomic_load(&newest);
	struct entry *bucket = get_bucket(level, key);

	if (!bucket) {
		if (!map_level(level))
			return;
		bucket = get_bucket(level, key);
	}
	if (put_in(level, key, value) ||
	    (grow_level(level) && put_in(level + 1, key, value)))
		return;
	/* The largest: one or the other is written to the file again. */
	put_entry(&bucket[key->check % WAYS], key, value);
}

static uint32_t find_place(const struct key *key, uint32_t segment)
{
	const unsigned int last =
		atomic_load_explicit(&newest, memory_order_acquire);
	uint32_t id = find_in(last, key, segment);

	for (unsigned int level = last; !id && level--;) {
		id = find_in(level, key, segment);
		if (id)
			remember_place(key,
				       (struct sp_stack_place){id, segment});
	}
	return id;
}

/* ---- stacks ---- */

struct sp_stack_place sp_stacktab_find(const struct sp_stack_walk *walk)
{
	const struct key key = key_by_addresses(walk);
	const uint32_t segment = sp_ring_segment();

	return (struct sp_stack_place){find_place(&key, segment), segment};
}

/* Of lane->frames[0..n), in the current segment or, if that is not 0, in the
 * one to be completed. */
static struct sp_stack_place place_frames(struct sp_lane *lane, uint32_t flags,
					  unsigned int n, uint32_t completes)
{
	const struct key key = key_by_frames(lane, flags, n);
	struct sp_stack_place place = {
		.segment = completes ? completes : sp_ring_segment()};

	place.id = find_place(&key, place.segment);
	if (place.id)
		return place;
	place.id = sp_chunks_append_stack(lane, flags, n, completes);
	place.segment = lane->tail.segment;
	if (place.id)
		remember_place(&key, place);
	return place;
}

struct sp_stack_place sp_stacktab_intern(struct sp_lane *lane,
					 const struct sp_stack_walk *walk)
{
	struct sp_stack_place place =
		place_frames(lane, walk->flags, walk->n, 0);

	/* Objects that are never unloaded do not move. */
	if (place.id && walk->is_permanent) {
		const struct key key = key_by_addresses(walk);

		remember_place(&key, place);
	}
	return place;
}

bool sp_stacktab_rewrite(struct sp_lane *lane, uint32_t from, uint64_t *id)
{
	const struct key key = key_by_id((uint32_t)*id, from);
	struct sp_stack_place place = {.segment = from + 1};
	uint32_t flags;
	unsigned int n;

	if (!*id)
		return true;
	place.id = find_place(&key, place.segment);
	if (!place.id) {
		if (!sp_chunks_read_stack(lane, (uint32_t)*id, from, &flags,
					  &n)) {
			*id = 0;
			return true;
		}
		place = place_frames(lane, flags, n, place.segment);
		if (!place.id)
			return false;
		remember_place(&key, place);
	}
	*id = place.id;
	return true;
}

/* A thread that was in the middle of this may still store what is its
 * parent's, under a key that nobody asks for. */
void sp_stacktab_reset(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	for (unsigned int i = 0; i <= atomic_load(&newest); i++)
		if (atomic_load(&levels[i]))
			SP_SYS3(madvise, atomic_load(&levels[i]),
				level_bytes(i), MADV_DONTNEED);
	atomic_store(&newest, 0);
}
