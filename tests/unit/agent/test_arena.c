/* SPDX-License-Identifier: MIT */
/* Memory of the agent is aligned, zeroed, never shared, limited, and known. */
#include <pthread.h>

#include "agent/sys/arena.h"
#include "agent/sys/sys.h"
#include "base/rng.h"
#include "support/test.h"

#define THREADS    4
#define OBJECTS    20000u
#define OBJECT_MAX (128u * 1024)

struct worker {
	unsigned int index;
	struct {
		uint8_t *at;
		size_t bytes;
	} object[OBJECTS];
	unsigned int not_zero;
};

static void *allocate(void *arg)
{
	struct worker *w = arg;
	struct sp_rng rng;

	sp_rng_init(&rng, 10, w->index);
	for (unsigned int i = 0; i < OBJECTS; i++) {
		size_t n = 1 + sp_rng_next(&rng) % (i % 64 ? 64 : 4000);
		uint8_t *p = sp_arena_get(SP_ARENA_WALKS, n);

		w->object[i].at = p;
		w->object[i].bytes = n;
		for (size_t k = 0; p && k < n; k++)
			w->not_zero += p[k] != 0;
		if (p)
			memset(p, (int)(1 + w->index * 50 + i % 50), n);
	}
	return NULL;
}

/* Each object was zero when it came and has kept what its owner stored. */
TEST(threads)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		assert_int_equal(pthread_create(&threads[i], NULL, allocate,
						&workers[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < THREADS; i++) {
		const struct worker *w = &workers[i];

		assert_int_equal(w->not_zero, 0);
		for (unsigned int k = 0; k < OBJECTS; k++) {
			assert_non_null(w->object[k].at);
			assert_int_equal((uintptr_t)w->object[k].at % 16, 0);
			for (size_t b = 0; b < w->object[k].bytes; b++)
				assert_int_equal(w->object[k].at[b],
						 1 + i * 50 + k % 50);
		}
	}
}

TEST(sizes)
{
	uint8_t *p;

	assert_null(sp_arena_get(SP_ARENA_WALKS, OBJECT_MAX + 1));
	assert_null(sp_arena_get(SP_ARENA_WALKS, SIZE_MAX));
	assert_null(sp_arena_get(SP_ARENA_WALKS, SIZE_MAX - 15));
	p = sp_arena_get(SP_ARENA_WALKS, OBJECT_MAX);
	assert_non_null(p);
	p[0] = p[OBJECT_MAX - 1] = 1;
}

/* A use that has used up its budget takes nothing from another. */
TEST(budgets)
{
	static const size_t budgets[SP_ARENA_USES] = {
		[SP_ARENA_MODULES] = 16u << 20,
		[SP_ARENA_WALKS] = SP_ARENA_WALKS_BYTES,
		[SP_ARENA_CLASSES] = SP_ARENA_CLASSES_BYTES,
		[SP_ARENA_LAWS] = 1u << 20,
		[SP_ARENA_SHARERS] = 32u << 20,
		[SP_ARENA_PYTHON] = 3u << 20,
	};

	for (unsigned int use = 0; use < SP_ARENA_USES; use++) {
		size_t got = 0;

		while (sp_arena_get((enum sp_arena_use)use, 1008))
			got += 1008;
		/* The tests before took a part of one. */
		assert_in_range(got,
				use == SP_ARENA_WALKS ? 0 : budgets[use] - 1008,
				budgets[use]);
		/* It stays so. */
		for (int i = 0; i < 1000; i++)
			assert_null(sp_arena_get((enum sp_arena_use)use, 1008));
	}
}

static uint64_t known_bytes(const void *p)
{
	uint64_t n, bytes = 0;
	const struct sp_control_range *ranges = sp_sys_ranges(&n);

	for (uint64_t i = 0; i < n; i++)
		if (ranges[i].start == (uintptr_t)p)
			bytes += ranges[i].bytes;
	return bytes;
}

/* However often memory was given back. */
TEST(ranges)
{
	const size_t page = sp_sys_page_bytes();
	void *other = sp_sys_map(2 * page + 1), *p;

	assert_int_equal(known_bytes(other), 3 * page);
	for (unsigned int i = 0; i < 5000; i++) {
		p = sp_sys_map(1);
		assert_non_null(p);
		assert_int_equal(known_bytes(p), page);
		sp_sys_unmap(p, 1);
		assert_int_equal(known_bytes(p), 0);
	}
	assert_int_equal(known_bytes(other), 3 * page);
	sp_sys_unmap(other, 2 * page + 1);
}

TEST_MAIN(NULL, NULL)
