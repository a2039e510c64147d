/* SPDX-License-Identifier: MIT */
#include "agent/file/livetable.h"

#include <assert.h>

#include "agent/sys/maponce.h"
#include "base/wide.h"

#include "agent/sys/poison.h"

/* The first grows fourfold; then two steps double a table, up to 4,096 homes:
 * each moves all that is there.  Then eight steps do, for memory's sake. */
#define SMALL_TABLES 2u
#define SMALL_BITS   6u /* log2 of the homes of the first: 24 KiB */
#define HALF_STEPS   8u
#define LARGE_BITS   12u

#define TAG_SHIFT    8u /* of a hash; the bits below are of its step */
#define PASSED_SHIFT (SP_LIVEWORD_ADDRESS_BITS + 2)
#define PASSED_BITS  3u
#define PASSED_MAX   7u

static_assert(sizeof(struct sp_livetable_bucket) == SP_LIVETABLE_SLOTS * 24,
	      "docs/internals.md says 24 bytes for an object");
static_assert(PASSED_SHIFT + 2 * PASSED_BITS == 64, "it fits exactly");

#define REWRITTEN       31ull /* marks */
#define REWRITTEN_SHIFT SP_LIVESET_ID_BITS
#define THREAD_SHIFT    48u
#define CLOCK           ((1ull << SP_LIVESET_CLOCK_BITS) - 1)

static_assert(REWRITTEN_SHIFT + 5 == THREAD_SHIFT, "it fits exactly");
static_assert(SP_LIVESET_CLOCK_BITS == THREAD_SHIFT, "likewise");

/* Each is set once, from NULL, by whoever first has the memory. */
static void *_Atomic tables[SP_LIVETABLE_COUNT];

/* homes_of() of those that there are: every look asks. */
static _Atomic size_t known_homes[SP_LIVETABLE_COUNT];

/* ---- sizes ---- */

static size_t homes_of(unsigned int table)
{
	unsigned int more = table - SMALL_TABLES + 1;

	if (table < SMALL_TABLES)
		return (size_t)1 << (SMALL_BITS + 2 * table);
	if (more <= HALF_STEPS)
		return (size_t)(2 + more % 2) << (SMALL_BITS + 1 + more / 2);
	more -= HALF_STEPS;
	return (size_t)(8 + more % 8) << (LARGE_BITS - 3 + more / 8);
}

/* Of a small table less, for its filter (livefilter.c). */
size_t sp_livetable_fill(unsigned int table)
{
	const size_t sixteenths = table < SMALL_TABLES ? 13 : 14;

	return homes_of(table) * SP_LIVETABLE_SLOTS / 16 * sixteenths;
}

size_t sp_livetable_buckets(unsigned int table)
{
	return homes_of(table) + SP_LIVETABLE_WINDOW - 1;
}

size_t sp_livetable_bytes(unsigned int table)
{
	return sp_livetable_buckets(table) * sizeof(struct sp_livetable_bucket);
}

bool sp_livetable_have(unsigned int table)
{
	atomic_store_explicit(&known_homes[table], homes_of(table),
			      memory_order_relaxed);
	return sp_map_once(&tables[table], sp_livetable_bytes(table));
}

struct sp_livetable_bucket *sp_livetable_first(unsigned int table)
{
	return atomic_load_explicit(&tables[table], memory_order_acquire);
}

/* Bytes of a table that gave back their pages when its first n buckets are
 * empty: not those of buckets that may still have been passed. */
static size_t released_bytes(unsigned int table, size_t n)
{
	const size_t bucket_bytes = sizeof(struct sp_livetable_bucket);
	const size_t piece = sp_sys_piece_bytes();

	if (n == sp_livetable_buckets(table))
		return sp_livetable_bytes(table);
	if (n < SP_LIVETABLE_WINDOW)
		return 0;
	return (n - SP_LIVETABLE_WINDOW) * bucket_bytes / piece * piece;
}

void sp_livetable_release(unsigned int table, size_t from, size_t to)
{
	const size_t begin = released_bytes(table, from);
	const size_t end = released_bytes(table, to);
	char *map = (char *)sp_livetable_first(table);

	if (begin < end)
		SP_SYS3(madvise, map + begin, end - begin, MADV_DONTNEED);
}

/* ---- words ---- */

static unsigned int tag_of(uint64_t hash)
{
	return (unsigned int)(hash >> TAG_SHIFT) & (2 * SP_LIVETABLE_SLOTS - 1);
}

static unsigned int shift_of_passed(unsigned int tag)
{
	return PASSED_SHIFT + tag % 2 * PASSED_BITS;
}

/* Of the addresses that have found the bucket full, those with the tag of that
 * hash: how many are elsewhere, or the maximum. */
static unsigned int passed_of(struct sp_livetable_bucket *b, uint64_t hash)
{
	const unsigned int tag = tag_of(hash);

	return (unsigned int)(atomic_load(&b->words[tag / 2]) >>
			      shift_of_passed(tag)) &
	       PASSED_MAX;
}

