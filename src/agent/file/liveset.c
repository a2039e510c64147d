/* SPDX-License-Identifier: MIT */
/*
 * The table has levels, each four times as large as the one before; what is
 * full is left as it is and another level is added, so that nothing ever moves.
 * In each level an address has two buckets, and a bucket has its words in one
 * cache line and what belongs to them in the next ones, on the same page.
 *
 * The filter in front has generations (filter.h).  A new one is announced, then
 * everything in the table is counted in it, a piece with each insert, then it
 * is published.  Older ones stay mapped but are not kept up any longer.
 *
 * I1  A word of the table is EMPTY, BUSY, or an address with the generation up
 *     to which it is counted.  Only who made it BUSY touches what belongs to
 *     it, and makes it something else.  Nobody waits for a BUSY word.
 * I2  A word stands in one of the two buckets of its address, anywhere: a look
 *     reads them whole in every level, so that nothing need mark where
 *     something once was.
 * I3  An address that was inserted when generation g was published, and whose
 *     word says h, is counted once in each of the generations g to h.  It is
 *     counted before its word says so, and never taken back too often.
 * I4  Whoever has returned from an insert finds its word with an h of at least
 *     every generation that is published, now or later.  Either the thread that
 *     makes generation h + 1 finds the word when it walks, or the inserter, who
 *     looks again after storing the word, finds h + 1 announced: both orders of
 *     (store, look) are sequentially consistent.
 *
 * The free of an address that is in the table never misses it: the program
 * ordered it behind the insert, so it sees the filter that was published then
 * or a later one, and I3 and I4 say that the address is counted there.  It does
 * not matter how long it has held a pointer to that filter, since its own take
 * is the only one of that address.  For the same reason a take need not touch
 * generations older than the published one: nobody whose address is counted
 * there will look any more.
 *
 * I5  Counters that stop at their maximum stay there: too many filter hits,
 *     never too few.
 * I6  In a forked child all of this is zero: no words, no counters, epoch 0.
 *     Who finds another epoch than he began with has been interrupted by a
 *     fork and leaves no word behind.  The number of live samples changes only
 *     together with a look at the epoch.
 */
#include "agent/file/liveset.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "agent/file/filter.h"
#include "agent/sys/maponce.h"
#include "agent/thread/inside.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

/* Words: the address below, then the generation, then the segment that the
 * sample was carried to, as one of CARRIED marks; 0: to none.  No address of a
 * process has more than 56 bits, and none that an allocator returns is 1. */
#define EMPTY            0u
#define BUSY             1u
#define GENERATION_SHIFT 56
#define GENERATION_MASK  7u
#define CARRIED_SHIFT    59
#define CARRIED          31u
#define ADDRESS_MASK     ((1ull << GENERATION_SHIFT) - 1)

#define SLOTS        8u /* words of a bucket */
#define LEVELS       8u /* 89 million entries, 2.7 GiB */
#define LEVEL_0_BITS 9u /* log2 of its buckets: 128 KiB */

/* Live samples for which a generation of n counters is made to suffice: then
 * 1 - exp(-1/20) < 5 % of its counters are not zero. */
#define LIVE_LIMIT(n) ((n) / 20)
#define WALK_BUCKETS  128u /* with one insert: some 10 us */

typedef _Atomic uint64_t word;

struct bucket {
	word words[SLOTS];
	struct sp_live lives[SLOTS];
};

static_assert(sizeof(struct bucket) == SLOTS * 32,
	      "docs/internals.md says 32 bytes for an object");
static_assert(SP_FILTER_GENERATIONS - 1 <= GENERATION_MASK,
	      "a word has room for it");

/* All that describes the contents, and so must vanish with them in a child. */
struct state {
	/* The epoch above, the number of live samples in the lower half. */
	_Atomic uint64_t census;
	sp_inside_lock growing; /* of grow() */
	/* Where the walk goes on; under `growing`.  In a child it may begin too
	 * late: every word there is younger than the announcement. */
	unsigned int walk_level;
	size_t walk_bucket;
};

/* Each is set once, from NULL, by whoever first has the memory. */
static void *_Atomic state;
static void *_Atomic levels[LEVELS];

/* published <= announced <= published + 1; written by grow(). */
static _Atomic unsigned int published;
static _Atomic unsigned int announced;

/* ---- the census ---- */

static uint32_t epoch_of(uint64_t census)
{
	return (uint32_t)(census >> 32);
}

/* A change of the number of live samples, 1 or -1; false: a fork has come
 * between (I6). */
