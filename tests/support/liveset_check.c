/* SPDX-License-Identifier: MIT */
#include "support/liveset_check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sys/sys.h"
#include "agent/thread/thread.h"

/* thread_life.c has it in the library. */
_Thread_local struct sp_thread sp_thread;

struct liveset_work liveset_work;

static uint32_t maps_allowed = UINT32_MAX;

static void *limited_map(size_t bytes)
{
	liveset_work.maps++;
	if (maps_allowed == 0)
		return NULL;
	if (maps_allowed != UINT32_MAX)
		maps_allowed--;
	return sp_sys_map_wiped(bytes);
}

_Thread_local void (*liveset_check_step)(void);

static void atomic_step(void)
{
	if (liveset_check_step)
		liveset_check_step();
}

#include "support/atomic_steps.h"
#define sp_sys_map_wiped limited_map
#include "agent/file/filter.c"
#include "agent/file/livetable.c"

/* What the set does, counted. */
static bool settle(unsigned int generation, unsigned int *pages)
{
	const unsigned int before = *pages;
	const bool has_all = sp_filter_settle(generation, pages);

	liveset_work.settled += *pages - before;
	return has_all;
}

static bool release_counters(unsigned int generation, unsigned int *pages)
{
	const unsigned int before = *pages;
	const bool has_none = sp_filter_release(generation, pages);

	liveset_work.released += (*pages - before) * (size_t)PAGE_BYTES;
	return has_none;
}

static void release(unsigned int table, size_t from, size_t to)
{
	liveset_work.released +=
		released_bytes(table, to) - released_bytes(table, from);
	sp_livetable_release(table, from, to);
}

static void count_bucket(const struct sp_liveplace *place)
{
	liveset_work.buckets += place->bucket != liveset_work.last_bucket;
	liveset_work.last_bucket = place->bucket;
}

static void begin_place(struct sp_liveplace *place, unsigned int table,
			uint64_t hash)
{
	sp_livetable_begin(place, table, hash);
	count_bucket(place);
}

static bool next_place(struct sp_liveplace *place)
{
	const bool is_there = sp_livetable_next(place);

	if (is_there)
		count_bucket(place);
	return is_there;
}

static bool claim(struct sp_liveplace *place, unsigned int table, uint64_t hash)
{
	liveset_work.claims++;
	return sp_livetable_claim(place, table, hash);
}

#define sp_filter_settle  settle
#define sp_filter_release release_counters
#include "agent/file/livefilter.c"
#define sp_livetable_release release
#define sp_livetable_begin   begin_place
#define sp_livetable_next    next_place
#define sp_livetable_claim   claim
#include "agent/file/liveset.c"
#include "base/order.h"

void liveset_check_allow_maps(uint32_t n)
{
	maps_allowed = n;
}

size_t liveset_check_index(uint64_t address, unsigned int bits)
{
	return (size_t)((address * SP_FILTER_FACTOR + SP_FILTER_TERM) *
				address >>
			(64 - bits));
}

static void forget_map(void *_Atomic *slot, size_t bytes)
{
	void *map = atomic_exchange(slot, NULL);

	if (map)
		SP_SYS2(munmap, map, bytes);
}

void liveset_check_clear(void)
{
	__atomic_store_n(&sp_filter, nothing + 63, __ATOMIC_SEQ_CST);
	atomic_store(&current, 0);
	atomic_store(&newest, 0);
	atomic_store(&has_copies, false);
	atomic_store(&first_released, 0);
	forget_map(&state, sizeof(struct state));
	for (unsigned int i = 0; i < SP_LIVETABLE_COUNT; i++) {
		atomic_store(&walked[i], 0);
		forget_map(&tables[i], sp_livetable_bytes(i));
	}
	for (unsigned int i = 0; i < SP_FILTER_GENERATIONS; i++)
		forget_map(&generations[i], sp_filter_counters_of(i) + 64);
	maps_allowed = UINT32_MAX;
}

/* An address, and the table that it is in. */
struct found {
	uint64_t address;
	unsigned int table;
};

