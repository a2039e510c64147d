/* SPDX-License-Identifier: MIT */
/* The first place that a binary search finds compared with a walk from the
 * beginning: of ascending numbers with many that are equal, for keys below, in
 * and above them.  It reads nothing outside of the list, whatever its order.
 */
#include <stdbool.h>

#include "base/bisect.h"
#include "base/rng.h"
#include "support/test.h"

#define LENGTH_MAX 70
#define ROUNDS     20000

static uint64_t list[LENGTH_MAX];

static size_t walk(size_t n, uint64_t key, bool with_equal)
{
	size_t i = 0;

	while (i < n && (list[i] < key || (with_equal && list[i] == key)))
		i++;
	return i;
}

static uint64_t read_inside(size_t i, size_t n)
{
	assert_true(i < n);
	return list[i];
}

TEST(agrees_with_a_walk)
{
	struct sp_rng rng;
	size_t at;

	sp_rng_init(&rng, 1, 0);
	for (int round = 0; round < ROUNDS; round++) {
		const size_t n = sp_rng_next(&rng) % (LENGTH_MAX + 1);
		uint64_t number = 1;

		for (size_t i = 0; i < n; i++)
			list[i] = number += sp_rng_next(&rng) % 3;
		for (uint64_t key = 0; key <= number + 1; key++) {
			SP_LOWER_BOUND(at, n, list[at] < key);
			assert_int_equal(at, walk(n, key, false));
			SP_LOWER_BOUND(at, n, list[at] <= key);
			assert_int_equal(at, walk(n, key, true));
		}
	}
}

TEST(stays_inside_a_list_out_of_order)
{
	struct sp_rng rng;
	size_t at;

	sp_rng_init(&rng, 2, 0);
	for (int round = 0; round < ROUNDS; round++) {
		const size_t n = sp_rng_next(&rng) % (LENGTH_MAX + 1);

		for (size_t i = 0; i < n; i++)
			list[i] = sp_rng_next(&rng) % 8;
		SP_LOWER_BOUND(at, n, read_inside(at, n) < 4);
		assert_true(at <= n);
	}
}

TEST_MAIN(NULL, NULL)