static bool count_live(struct state *s, uint32_t epoch, int change,
		       uint32_t *ret_live)
{
	uint64_t c = atomic_load(&s->census), new;

	do {
		if (epoch_of(c) != epoch)
			return false;
		new = c + (uint64_t)(int64_t)change;
	} while (!atomic_compare_exchange_weak(&s->census, &c, new));
	*ret_live = (uint32_t) new;
	return true;
}

/* ---- the table ---- */

struct place {
	struct bucket *bucket;
	unsigned int slot;
};

static bool is_address(uint64_t w)
{
	return (w & ADDRESS_MASK) > BUSY;
}

static unsigned int counted_up_to(uint64_t w)
{
	return (unsigned int)(w >> GENERATION_SHIFT) & GENERATION_MASK;
}

static uint64_t make_word(uint64_t address, unsigned int generation)
{
	return address | (uint64_t)generation << GENERATION_SHIFT;
}

static unsigned int bits_of(unsigned int level)
{
	return LEVEL_0_BITS + 2 * level;
}

static size_t buckets_of(unsigned int level)
{
	return (size_t)1 << bits_of(level);
}

/* Its buckets, made if need be. */
static struct bucket *have_level(unsigned int level)
{
	return sp_map_once(&levels[level],
			   buckets_of(level) * sizeof(struct bucket));
}

static struct bucket *first_bucket(unsigned int level)
{
	return atomic_load_explicit(&levels[level], memory_order_acquire);
}

static unsigned int count_levels(void)
{
	unsigned int n = 0;

	while (n < LEVELS && atomic_load(&levels[n]))
		n++;
	return n;
}

static uint64_t hash_address(uint64_t address)
{
	return sp_hash_word(sp_hash_word(0, address), 0);
}

/* One of the two of this hash: its upper bits name one, its lower bits the
 * other. */
static struct bucket *bucket_of(uint64_t hash, unsigned int level, bool second)
{
	unsigned int bits = bits_of(level);

	return first_bucket(level) +
	       (second ? hash & (((uint64_t)1 << bits) - 1)
		       : hash >> (64 - bits));
}

static unsigned int count_empty(const struct bucket *b)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		n += atomic_load_explicit(&b->words[i], memory_order_relaxed) ==
		     EMPTY;
	return n;
}

/* Make an empty word of a bucket BUSY: its number, or SLOTS. */
static unsigned int claim_in(struct bucket *b)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		uint64_t w = atomic_load_explicit(&b->words[i],
						  memory_order_relaxed);

		if (w == EMPTY &&
		    atomic_compare_exchange_strong_explicit(
			    &b->words[i], &w, BUSY, memory_order_acquire,
			    memory_order_relaxed))
			return i;
	}
	return SLOTS;
}

/* A BUSY place in the emptier one of the two buckets. */
static bool claim_at_level(unsigned int level, uint64_t hash, struct place *ret)
{
	struct bucket *a = bucket_of(hash, level, false);
	struct bucket *b = bucket_of(hash, level, true);

	ret->bucket = count_empty(a) < count_empty(b) ? b : a;
	ret->slot = claim_in(ret->bucket);
	return ret->slot != SLOTS;
}

/* The newest level first: the others are full but for what was taken. */
static bool claim(uint64_t address, struct place *ret)
{
	uint64_t hash = hash_address(address);
	unsigned int n = count_levels();

	for (unsigned int level = n; level-- > 0;)
		if (claim_at_level(level, hash, ret))
			return true;
	for (; n < LEVELS && have_level(n); n++)
		if (claim_at_level(n, hash, ret))
			return true;
	return false;
}

/* Is the address in this bucket?  Most looks find nothing: four instructions a
 * word, and nothing kept for those that find it. */
static bool has_address(struct bucket *b, uint64_t address)
{
	const unsigned int other_bits = 64 - GENERATION_SHIFT;
	const uint64_t wanted = address << other_bits;

#pragma GCC unroll 8
	for (unsigned int i = 0; i < SLOTS; i++) {
		uint64_t w = atomic_load_explicit(&b->words[i],
						  memory_order_relaxed);

		if (w << other_bits == wanted)
			return true;
	}
	return false;
}

/* Make the word of the address in this bucket BUSY: its number, or SLOTS if it
 * is not there. */
