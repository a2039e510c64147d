/* SPDX-License-Identifier: MIT */
/* The running check: its definition, and what it promises to notice. */
#include "base/hash.h"
#include "base/rng.h"
#include "support/test.h"

/* Words collected byte by byte, little-endian, the last one padded. */
static uint64_t model_bytes(uint64_t h, const uint8_t *p, size_t n)
{
	uint64_t word = 0;

	for (size_t i = 0; i < n; i++) {
		word |= (uint64_t)p[i] << (8 * (i % 8));
		if (i % 8 == 7 || i + 1 == n) {
			h = (h ^ word) * 0x9e3779b97f4a7c15ull;
			h ^= h >> 29;
			word = 0;
		}
	}
	return h;
}

TEST(model)
{
	uint8_t bytes[256];
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)sp_rng_next(&rng);
	for (size_t from = 0; from < 9; from++) {
		for (size_t n = 0; from + n <= sizeof(bytes); n++) {
			uint64_t h = sp_rng_next(&rng);
			uint64_t model = model_bytes(h, bytes + from, n);

			assert_true(sp_hash_bytes(h, bytes + from, n) == model);
			if (from < 8 && n < 8)
				continue;
			assert_true(sp_hash_bytes_inside(h, bytes + from, n) ==
				    model);
		}
	}
	assert_true(sp_hash_bytes(77, NULL, 0) == 77);
	/* The examples of docs/format.md. */
	assert_true(sp_hash_word(0, 1) == 0x9e3779bd8ef1b1deull);
	assert_true(sp_hash_bytes(0, "sampleprof", 10) ==
		    0x2b0e5b4cbee1b418ull);
}

/* The step backwards: it exists, so two inputs that differ in one word never
 * meet again. */
static uint64_t unhash_word(uint64_t h, uint64_t word)
{
	uint64_t inverse = 1;

	h ^= h >> 29 ^ h >> 58;
	/* Newton: each step doubles the number of right bits. */
	for (int i = 0; i < 6; i++)
		inverse *= 2 - SP_HASH_MULTIPLIER * inverse;
	return (h * inverse) ^ word;
}

TEST(bijection)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 2);
	for (int i = 0; i < 100000; i++) {
		uint64_t h = sp_rng_next(&rng), word = sp_rng_next(&rng);
		uint64_t next = sp_hash_word(h, word);

		assert_true(unhash_word(next, word) == h);
		assert_true(unhash_word(next, h) == word);
	}
}

/* A record carries the top 16 bits: a flipped bit of the last word shows in
 * them, whatever came before. */
TEST(last_word_shows)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 3);
	for (int i = 0; i < 20000; i++) {
		uint64_t h = sp_rng_next(&rng), word = sp_rng_next(&rng);
		uint64_t good = sp_hash_word(h, word) >> 48;

		for (unsigned int bit = 0; bit < 64; bit++)
			assert_true(sp_hash_word(h, word ^ 1ull << bit) >> 48 !=
				    good);
	}
}

TEST_MAIN(NULL, NULL)
