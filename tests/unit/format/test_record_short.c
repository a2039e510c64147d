/* SPDX-License-Identifier: MIT */
/*
 * Samples and frees are encoded by a short cut, to the same bytes as other
 * records.
 */
#include "base/bytes.h"
#include "base/rng.h"
#include "format/encode.h"
#include "support/test.h"

/* By the format's text: head byte, then numbers seven bits at a time. */
static size_t plain_sample(uint8_t *to, const struct sp_record_sample *r)
{
	const uint64_t fields[] = {r->thread,
				   r->period_bytes,
				   sp_zigzag((int64_t)r->id),
				   sp_zigzag((int64_t)r->time_ns),
				   sp_zigzag((int64_t)r->address),
				   r->size_bytes,
				   r->offset_bytes,
				   r->stack};
	size_t n = 1;

	to[0] = (uint8_t)(r->entry | 0x60);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t v = fields[i];

		for (; v >= 0x80; v >>= 7)
			to[n++] = (uint8_t)(v | 0x80);
		to[n++] = (uint8_t)v;
	}
	return n;
}

static uint64_t random_number(struct sp_rng *rng)
{
	const uint64_t bits = sp_rng_next(rng) % 64;

	/* Often all ones, or a single one. */
	switch (sp_rng_next(rng) % 3) {
	case 0:
		return 1ull << bits;
	case 1:
		return UINT64_MAX >> bits;
	default:
		return (sp_rng_next(rng) >> bits) | 1;
	}
}

/* Numbers of every length, where there is much room and where there is just
 * enough or one byte too little: then nothing is touched. */
TEST(short_records)
{
	struct sp_record born = {.type = SP_RECORD_SAMPLE};
	struct sp_rng rng;

	sp_rng_init(&rng, 8, 1);
	for (unsigned int i = 0; i < 20000; i++) {
		struct sp_chunk_state wide, tight;
		uint8_t want[128], out[128] = {0}, small[128] = {0};
		struct sp_encoded e;
		size_t n;

		born.u.sample = (struct sp_record_sample){
			random_number(&rng),
			random_number(&rng),
			random_number(&rng),
			random_number(&rng),
			random_number(&rng),
			random_number(&rng),
			random_number(&rng),
			random_number(&rng),
			(uint8_t)(sp_rng_next(&rng) % 32),
			false};
		n = plain_sample(want, &born.u.sample);
		sp_chunk_state_init(&wide, 1, 1);
		tight = wide;
		e = sp_encode(&wide, out, sizeof(out), &born);
		assert_int_equal(e.bytes, 2 + n + 2);
		assert_int_equal(out[0], 0);
		assert_int_equal(out[1], n);
		assert_memory_equal(out + 2, want, n);
		for (size_t k = e.bytes; k < sizeof(out); k++)
			assert_int_equal(out[k], 0);
		assert_int_equal(
			sp_encode(&tight, small, e.bytes - 1, &born).bytes, 0);
		for (size_t k = 0; k < sizeof(small); k++)
			assert_int_equal(small[k], 0);
		assert_int_equal(sp_encode(&tight, small, e.bytes, &born).bytes,
				 e.bytes);
		assert_memory_equal(small, out, sizeof(out));
		assert_memory_equal(&tight, &wide, sizeof(wide));
	}
}

TEST_MAIN(NULL, NULL)