static unsigned int seize(struct bucket *b, uint64_t address,
			  unsigned int *ret_counted)
{
	if (!has_address(b, address))
		return SLOTS;
	for (unsigned int i = 0; i < SLOTS; i++) {
		uint64_t w = atomic_load_explicit(&b->words[i],
						  memory_order_relaxed);

		/* What is above the address may change meanwhile. */
		while ((w & ADDRESS_MASK) == address) {
			if (atomic_compare_exchange_weak_explicit(
				    &b->words[i], &w, BUSY,
				    memory_order_acquire,
				    memory_order_relaxed)) {
				*ret_counted = counted_up_to(w);
				return i;
			}
		}
	}
	return SLOTS;
}

/* All buckets are in memory far from each other: ask for all of them, then
 * look. */
static bool seize_anywhere(uint64_t address, struct place *ret,
			   unsigned int *ret_counted)
{
	uint64_t hash = hash_address(address);
	unsigned int n = count_levels();

	for (unsigned int level = n; level-- > 0;) {
		__builtin_prefetch(bucket_of(hash, level, false), 1);
		__builtin_prefetch(bucket_of(hash, level, true), 1);
	}
	for (unsigned int look = 2 * n; look-- > 0;) {
		ret->bucket = bucket_of(hash, look / 2, look % 2 == 0);
		ret->slot = seize(ret->bucket, address, ret_counted);
		if (ret->slot != SLOTS)
			return true;
	}
	return false;
}

/* ---- growth of the filter ---- */

/* Count what the word stands for in generations up to `last` (I3). */
static void catch_up(word *at, unsigned int last)
{
	uint64_t w = atomic_load(at);

	while (is_address(w) && counted_up_to(w) < last) {
		uint64_t address = w & ADDRESS_MASK;
		unsigned int next = counted_up_to(w) + 1;
		uint64_t counted = w + (1ull << GENERATION_SHIFT);

		sp_filter_adjust(next, address, 1);
		if (atomic_compare_exchange_strong(at, &w, counted))
			w = counted;
		else
			sp_filter_adjust(next, address, -1);
	}
}

/* The next piece of the walk; true: there is no more.  A level that is made
 * meanwhile has only words that are younger than the announcement. */
static bool walk(struct state *s, unsigned int last)
{
	size_t left = WALK_BUCKETS;

	for (; s->walk_level < count_levels(); s->walk_level++) {
		struct bucket *first = first_bucket(s->walk_level);

		for (; s->walk_bucket < buckets_of(s->walk_level);
		     s->walk_bucket++) {
			if (left-- == 0)
				return false;
			for (unsigned int i = 0; i < SLOTS; i++)
				catch_up(&first[s->walk_bucket].words[i], last);
		}
		s->walk_bucket = 0;
	}
	return true;
}

static bool is_too_small(unsigned int generation, uint32_t live)
{
	return generation + 1 < SP_FILTER_GENERATIONS &&
	       live > LIVE_LIMIT(sp_filter_counters_of(generation));
}

/* Is there a growth to begin or to go on with? */
static bool must_grow(uint32_t live)
{
	unsigned int now = atomic_load(&published);

	return atomic_load(&announced) != now || is_too_small(now, live);
}

static void announce(struct state *s, unsigned int generation)
{
	s->walk_level = 0;
	s->walk_bucket = 0;
	atomic_store(&announced, generation);
}

/* Go some way to the next generation.  A child that was forked meanwhile finds
 * `growing` free and goes on with what is announced.  `published` comes last,
 * for sp_liveset_insert: what it does not count in older generations is looked
 * for in this filter or a newer one. */
static void grow(struct state *s)
{
	unsigned int next;
	uint64_t census;

	if (!sp_inside_hold(&s->growing))
		return;
	census = atomic_load(&s->census);
	next = atomic_load(&published) + 1;
	if (atomic_load(&announced) != next &&
	    is_too_small(next - 1, (uint32_t)census) && sp_filter_have(next))
		announce(s, next);
	if (atomic_load(&announced) == next && walk(s, next)) {
		if (epoch_of(atomic_load(&s->census)) != epoch_of(census))
			return;
		sp_filter_use(next);
		atomic_store(&published, next);
	}
	sp_inside_give(&s->growing);
}

/* ---- interface ---- */

void sp_liveset_prefetch(const void *p)
{
	unsigned int n = count_levels();
	uint64_t address = (uintptr_t)p, hash = hash_address(address);

	if (!n)
		return;
	__builtin_prefetch(sp_filter_counter(p), 1);
	__builtin_prefetch(bucket_of(hash, n - 1, false), 1);
	__builtin_prefetch(bucket_of(hash, n - 1, true), 1);
}