/* Does a look get to that place? */
static bool is_reached(const struct sp_liveplace *p, uint64_t address)
{
	struct sp_liveplace q;

	sp_livetable_begin(&q, p->table, sp_livetable_hash(address));
	while (q.bucket != p->bucket)
		if (!sp_livetable_next(&q))
			return false;
	return true;
}

static void collect_word(struct liveset_check *ret, struct found *found,
			 const struct sp_liveplace *p)
{
	const uint64_t w = sp_livetable_content(p), address = address_of(w);

	ret->busy += w == BUSY;
	if (!sp_liveword_is_address(address))
		return;
	ret->in_transit += w != (address | LIVE);
	if (w != (address | LIVE))
		return;
	found[ret->addresses++] = (struct found){address, p->table};
	ret->misplaced += !is_reached(p, address);
}

/* All entries, and what is wrong with single ones. */
static void collect(struct liveset_check *ret, struct found *found)
{
	struct sp_liveplace p;

	for (p.table = 0; p.table <= atomic_load(&newest); p.table++) {
		p.bucket = sp_livetable_first(p.table);
		for (size_t n = sp_livetable_buckets(p.table); n--; p.bucket++)
			for (p.slot = 0; p.slot < SLOTS; p.slot++)
				collect_word(ret, found, &p);
	}
}

/* What has passed all buckets of the tables, in sum. */
static uint64_t sum_passed(void)
{
	uint64_t sum = 0;

	for (unsigned int t = atomic_load(&current); t <= atomic_load(&newest);
	     t++) {
		const struct sp_livetable_bucket *b = sp_livetable_first(t);
		const size_t n = sp_livetable_buckets(t) * SLOTS;

		for (size_t i = 0; i < n; i++) {
			const uint64_t w =
				atomic_load(&b[i / SLOTS].words[i % SLOTS]);

			sum += w >> PASSED_SHIFT & PASSED_MAX;
			sum += w >> (PASSED_SHIFT + PASSED_BITS) & PASSED_MAX;
		}
	}
	return sum;
}

/* The counters of that generation beside those of the tables up to its last. */
static void recount(struct liveset_check *ret, const struct found *found,
		    unsigned int generation)
{
	size_t n = sp_filter_counters_of(generation);
	const counter *counters = first_counter(generation);
	unsigned int bits = 64 - shift_of(generation);
	uint32_t *naive = malloc(n * sizeof(*naive));

	memset(naive, 0, n * sizeof(*naive));
	for (uint64_t i = 0; i < ret->addresses; i++)
		if (generation_of(found[i].table) >= generation)
			naive[liveset_check_index(found[i].address, bits)]++;
	ret->counters = n;
	ret->nonzero = 0;
	ret->unknown = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t byte = atomic_load(&counters[i]);
		const uint8_t c = byte & COUNTER_MAX;

		ret->nonzero += c != 0;
		ret->unknown += is_unknown(byte);
		ret->sticky += c == COUNTER_MAX;
		ret->wrong += c != naive[i] && c != COUNTER_MAX;
	}
	free(naive);
}

SP_ORDER(compare, struct found, SP_UP(address));

void liveset_check(struct liveset_check *ret)
{
	struct state *s = atomic_load(&state);
	const unsigned int first = atomic_load(&current);
	struct found *found;
	uint64_t places = 0;

	memset(ret, 0, sizeof(*ret));
	ret->live = (uint32_t)atomic_load(&s->census);
	ret->table = first;
	ret->tables = atomic_load(&newest) + 1 - first;
	for (unsigned int t = 0; t <= atomic_load(&newest); t++)
		places += sp_livetable_buckets(t) * SLOTS;
	for (unsigned int t = first; t < first + ret->tables; t++)
		ret->table_bytes += sp_livetable_bytes(t);
	found = malloc(places * sizeof(*found));
	collect(ret, found);
	qsort(found, ret->addresses, sizeof(*found), compare);
	for (uint64_t i = 1; i < ret->addresses; i++)
		ret->duplicates += compare(&found[i], &found[i - 1]) == 0;
	for (unsigned int t = first + ret->tables; t-- > first;)
		recount(ret, found, generation_of(t));
	ret->passed = sum_passed();
	free(found);
}
