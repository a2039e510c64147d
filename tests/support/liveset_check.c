/* SPDX-License-Identifier: MIT */
#include "support/liveset_check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sys/sys.h"
#include "agent/thread/thread.h"

/* agent.c has it in the library. */
_Thread_local struct sp_thread sp_thread;

static uint32_t maps_allowed = UINT32_MAX;

static void *limited_map(size_t bytes)
{
	if (maps_allowed == 0)
		return NULL;
	if (maps_allowed != UINT32_MAX)
		maps_allowed--;
	return sp_sys_map_wiped(bytes);
}

_Thread_local void (*liveset_check_step)(void);

static void step(void)
{
	if (liveset_check_step)
		liveset_check_step();
}

static bool and_step(bool result)
{
	step();
	return result;
}

/* What the compilers' own macros are made of. */
#ifdef __clang__
#define RAW_CAS(strong, p, old, new, yes, no)                                  \
	__c11_atomic_compare_exchange_##strong(p, old, new, yes, no)
#define RAW_LOAD(p, order) __c11_atomic_load(p, order)
#else
#define RAW_LOAD(p, order) __atomic_load_n(p, order)
#define RAW_CAS(strong, p, old, new, yes, no)                                  \
	__atomic_compare_exchange_n(p, old, new, IS_##strong, yes, no)
#define IS_strong 0
#define IS_weak   1
#endif

#undef atomic_load_explicit
#undef atomic_load
#undef atomic_store
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(p, order)                                         \
	__extension__({                                                        \
		__auto_type loaded = RAW_LOAD(p, order);                       \
		step();                                                        \
		loaded;                                                        \
	})
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)
#define atomic_store(p, v)                                                     \
	(step(), atomic_store_explicit(p, v, memory_order_seq_cst))
#define atomic_compare_exchange_strong_explicit(p, old, new, yes, no)          \
	(step(), and_step(RAW_CAS(strong, p, old, new, yes, no)))
#define atomic_compare_exchange_weak_explicit(p, old, new, yes, no)            \
	(step(), and_step(RAW_CAS(weak, p, old, new, yes, no)))
#define atomic_compare_exchange_strong(p, old, new)                            \
	atomic_compare_exchange_strong_explicit(                               \
		p, old, new, memory_order_seq_cst, memory_order_seq_cst)
#define atomic_compare_exchange_weak(p, old, new)                              \
	atomic_compare_exchange_weak_explicit(                                 \
		p, old, new, memory_order_seq_cst, memory_order_seq_cst)
#define sp_sys_map_wiped limited_map
#include "agent/file/filter.c"
#include "agent/file/liveset.c"

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
	atomic_store(&published, 0);
	atomic_store(&announced, 0);
	forget_map(&state, sizeof(struct state));
	for (unsigned int i = 0; i < LEVELS; i++)
		forget_map(&levels[i], buckets_of(i) * sizeof(struct bucket));
	for (unsigned int i = 0; i < SP_FILTER_GENERATIONS; i++)
		forget_map(&generations[i], sp_filter_counters_of(i) + 64);
	maps_allowed = UINT32_MAX;
}

/* All words that are addresses, and what is wrong with single ones. */
static void collect(struct liveset_check *ret, uint64_t *found)
{
	for (unsigned int level = 0; level < ret->levels; level++) {
		struct bucket *first = first_bucket(level);

		for (size_t i = 0; i < buckets_of(level) * SLOTS; i++) {
			const struct bucket *bucket = &first[i / SLOTS];
			uint64_t w = atomic_load(&bucket->words[i % SLOTS]);
			uint64_t hash = hash_address(w & ADDRESS_MASK);

			ret->busy += w == BUSY;
			if (!is_address(w))
				continue;
			found[ret->addresses++] = w;
			ret->uncounted += counted_up_to(w) < ret->generation;
			ret->misplaced +=
				bucket != bucket_of(hash, level, false) &&
				bucket != bucket_of(hash, level, true);
		}
	}
}

static void recount(struct liveset_check *ret, const uint64_t *found,
		    unsigned int generation)
{
	size_t n = sp_filter_counters_of(generation);
	const counter *counters = first_counter(generation);
	unsigned int bits = 64 - shift_of(generation);
	uint32_t *naive = malloc(n * sizeof(*naive));

	memset(naive, 0, n * sizeof(*naive));
	for (uint64_t i = 0; i < ret->addresses; i++)
		if (counted_up_to(found[i]) >= generation)
			naive[liveset_check_index(found[i] & ADDRESS_MASK,
						  bits)]++;
	ret->counters = n;
	ret->nonzero = 0;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = atomic_load(&counters[i]);

		ret->nonzero += c != 0;
		ret->sticky += c == COUNTER_MAX;
		ret->wrong += c != naive[i] && c != COUNTER_MAX;
	}
	free(naive);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a & ADDRESS_MASK;
	uint64_t y = *(const uint64_t *)b & ADDRESS_MASK;

	return x < y ? -1 : x > y;
}

void liveset_check(struct liveset_check *ret)
{
	struct state *s = atomic_load(&state);
	uint64_t *found;

	memset(ret, 0, sizeof(*ret));
	ret->live = (uint32_t)atomic_load(&s->census);
	ret->levels = count_levels();
	ret->generation = atomic_load(&published);
	for (unsigned int i = 0; i < ret->levels; i++)
		ret->entries += buckets_of(i) * SLOTS;
	ret->mapped_bytes =
		ret->entries * (sizeof(word) + sizeof(struct sp_live));
	for (unsigned int i = 0; i < SP_FILTER_GENERATIONS; i++)
		if (atomic_load(&generations[i]))
			ret->mapped_bytes += sp_filter_counters_of(i) + 64;
	found = malloc(ret->entries * sizeof(*found));
	collect(ret, found);
	qsort(found, ret->addresses, sizeof(*found), compare);
	for (uint64_t i = 1; i < ret->addresses; i++)
		ret->duplicates += compare(&found[i], &found[i - 1]) == 0;
	if (atomic_load(&announced) != ret->generation)
		recount(ret, found, atomic_load(&announced));
	recount(ret, found, ret->generation);
	free(found);
}
