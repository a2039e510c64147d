/* SPDX-License-Identifier: MIT */
/* Variable-length integers and the bounded cursor. */
#include "base/bytes.h"
#include "base/rng.h"
#include "support/test.h"

/* The definition in plain arithmetic: digits of base 128. */
static size_t model_put(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	do {
		p[n++] = (uint8_t)(v % 128 + (v / 128 ? 128 : 0));
		v /= 128;
	} while (v);
	return n;
}

static void check_value(uint64_t v)
{
	uint8_t want[16], got[16];
	size_t n = model_put(want, v);
	struct sp_slice s = {got, got + sizeof(got), false};

	memset(got, 0xaa, sizeof(got));
	assert_ptr_equal(sp_varint_put(got, v), got + n);
	assert_memory_equal(got, want, n);
	assert_int_equal(got[n], 0xaa);
	assert_int_equal(sp_varint_bytes(v), n);
	assert_true(n <= SP_VARINT_MAX_BYTES);
	assert_true(sp_slice_varint(&s) == v);
	assert_false(s.failed);
	assert_ptr_equal(s.at, got + n);
}

TEST(varint)
{
	struct sp_rng rng;

	for (unsigned int bit = 0; bit < 64; bit++) {
		check_value(1ull << bit);
		check_value((1ull << bit) - 1);
		check_value((1ull << bit) + 1);
	}
	check_value(UINT64_MAX);
	sp_rng_init(&rng, 1, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t v = sp_rng_next(&rng);

		check_value(v >> (sp_rng_next(&rng) % 64));
	}
}

/* Every proper prefix of a varint is refused, and refusal lasts. */
TEST(varint_cut_short)
{
	uint8_t bytes[SP_VARINT_MAX_BYTES];
	size_t n = (size_t)(sp_varint_put(bytes, UINT64_MAX) - bytes);

	for (size_t have = 0; have < n; have++) {
		/* Of exactly that size, for AddressSanitizer. */
		FREED uint8_t *exact = malloc(have);
		struct sp_slice s = {exact, exact + have, false};

		if (have)
			memcpy(exact, bytes, have);
		assert_int_equal(sp_slice_varint(&s), 0);
		assert_true(s.failed);
		assert_int_equal(sp_slice_u8(&s), 0);
		assert_null(sp_slice_take(&s, 0));
	}
}

TEST(varint_too_long)
{
	/* 2^64, then the same value written with an eleventh byte. */
	static const uint8_t over[] = {0x80, 0x80, 0x80, 0x80, 0x80,
				       0x80, 0x80, 0x80, 0x80, 0x02};
	static const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					 0x80, 0x80, 0x80, 0x80, 0x00};
	struct sp_slice s = {over, over + sizeof(over), false};

	assert_int_equal(sp_slice_varint(&s), 0);
	assert_true(s.failed);
	s = (struct sp_slice){eleven, eleven + sizeof(eleven), false};
	assert_int_equal(sp_slice_varint(&s), 0);
	assert_true(s.failed);
}

TEST(zigzag)
{
	static const int64_t small[] = {0, -1, 1, -2, 2, -3};
	struct sp_rng rng;

	for (size_t i = 0; i < 6; i++)
		assert_int_equal(sp_zigzag(small[i]), i);
	assert_true(sp_zigzag(INT64_MAX) == UINT64_MAX - 1);
	assert_true(sp_zigzag(INT64_MIN) == UINT64_MAX);
	sp_rng_init(&rng, 1, 2);
	for (int i = 0; i < 100000; i++) {
		uint64_t v = sp_rng_next(&rng) >> (i % 64);
		int64_t x = (int64_t)v;
		uint64_t want = x < 0 ? 2 * (uint64_t) - (x + 1) + 1 : 2 * v;

		assert_true(sp_zigzag(x) == want);
		assert_true(sp_unzigzag(want) == x);
	}
}

TEST(slice)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5};
	struct sp_slice s = {bytes, bytes + sizeof(bytes), false};

	assert_int_equal(sp_slice_left(&s), 5);
	assert_int_equal(sp_slice_u8(&s), 1);
	assert_ptr_equal(sp_slice_take(&s, 3), bytes + 1);
	assert_int_equal(sp_slice_left(&s), 1);
	assert_ptr_equal(sp_slice_take(&s, 0), bytes + 4);
	assert_null(sp_slice_take(&s, UINT64_MAX));
	assert_true(s.failed);
	/* Nothing is read after a failure, though a byte is left. */
	assert_int_equal(sp_slice_u8(&s), 0);
	assert_int_equal(sp_slice_varint(&s), 0);
	assert_null(sp_slice_take(&s, 1));

	s = (struct sp_slice){bytes, bytes + sizeof(bytes), false};
	assert_null(sp_slice_take(&s, 6));
	assert_true(s.failed);
	s = (struct sp_slice){bytes, bytes + sizeof(bytes), false};
	assert_ptr_equal(sp_slice_take(&s, 5), bytes);
	assert_false(s.failed);
	assert_int_equal(sp_slice_u8(&s), 0);
	assert_true(s.failed);
}

TEST_MAIN(NULL, NULL)