bool sp_liveset_init(void)
{
	struct state *s;

	if (!have_level(0) || !sp_filter_have(0))
		return false;
	s = sp_map_once(&state, sizeof(*s));
	if (!s)
		return false;
	atomic_store(&s->census, 1ull << 32);
	sp_filter_use(0);
	return true;
}

enum sp_liveset_result sp_liveset_insert(const void *p,
					 const struct sp_live *live,
					 struct sp_live *ret_old)
{
	struct state *s = atomic_load(&state);
	uint64_t address = (uintptr_t)p;
	unsigned int first, last;
	uint32_t epoch, n;
	bool was_there;
	struct place place;
	word *at;

	if (!s || address != (address & ADDRESS_MASK) || !is_address(address))
		return SP_LIVESET_FULL;
	epoch = epoch_of(atomic_load(&s->census));
	was_there = sp_filter_may_have(p) && sp_liveset_take(p, ret_old);
	if (!claim(address, &place))
		return SP_LIVESET_FULL;
	at = &place.bucket->words[place.slot];
	place.bucket->lives[place.slot] = *live;
	first = atomic_load(&published);
	last = atomic_load(&announced);
	for (unsigned int g = first; g <= last; g++)
		sp_filter_adjust(g, address, 1);
	atomic_store(at, make_word(address, last));
	catch_up(at, atomic_load(&announced));
	if (!count_live(s, epoch, 1, &n)) {
		/* I6.  Its counters may be of before: they are left alone. */
		if ((atomic_load(at) & ADDRESS_MASK) == address)
			atomic_store(at, EMPTY);
		return SP_LIVESET_ADDED;
	}
	if (must_grow(n))
		grow(s);
	return was_there ? SP_LIVESET_REPLACED : SP_LIVESET_ADDED;
}

bool sp_liveset_take(const void *p, struct sp_live *ret)
{
	struct state *s = atomic_load(&state);
	uint64_t address = (uintptr_t)p;
	struct sp_live live;
	struct place place;
	unsigned int last;
	uint32_t epoch, n;

	if (!s || address != (address & ADDRESS_MASK) || !is_address(address))
		return false;
	epoch = epoch_of(atomic_load(&s->census));
	if (!seize_anywhere(address, &place, &last))
		return false;
	live = place.bucket->lives[place.slot];
	if (!count_live(s, epoch, -1, &n))
		return false;
	for (unsigned int g = atomic_load(&published); g <= last; g++)
		sp_filter_adjust(g, address, -1);
	atomic_store_explicit(&place.bucket->words[place.slot], EMPTY,
			      memory_order_release);
	*ret = live;
	return true;
}

/* Its word, and what it said; NULL: it is not there.  The id is read as one
 * word: it may be that of another object that came to the place meanwhile, but
 * then it is another id. */
static word *find(uint64_t address, uint64_t id, uint64_t *ret_said)
{
	uint64_t hash = hash_address(address);
	unsigned int left = 2 * SLOTS * count_levels();

	while (left-- > 0) {
		unsigned int look = left / SLOTS, i = left % SLOTS;
		struct bucket *b = bucket_of(hash, look / 2, look % 2 == 0);

		*ret_said = atomic_load(&b->words[i]);
		if ((*ret_said & ADDRESS_MASK) == address &&
		    __atomic_load_n(&b->lives[i].id, __ATOMIC_RELAXED) == id)
			return &b->words[i];
	}
	return NULL;
}

static uint64_t mark_of(uint32_t segment)
{
	return 1 + segment % CARRIED;
}

bool sp_liveset_is_missing(const void *p, uint64_t id, uint32_t segment,
			   struct sp_liveset_place *ret)
{
	ret->word = find((uintptr_t)p, id, &ret->said);
	return ret->word && ret->said >> CARRIED_SHIFT != mark_of(segment);
}

void sp_liveset_carried(const struct sp_liveset_place *place, uint32_t segment)
{
	uint64_t said = place->said;
	const uint64_t below =
		said << (64 - CARRIED_SHIFT) >> (64 - CARRIED_SHIFT);

	atomic_compare_exchange_strong((word *)place->word, &said,
				       below | mark_of(segment)
						       << CARRIED_SHIFT);
}

void sp_liveset_give_left(void)
{
	struct state *s = atomic_load(&state);

	if (s)
		sp_inside_give_left(&s->growing);
}

void sp_liveset_reset(void)
{
	static uint32_t last_epoch = 1;
	struct state *s = atomic_load(&state);

	if (s)
		atomic_store(&s->census, (uint64_t)++last_epoch << 32);
}