/* In a forked child the count may be 0 where it was not. */
static void count_passed(struct sp_livetable_bucket *b, uint64_t hash,
			 bool more)
{
	const unsigned int tag = tag_of(hash), shift = shift_of_passed(tag);
	_Atomic uint64_t *at = &b->words[tag / 2];
	uint64_t w = atomic_load_explicit(at, memory_order_relaxed), n;

	do {
		n = w >> shift & PASSED_MAX;
		if (n == PASSED_MAX || (!more && !n))
			return;
	} while (!atomic_compare_exchange_weak(
		at, &w, more ? w + (1ull << shift) : w - (1ull << shift)));
}

/* ---- values ---- */

bool sp_livevalues_has_room(const struct sp_live *live)
{
	return live->id && !(live->id >> SP_LIVESET_ID_BITS);
}

struct sp_livevalues sp_livevalues_pack(const struct sp_live *live)
{
	const uint64_t low = live->thread & 0xffff, high = live->thread >> 16;

	return (struct sp_livevalues){
		live->id | low << THREAD_SHIFT,
		(live->clock_bytes & CLOCK) | high << THREAD_SHIFT,
	};
}

struct sp_live sp_livevalues_unpack(struct sp_livevalues v)
{
	return (struct sp_live){
		.id = sp_livevalues_id(v.id_word),
		.clock_bytes = v.clock_word & CLOCK,
		.thread = (uint32_t)(v.id_word >> THREAD_SHIFT |
				     v.clock_word >> THREAD_SHIFT << 16),
	};
}

uint64_t sp_livevalues_mark(uint64_t id_word, uint32_t segment)
{
	const uint64_t mark = 1 + segment % REWRITTEN;

	return (id_word & ~(REWRITTEN << REWRITTEN_SHIFT)) |
	       mark << REWRITTEN_SHIFT;
}

/* ---- places ---- */

size_t sp_livetable_home(unsigned int table, uint64_t hash)
{
	const size_t homes =
		atomic_load_explicit(&known_homes[table], memory_order_relaxed);

	return (size_t)((sp_u128)hash * homes >> 64);
}

/* The bucket of a hash after so many passes: its home, then others of the
 * window, each once. */
static struct sp_livetable_bucket *bucket_after(unsigned int table,
						uint64_t hash,
						unsigned int passes)
{
	const uint64_t step = hash | 1;

	return sp_livetable_first(table) + sp_livetable_home(table, hash) +
	       step * passes % SP_LIVETABLE_WINDOW;
}

void sp_livetable_begin(struct sp_liveplace *place, unsigned int table,
			uint64_t hash)
{
	*place = (struct sp_liveplace){
		.hash = hash,
		.table = table,
		.bucket = bucket_after(table, hash, 0),
	};
}

bool sp_livetable_lacks(unsigned int table, uint64_t address, uint64_t hash)
{
	struct sp_livetable_bucket *b =
		sp_livetable_first(table) + sp_livetable_home(table, hash);

	return !sp_livetable_has(b, address) && !passed_of(b, hash);
}

bool sp_livetable_next(struct sp_liveplace *place)
{
	if (!passed_of(place->bucket, place->hash) ||
	    place->passes + 1 == SP_LIVETABLE_REACH)
		return false;
	place->bucket =
		bucket_after(place->table, place->hash, ++place->passes);
	return true;
}

void sp_livetable_count_passes(const struct sp_liveplace *p, bool more)
{
	for (unsigned int i = 0; i < p->passes; i++)
		count_passed(bucket_after(p->table, p->hash, i), p->hash, more);
}

/* The first word of a bucket, from `slot` on, that is EMPTY. */
static unsigned int find_empty(struct sp_livetable_bucket *b, unsigned int slot)
{
	while (slot < SP_LIVETABLE_SLOTS &&
	       atomic_load_explicit(&b->words[slot], memory_order_relaxed) &
		       SP_LIVEWORD_CONTENT)
		slot++;
	return slot;
}

static bool claim_in(struct sp_liveplace *p)
{
	p->slot = find_empty(p->bucket, 0);
	while (p->slot < SP_LIVETABLE_SLOTS) {
		if (sp_liveword_change(sp_livetable_word(p), SP_LIVEWORD_EMPTY,
				       SP_LIVEWORD_BUSY))
			return true;
		p->slot = find_empty(p->bucket, p->slot + 1);
	}
	return false;
}

bool sp_livetable_claim(struct sp_liveplace *p, unsigned int table,
			uint64_t hash)
{
	sp_livetable_begin(p, table, hash);
	while (!claim_in(p)) {
		p->bucket = bucket_after(table, hash, ++p->passes);
		if (p->passes == SP_LIVETABLE_REACH)
			return false;
	}
	if (p->passes)
		sp_livetable_count_passes(p, true);
	return true;
}
