/* SPDX-License-Identifier: MIT */
/*
 * Addresses to ranges, against a model; the ends of the address space; an empty
 * map.
 */

#include "symbols/rangemap.h"
#include "support/test.h"

#define NONE UINT32_MAX

static bool covers(const struct sp_range *r, uint64_t address)
{
	return r->start <= address && address < r->end;
}

static bool is_better(const struct sp_range *a, const struct sp_range *b)
{
	if (a->start != b->start)
		return a->start > b->start;
	if (a->end != b->end)
		return a->end < b->end;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->value < b->value;
}

/* Whether something starts after the label and not after the address, or a
 * range covers the label. */
static bool is_label_cut(const struct sp_range *ranges, size_t n,
			 const struct sp_range *label, uint64_t address)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct sp_range *r = &ranges[i];

		if (r->start > label->start && r->start <= address)
			return true;
		if (!r->is_label && covers(r, label->start))
			return true;
	}
	return false;
}

/* The definition in the header, word by word. */
static uint32_t model_find(const struct sp_range *ranges, size_t n,
			   uint64_t address)
{
	const struct sp_range *best = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct sp_range *r = &ranges[i];

		if (!covers(r, address) ||
		    (r->is_label && is_label_cut(ranges, n, r, address)))
			continue;
		if (!best || (best->is_label && !r->is_label) ||
		    (best->is_label == r->is_label && is_better(r, best)))
			best = r;
	}
	return best ? best->value : NONE;
}

static uint32_t find(const struct sp_rangemap *map, uint64_t address)
{
	uint32_t value;

	return sp_rangemap_find(map, address, &value) ? value : NONE;
}

static void check_against_model(const struct sp_range *ranges, size_t n,
				uint64_t last)
{
	FREED_BY(sp_rangemap_clear) struct sp_rangemap map = {0};
	uint64_t address;
	size_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(sp_rangemap_add(&map, ranges[i]), 0);
	assert_int_equal(sp_rangemap_seal(&map), 0);
	for (address = 0; address <= last; address++)
		assert_int_equal(find(&map, address),
				 model_find(ranges, n, address));
}

TEST(random_ranges_match_model)
{
	struct sp_range ranges[12];
	size_t i, n;
	int round;

	srandom(20240611);
	for (round = 0; round < 20000; round++) {
		n = (size_t)(random() % 12) + 1;
		for (i = 0; i < n; i++) {
			uint64_t start = (uint64_t)(random() % 24);

			ranges[i] = (struct sp_range){
				.start = start,
				.end = start + (uint64_t)(random() % 12),
				.value = (uint32_t)i,
				.rank = (uint16_t)(random() % 3),
				.is_label = random() % 3 == 0,
			};
			/* An empty range is no range to the model either. */
			if (ranges[i].end == start)
				ranges[i].end++;
		}
		check_against_model(ranges, n, 40);
	}
}

TEST(ends_of_the_address_space)
{
	const struct sp_range ranges[] = {
		{.start = 0, .end = 1, .value = 7},
		{.start = UINT64_MAX - 1, .end = UINT64_MAX, .value = 8},
		{.start = 5, .end = 5, .value = 9},
		{.start = 9, .end = 3, .value = 10},
	};
	FREED_BY(sp_rangemap_clear) struct sp_rangemap map = {0};
	size_t i;

	for (i = 0; i < 4; i++)
		assert_int_equal(sp_rangemap_add(&map, ranges[i]), 0);
	assert_int_equal(sp_rangemap_seal(&map), 0);
	assert_int_equal(find(&map, 0), 7);
	assert_int_equal(find(&map, 1), NONE);
	assert_int_equal(find(&map, 5), NONE);
	assert_int_equal(find(&map, UINT64_MAX - 1), 8);
	assert_int_equal(find(&map, UINT64_MAX), NONE);
}

TEST(empty_map_finds_nothing)
{
	FREED_BY(sp_rangemap_clear) struct sp_rangemap map = {0};

	assert_int_equal(sp_rangemap_seal(&map), 0);
	assert_int_equal(find(&map, 0), NONE);
}

TEST_MAIN(NULL, NULL)
