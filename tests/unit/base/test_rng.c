/* SPDX-License-Identifier: MIT */
/* The published generators, and independence of neighbouring streams. */
#include <math.h>

#include "base/array.h"
#include "base/rng.h"
#include "support/test.h"

/* First outputs published with the algorithms' reference code. */
TEST(splitmix64)
{
	static const uint64_t want[] = {
		6457827717110365317u,  3203168211198807973u,
		9817491932198370423u,  4593380528125082431u,
		16408922859458223821u,
	};
	uint64_t s = 1234567;

	for (size_t i = 0; i < 5; i++)
		assert_true(sp_splitmix64(&s) == want[i]);
}

TEST(xoshiro256pp)
{
	static const uint64_t want[] = {
		41943041u,
		58720359u,
		3588806011781223u,
		3591011842654386u,
		9228616714210784205u,
		9973669472204895162u,
		14011001112246962877u,
		12406186145184390807u,
		15849039046786891736u,
		10450023813501588000u,
	};
	struct sp_rng rng = {{1, 2, 3, 4}};

	for (size_t i = 0; i < 10; i++)
		assert_true(sp_rng_next(&rng) == want[i]);
}

/* 64 seeds by 64 streams by 64 outputs: 2^18 numbers of 64 bits, all distinct
 * unless streams overlap (by accident: 2^-29). */
TEST(streams_do_not_overlap)
{
	size_t n = 64 * 64 * 64, at = 0;
	FREED uint64_t *all = malloc(n * sizeof(*all));

	assert_non_null(all);
	for (uint64_t seed = 0; seed < 64; seed++) {
		for (uint64_t stream = 0; stream < 64; stream++) {
			struct sp_rng rng;

			sp_rng_init(&rng, seed, stream);
			for (int i = 0; i < 64; i++)
				all[at++] = sp_rng_next(&rng);
		}
	}
	qsort(all, n, sizeof(*all), sp_array_compare_u64);
	for (size_t i = 1; i < n; i++)
		assert_true(all[i] != all[i - 1]);
}

TEST(repeatable)
{
	struct sp_rng a, b;

	sp_rng_init(&a, 42, (3ull << 32) | 7);
	sp_rng_init(&b, 42, (3ull << 32) | 7);
	for (int i = 0; i < 100; i++)
		assert_true(sp_rng_next(&a) == sp_rng_next(&b));
}

/* Bit by bit, the first outputs of streams with neighbouring numbers: each bit
 * is a fair coin and agrees with the next stream's half of the time.  128
 * statistics, |z| <= 6: 2.5e-7. */
TEST(first_outputs)
{
	enum { N = 65536 };
	unsigned int ones[64] = {0}, same[64] = {0};
	uint64_t previous = 0;

	for (uint64_t stream = 0; stream <= N; stream++) {
		struct sp_rng rng;
		uint64_t v;

		sp_rng_init(&rng, 1, stream);
		v = sp_rng_next(&rng);
		for (int bit = 0; stream && bit < 64; bit++) {
			ones[bit] += v >> bit & 1;
			same[bit] += ~(v ^ previous) >> bit & 1;
		}
		previous = v;
	}
	for (int bit = 0; bit < 64; bit++) {
		assert_true(fabs(ones[bit] - N / 2.0) <= 6 * sqrt(N / 4.0));
		assert_true(fabs(same[bit] - N / 2.0) <= 6 * sqrt(N / 4.0));
	}
}

TEST_MAIN(NULL, NULL)
