/* SPDX-License-Identifier: MIT */
/* The counters of a thread, beside the same by ordinary arithmetic. */
#include "agent/sys/arch.h"
#include "base/rng.h"
#include "support/test.h"

static const uint64_t numbers[] = {
	0,          1,          2,          16,          100,
	1ull << 12, 1ull << 31, 1ull << 32, 1ull << 62,  (1ull << 63) - 1,
	1ull << 63, -100ull,    -16ull,     -1ull << 62, -1ull,
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
#define DRAWN   100000

static void expect_counters(uint64_t before, uint64_t n)
{
	const uint64_t cost = n ? n : 1;
	uint64_t word = before;

	assert_int_equal(sp_arch_charge(&word, n), (before - cost) >> 63);
	assert_true(word == before - cost);
	sp_arch_uncharge(&word, n);
	assert_true(word == before);
	sp_arch_add(&word, n);
	assert_true(word == before + n);
	assert_true(sp_arch_swap(&word, n) == before + n);
	assert_true(word == n);
}

TEST(counters)
{
	struct sp_rng rng;

	for (unsigned int i = 0; i < NUMBERS; i++)
		for (unsigned int j = 0; j < NUMBERS; j++)
			expect_counters(numbers[i], numbers[j]);
	sp_rng_init(&rng, 23, 1);
	for (int i = 0; i < DRAWN; i++) {
		const uint64_t word = sp_rng_next(&rng);

		expect_counters(word, sp_rng_next(&rng) >> word % 64);
	}
}

/* A signal handler may leave by siglongjmp before a charge is taken back: the
 * next allocation must not pass as if there were 2^64 bytes left. */
TEST(charge_that_is_not_taken_back)
{
	uint64_t word = 10;

	assert_true(sp_arch_charge(&word, 16));
	for (int i = 0; i < 1000; i++)
		assert_true(sp_arch_charge(&word, 16));
}

TEST(low_byte)
{
	for (unsigned int i = 0; i < 256; i++) {
		const uint8_t byte = (uint8_t)i;

		assert_int_equal(sp_arch_is_low(&byte), i < 128);
	}
}

TEST_MAIN(NULL, NULL)
