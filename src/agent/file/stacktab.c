/* SPDX-License-Identifier: MIT */
/*
 * Two threads that meet the same new stack at the same moment both write a
 * record; readers know that.
 */
#include "agent/file/stacktab.h"

#include <assert.h>
#include <stddef.h>

#include "agent/file/chunks.h"
#include "agent/file/idtable.h"
#include "agent/file/ring.h"
#include "base/hash.h"
#include "base/wide.h"

#include "agent/sys/poison.h"

static struct sp_idtable table;

/* What a key is made of: stacks have one of each. */
enum kind { BY_ADDRESSES = 1, BY_FRAMES, BY_ID };

#define FACTOR_A SP_HASH_MULTIPLIER
#define FACTOR_B 0xd6e8feb86659fd93ull

/*
 * A sum of products of two words each, so that no step has to wait for another.
 * To each word a number is added that its place has: powers, since the same
 * frames in another order would meet where those are evenly spaced (f g g f and
 * g f f g).
 */
static struct sp_idtable_key key_of(enum kind kind, uint32_t flags,
				    const void *from, size_t n)
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
	return sp_idtable_key(&table, kind, flags, (uint64_t)sum,
			      (uint64_t)(sum >> 64));
}

static struct sp_idtable_key key_by_addresses(const struct sp_stack_walk *walk)
{
	return sp_idtable_key(&table, BY_ADDRESSES, walk->flags,
			      walk->hash.low + walk->unloads, walk->hash.high);
}

static struct sp_idtable_key key_by_frames(const struct sp_lane *lane,
					   uint32_t flags, unsigned int n)
{
	static_assert(sizeof(lane->frames[0]) == 2 * sizeof(uint64_t),
		      "no padding");
	return key_of(BY_FRAMES, flags, lane->frames, 2 * (size_t)n);
}

static struct sp_idtable_key key_by_id(uint32_t id, uint32_t segment)
{
	const uint64_t words[] = {id, segment};

	return key_of(BY_ID, 0, words, 2);
}

struct sp_stack_place sp_stacktab_find(const struct sp_stack_walk *walk)
{
	const struct sp_idtable_key key = key_by_addresses(walk);
	const uint32_t segment = sp_ring_segment();

	return (struct sp_stack_place){sp_idtable_find(&table, &key, segment),
				       segment};
}

/* Of lane->frames[0..n), in the current segment or, if that is not 0, in the
 * one to be completed. */
static struct sp_stack_place place_frames(struct sp_lane *lane, uint32_t flags,
					  unsigned int n, uint32_t completes)
{
	const struct sp_idtable_key key = key_by_frames(lane, flags, n);
	struct sp_stack_place place = {
		.segment = completes ? completes : sp_ring_segment()};

	place.id = sp_idtable_find(&table, &key, place.segment);
	if (place.id)
		return place;
	place.id = sp_chunks_append_stack(lane, flags, n, completes);
	place.segment = lane->tail.segment;
	if (place.id)
		sp_idtable_put(&table, &key, place.id, place.segment);
	return place;
}

struct sp_stack_place sp_stacktab_intern(struct sp_lane *lane,
					 const struct sp_stack_walk *walk)
{
	struct sp_stack_place place =
		place_frames(lane, walk->flags, walk->n, 0);

	/* Objects that are never unloaded do not move. */
	if (place.id && walk->is_permanent) {
		const struct sp_idtable_key key = key_by_addresses(walk);

		sp_idtable_put(&table, &key, place.id, place.segment);
	}
	return place;
}

bool sp_stacktab_rewrite(struct sp_lane *lane, uint32_t from, uint64_t *id)
{
	const struct sp_idtable_key key = key_by_id((uint32_t)*id, from);
	struct sp_stack_place place = {.segment = from + 1};
	uint32_t flags;
	unsigned int n;

	if (!*id)
		return true;
	place.id = sp_idtable_find(&table, &key, place.segment);
	if (!place.id) {
		if (!sp_chunks_read_stack(lane, (uint32_t)*id, from, &flags,
					  &n)) {
			*id = 0;
			return true;
		}
		place = place_frames(lane, flags, n, place.segment);
		if (!place.id)
			return false;
		sp_idtable_put(&table, &key, place.id, place.segment);
	}
	*id = place.id;
	return true;
}

void sp_stacktab_reset(void)
{
	sp_idtable_reset(&table);
}
