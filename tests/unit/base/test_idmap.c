/* SPDX-License-Identifier: MIT */
/* The map compared with a plain list of pairs. */
#include "base/idmap.h"
#include "base/rng.h"
#include "support/test.h"

#define ENTRIES 3000

static uint32_t model_ids[ENTRIES];

static uint32_t model_find(size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (model_ids[i] == id)
			return (uint32_t)i;
	return UINT32_MAX;
}

TEST(empty)
{
	struct sp_idmap map = {0};

	assert_true(sp_idmap_find(&map, 0) == UINT32_MAX);
	assert_true(sp_idmap_find(&map, 7) == UINT32_MAX);
	sp_idmap_done(&map);
	assert_int_equal(sp_idmap_add(&map, 7, 1), 0);
	assert_int_equal(sp_idmap_find(&map, 7), 1);
	sp_idmap_done(&map);
	assert_true(sp_idmap_find(&map, 7) == UINT32_MAX);
}

/* Ids from `draw`, each compared with the list before and after. */
static void check_against_list(uint32_t (*draw)(struct sp_rng *rng, size_t i))
{
	FREED_BY(sp_idmap_done) struct sp_idmap map = {0};
	struct sp_rng rng;
	size_t n = 0;

	sp_rng_init(&rng, 4, 1);
	for (size_t i = 0; n < ENTRIES; i++) {
		uint32_t id = draw(&rng, i), probe = draw(&rng, i + 100);

		assert_true(sp_idmap_find(&map, probe) == model_find(n, probe));
		if (model_find(n, id) != UINT32_MAX)
			continue;
		assert_true(sp_idmap_find(&map, id) == UINT32_MAX);
		assert_int_equal(sp_idmap_add(&map, id, (uint32_t)n), 0);
		model_ids[n++] = id;
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sp_idmap_find(&map, model_ids[i]), i);
	/* Memory follows the entries, not the ids. */
	assert_int_equal(map.n_ids, ENTRIES);
	assert_true(map.index.n_cells <= 4 * ENTRIES);
	assert_true(map.n_small <= 4 * ENTRIES);
}

static uint32_t draw_any(struct sp_rng *rng, size_t i)
{
	(void)i;
	return (uint32_t)sp_rng_next(rng);
}

static uint32_t draw_dense(struct sp_rng *rng, size_t i)
{
	(void)rng;
	return (uint32_t)i;
}

/* Ids that differ in high bits only. */
static uint32_t draw_strided(struct sp_rng *rng, size_t i)
{
	(void)rng;
	return (uint32_t)i << 20 | (uint32_t)(i >> 12);
}

/* Around the ends of the range, with many repetitions. */
static uint32_t draw_ends(struct sp_rng *rng, size_t i)
{
	uint32_t v = (uint32_t)sp_rng_next(rng) % 4000;

	(void)i;
	return v & 1 ? UINT32_MAX - v : v;
}

TEST(against_list)
{
	check_against_list(draw_any);
	check_against_list(draw_dense);
	check_against_list(draw_strided);
	check_against_list(draw_ends);
}

TEST_MAIN(NULL, NULL)
