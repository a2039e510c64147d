/* SPDX-License-Identifier: MIT */
/* The index compared with a plain list, with hashes that are good, bad and
 * equal. */
#include "base/hash.h"
#include "base/index.h"
#include "base/rng.h"
#include "support/test.h"

#define ENTRIES 3000

static uint64_t list[ENTRIES];
static size_t n_list;

static size_t find_in_list(uint64_t value)
{
	size_t i = 0;

	while (i < n_list && list[i] != value)
		i++;
	return i;
}

/* The position of the value, or n_list; *probe is where it belongs. */
static size_t find_in_index(const struct sp_index *index, uint64_t value,
			    uint64_t hash, struct sp_index_probe *probe)
{
	*probe = sp_index_begin(hash);
	while (sp_index_next(index, probe)) {
		assert_true(probe->position < n_list);
		if (list[probe->position] == value)
			return probe->position;
	}
	return n_list;
}

static uint64_t hash_well(uint64_t value)
{
	return sp_hash_word(7, value);
}

/* The home of nearly all is one of the last cells: runs wrap around. */
static uint64_t hash_badly(uint64_t value)
{
	return ~(value % 5 << 16);
}

static uint64_t hash_alike(uint64_t value)
{
	(void)value;
	return 1;
}

static void check_beside_list(uint64_t (*hash)(uint64_t value), size_t n)
{
	struct sp_index index = {0};
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 1);
	n_list = 0;
	while (n_list < n) {
		const uint64_t value = sp_rng_next(&rng) % (2 * n);
		struct sp_index_probe probe;

		assert_int_equal(
			find_in_index(&index, value, hash(value), &probe),
			find_in_list(value));
		assert_int_equal(sp_index_reserve(&index), 0);
		if (find_in_index(&index, value, hash(value), &probe) < n_list)
			continue;
		list[n_list] = value;
		sp_index_put(&index, &probe, n_list++);
		assert_int_equal(index.n, n_list);
		assert_true(2 * index.n <= index.n_cells);
	}
	assert_true(index.n_cells <= 4 * n);
	sp_index_done(&index);
	assert_false(sp_index_next(&index, &(struct sp_index_probe){0}));
}

TEST(beside_list)
{
	check_beside_list(hash_well, ENTRIES);
	check_beside_list(hash_badly, 500);
	check_beside_list(hash_alike, 300);
}

/* Growing keeps each one once: a hash gives as many positions as it has. */
TEST(each_once)
{
	FREED_BY(sp_index_done) struct sp_index index = {0};
	struct sp_index_probe probe;
	size_t seen = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		assert_int_equal(sp_index_reserve(&index), 0);
		probe = sp_index_begin(i % 3 << 16);
		while (sp_index_next(&index, &probe))
			;
		sp_index_put(&index, &probe, i);
	}
	for (uint64_t h = 0; h < 3; h++) {
		probe = sp_index_begin(h << 16);
		while (sp_index_next(&index, &probe))
			seen += probe.position % 3 == h;
	}
	assert_int_equal(seen, ENTRIES);
}

TEST_MAIN(NULL, NULL)
