/* SPDX-License-Identifier: MIT */
/*
 * The draw of processes: each fraction draws its share of all numbers, and the
 * numbers at its edge. False alarm: 6e-6; 1 s.
 *
 * 10 fractions, 4,000,000 draws each, |z| at most 5 (5.7e-7 each).  A fraction
 * of 5 % that is off by a tenth of a percent of itself has z = 0.5, one that is
 * off by 5 % of itself z = 23.  Drawing by the lower half of the number, or by
 * hundredths of a percent, fails.
 */
#include <math.h>

#include "agent/process/process.h"
#include "base/parse.h"
#include "base/rng.h"
#include "support/test.h"

#define DRAWS 4000000

typedef bool draw_fn(uint64_t random, uint64_t millionths);

static bool draw_by_lower_half(uint64_t random, uint64_t millionths)
{
	return (random & 0xffffffffu) * SP_PARSE_FRACTION_ALL >> 33 <
	       millionths;
}

static bool draw_by_hundredths(uint64_t random, uint64_t millionths)
{
	return (unsigned __int128)random * 10000 >> 64 < millionths / 100;
}

static const uint64_t fractions[] = {1,      50,     2500,   12345,  50000,
				     100000, 250000, 333333, 500000, 999950};

#define N_FRACTIONS (sizeof(fractions) / sizeof(*fractions))

/* The largest |z| of all fractions. */
static double worst_z(draw_fn *draw)
{
	double worst = 0;

	for (size_t i = 0; i < N_FRACTIONS; i++) {
		const double p = (double)fractions[i] / SP_PARSE_FRACTION_ALL;
		struct sp_rng rng;
		double drawn = 0, z;

		sp_rng_init(&rng, 7, i);
		for (int k = 0; k < DRAWS; k++)
			drawn += draw(sp_rng_next(&rng), fractions[i]);
		z = (drawn - DRAWS * p) / sqrt(DRAWS * p * (1 - p));
		worst = fmax(worst, fabs(z));
	}
	return worst;
}

TEST(share)
{
	const double z = worst_z(sp_process_is_drawn);

	print_message("worst z %.2f\n", z);
	assert_true(z <= 5);
}

TEST(wrong_draws_are_found)
{
	assert_true(worst_z(draw_by_lower_half) > 5);
	assert_true(worst_z(draw_by_hundredths) > 5);
}

TEST(edges)
{
	assert_true(sp_process_is_drawn(0, 1));
	assert_false(sp_process_is_drawn(UINT64_MAX, 999999));
	assert_true(sp_process_is_drawn(UINT64_MAX, SP_PARSE_FRACTION_ALL));
	assert_true(sp_process_is_drawn(UINT64_MAX / 2, 500000));
	assert_false(sp_process_is_drawn(UINT64_MAX / 2 + 1, 500000));
}

TEST_MAIN(NULL, NULL)
