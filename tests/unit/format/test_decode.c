/* SPDX-License-Identifier: MIT */
/*
 * What the decoder refuses: every field one beyond its range, every record cut
 * short, every changed bit.  The records are crafted, their checks are right.
 */
#include "format/decode.h"
#include "support/format_model.h"
#include "support/test.h"

#define BEYOND_U32  (UINT32_MAX + 1ull)
#define VARINTS_MAX 12

/* A payload of varints, and then of `tail` bytes. */
struct payload {
	uint8_t type;
	const char *wrong; /* field that is refused; NULL: fine */
	size_t n;
	uint64_t varints[VARINTS_MAX];
	size_t tail;
};

static const struct payload payloads[] = {
	{SP_RECORD_INFO, NULL, 1, {3}, 3},
	{SP_RECORD_INFO, NULL, 1, {0}, 0},
	{SP_RECORD_INFO, "info key", 1, {4}, 3},
	{SP_RECORD_INFO, "info key", 1, {UINT64_MAX}, 3},
	{SP_RECORD_INFO, "info key", 0, {0}, 0},

	/* id, start, span, bias, flags, build id bytes */
	{SP_RECORD_MODULE, NULL, 6, {1, 4096, 10, 0, 0, 0}, 0},
	{SP_RECORD_MODULE, NULL, 6, {UINT32_MAX, 0, UINT64_MAX, 0, 0, 32}, 32},
	{SP_RECORD_MODULE, "module id", 6, {0, 4096, 10, 0, 0, 0}, 0},
	{SP_RECORD_MODULE, "module id", 6, {BEYOND_U32, 0, 1, 0, 0, 0}, 0},
	{SP_RECORD_MODULE, "module size", 6, {1, 1, UINT64_MAX, 0, 0, 0}, 0},
	{SP_RECORD_MODULE, "build id length", 6, {1, 0, 1, 0, 0, 33}, 33},
	{SP_RECORD_MODULE, "build id", 6, {1, 0, 1, 0, 0, 32}, 31},
	{SP_RECORD_MODULE, "module id", 5, {1, 0, 1, 0, 0}, 0},

	/* id, flags, frames, then module and offset of each */
	{SP_RECORD_STACK, NULL, 3, {1, 0, 0}, 0},
	{SP_RECORD_STACK, NULL, 5, {7, 0, 1, UINT32_MAX, UINT64_MAX}, 0},
	{SP_RECORD_STACK, "stack id", 3, {0, 0, 0}, 0},
	{SP_RECORD_STACK, "stack id", 3, {BEYOND_U32, 0, 0}, 0},
	{SP_RECORD_STACK, "stack id", 2, {1, 0}, 0},
	{SP_RECORD_STACK, "number of frames", 3, {1, 0, 1025}, 0},
	{SP_RECORD_STACK, "number of frames", 3, {1, 0, UINT64_MAX}, 0},
	{SP_RECORD_STACK, "frames", 3, {1, 0, 1024}, 0},
	{SP_RECORD_STACK, "frames", 4, {1, 0, 1, 5}, 0},
	{SP_RECORD_STACK, "frame module", 5, {1, 0, 1, BEYOND_U32, 0}, 0},

	/* index, tid, time */
	{SP_RECORD_THREAD, NULL, 3, {1, 2, 3}, 20},
	{SP_RECORD_THREAD, "thread index", 3, {0, 2, 3}, 0},
	{SP_RECORD_THREAD, "thread index", 3, {BEYOND_U32, 2, 3}, 0},
	{SP_RECORD_THREAD, "thread index", 2, {1, 2}, 0},

	/* index, time, bytes, objects */
	{SP_RECORD_THREAD_END, NULL, 4, {1, 2, UINT64_MAX, 3}, 2},
	{SP_RECORD_THREAD_END, "thread index", 4, {0, 2, 3, 4}, 0},
	{SP_RECORD_THREAD_END, "thread index", 4, {BEYOND_U32, 2, 3, 4}, 0},
	{SP_RECORD_THREAD_END, "thread index", 3, {1, 2, 3}, 0},

	/* head, thread, period, id, time, address, size, offset, stack */
	{SP_RECORD_SAMPLE, NULL, 9, {0x60, 1, 512, 2, 2, 2, 8, 7, 1}, 0},
	{SP_RECORD_SAMPLE, NULL, 9, {0x7f, 1, 512, 2, 2, 2, 8, 7, 1}, 0},
	{SP_RECORD_SAMPLE, NULL, 8, {0x40, 1ull << 40, 2, 2, 2, 1, 0, 0}, 0},
	{SP_RECORD_SAMPLE, "sample", 8, {0x60, 1, 512, 2, 2, 2, 8, 7}, 0},
	{SP_RECORD_SAMPLE, "sample", 0, {0}, 0},
	{SP_RECORD_SAMPLE,
	 "sample thread",
	 9,
	 {0x60, BEYOND_U32, 512, 2, 2, 2, 8, 7, 1},
	 0},
	{SP_RECORD_SAMPLE,
	 "sample period",
	 9,
	 {0x60, 1, 0, 2, 2, 2, 8, 7, 1},
	 0},
	{SP_RECORD_SAMPLE,
	 "sample period",
	 9,
	 {0x60, 1, (1ull << 40) + 1, 2, 2, 2, 8, 7, 1},
	 0},
	/* No period was named before. */
	{SP_RECORD_SAMPLE, "sample period", 8, {0x20, 1, 2, 2, 2, 8, 7, 1}, 0},
	{SP_RECORD_SAMPLE,
	 "sample size",
	 9,
	 {0x60, 1, 512, 2, 2, 2, 0, 0, 1},
	 0},
	{SP_RECORD_SAMPLE,
	 "sample offset",
	 9,
	 {0x60, 1, 512, 2, 2, 2, 8, 8, 1},
	 0},
	{SP_RECORD_SAMPLE,
	 "sample stack",
	 9,
	 {0x60, 1, 512, 2, 2, 2, 8, 7, BEYOND_U32},
	 0},

	/* head, thread, id, time, age */
	{SP_RECORD_FREE, NULL, 3, {0x00, 2, 2}, 0},
	{SP_RECORD_FREE, NULL, 4, {0x01, UINT32_MAX, 2, 2}, 0},
	{SP_RECORD_FREE, NULL, 5, {0x07, 0, 2, 2, UINT64_MAX}, 0},
	{SP_RECORD_FREE, NULL, 3, {0x04, UINT64_MAX, UINT64_MAX}, 0},
	/* A field of a later writer. */
	{SP_RECORD_FREE, NULL, 3, {0x00, 2, 2}, 1},
	{SP_RECORD_FREE, "free", 0, {0}, 0},
	{SP_RECORD_FREE, "free", 2, {0x00, 2}, 0},
	{SP_RECORD_FREE, "free", 3, {0x01, 2, 2}, 0},
	{SP_RECORD_FREE, "free", 3, {0x02, 2, 2}, 0},
	{SP_RECORD_FREE, "free", 3, {0x08, 2, 2}, 0},
	{SP_RECORD_FREE, "free", 5, {0x83, 1, 2, 2, 2}, 0},
	{SP_RECORD_FREE, "free thread", 4, {0x01, BEYOND_U32, 2, 2}, 0},

	/* head, thread, time, address */
	{SP_RECORD_FREE_ADDRESS, NULL, 3, {0x00, 2, 2}, 0},
	{SP_RECORD_FREE_ADDRESS,
	 NULL,
	 4,
	 {0x01, UINT32_MAX, UINT64_MAX, UINT64_MAX},
	 0},
	/* A field of a later writer. */
	{SP_RECORD_FREE_ADDRESS, NULL, 3, {0x00, 2, 2}, 1},
	{SP_RECORD_FREE_ADDRESS, "free", 0, {0}, 0},
	{SP_RECORD_FREE_ADDRESS, "free", 2, {0x00, 2}, 0},
	{SP_RECORD_FREE_ADDRESS, "free", 3, {0x01, 2, 2}, 0},
	{SP_RECORD_FREE_ADDRESS, "free", 3, {0x02, 2, 2}, 0},
	{SP_RECORD_FREE_ADDRESS, "free", 3, {0x80, 2, 2}, 0},
	{SP_RECORD_FREE_ADDRESS, "free thread", 4, {0x01, BEYOND_U32, 2, 2}, 0},

	/* time, bytes */
	{SP_RECORD_RSS, NULL, 2, {UINT64_MAX, UINT64_MAX}, 0},
	{SP_RECORD_RSS, NULL, 2, {0, 0}, 3},
	{SP_RECORD_RSS, "resident memory", 1, {1}, 0},
	{SP_RECORD_RSS, "resident memory", 0, {0}, 0},

	/* number, kind, time, totals, unsampled, slack, period, name */
	{SP_RECORD_MARK, NULL, 9, {1, 1, 5, 9, 8, 9, 8, 0, 1ull << 40}, 64},
	{SP_RECORD_MARK, NULL, 9, {UINT64_MAX, 77, 5, 0, 0, 0, 0, 0, 0}, 0},
	{SP_RECORD_MARK, "mark", 9, {0, 1, 5, 9, 8, 0, 0, 0, 1}, 0},
	{SP_RECORD_MARK, "mark", 8, {1, 1, 5, 9, 8, 0, 0, 0}, 0},
	{SP_RECORD_MARK, "mark totals", 9, {1, 1, 5, 9, 8, 10, 0, 0, 1}, 0},
	{SP_RECORD_MARK, "mark totals", 9, {1, 1, 5, 9, 8, 0, 9, 0, 1}, 0},
	{SP_RECORD_MARK,
	 "mark period",
	 9,
	 {1, 1, 5, 9, 8, 0, 0, 0, (1ull << 40) + 1},
	 0},
	{SP_RECORD_ASKED, NULL, 2, {1, 0}, 0},
	{SP_RECORD_ASKED, "asked", 2, {0, 9}, 0},
	{SP_RECORD_ASKED, "asked", 1, {1}, 0},
	{SP_RECORD_MARK, "mark name", 9, {1, 1, 5, 9, 8, 0, 0, 0, 1}, 65},

	/* number, flags, time, start, bytes, thread, stack */
	{SP_RECORD_MAP, NULL, 7, {1, 0, 0, 0, 1, 0, 0}, 0},
	{SP_RECORD_MAP,
	 NULL,
	 7,
	 {UINT64_MAX, UINT64_MAX, UINT64_MAX, 1, UINT64_MAX - 1, UINT32_MAX,
	  UINT32_MAX},
	 0},
	{SP_RECORD_MAP, NULL, 7, {1, 0, 0, 0, 1, 0, 0}, 1},
	{SP_RECORD_MAP, "mapping", 7, {0, 0, 0, 0, 1, 0, 0}, 0},
	{SP_RECORD_MAP, "mapping", 6, {1, 0, 0, 0, 1, 0}, 0},
	{SP_RECORD_MAP, "mapping range", 7, {1, 0, 0, 0, 0, 0, 0}, 0},
	{SP_RECORD_MAP,
	 "mapping range",
	 7,
	 {1, 0, 0, 2, UINT64_MAX - 1, 0, 0},
	 0},
	{SP_RECORD_MAP, "mapping thread", 7, {1, 0, 0, 0, 1, BEYOND_U32, 0}, 0},
	{SP_RECORD_MAP, "mapping stack", 7, {1, 0, 0, 0, 1, 0, BEYOND_U32}, 0},

	/* number, time, start, bytes, thread */
	{SP_RECORD_UNMAP, NULL, 5, {1, 0, 0, 1, 0}, 0},
	{SP_RECORD_UNMAP, NULL, 5, {1, 0, 0, 1, 0}, 1},
	{SP_RECORD_UNMAP, "unmapping", 5, {0, 0, 0, 1, 0}, 0},
	{SP_RECORD_UNMAP, "unmapping", 4, {1, 0, 0, 1}, 0},
	{SP_RECORD_UNMAP, "unmapping range", 5, {1, 0, 0, 0, 0}, 0},
	{SP_RECORD_UNMAP, "unmapping range", 5, {1, 0, UINT64_MAX, 1, 0}, 0},
	{SP_RECORD_UNMAP, "unmapping thread", 5, {1, 0, 0, 1, BEYOND_U32}, 0},

	/* module, offset, line, bytes of the function */
	{SP_RECORD_CODE, NULL, 4, {0, 0, 0, 1}, 1},
	{SP_RECORD_CODE,
	 NULL,
	 4,
	 {UINT32_MAX, UINT64_MAX, UINT32_MAX, 1024},
	 2048},
	{SP_RECORD_CODE, "code module", 4, {BEYOND_U32, 0, 0, 1}, 1},
	{SP_RECORD_CODE, "code module", 3, {1, 0, 0}, 0},
	{SP_RECORD_CODE, "code line", 4, {1, 0, BEYOND_U32, 1}, 1},
	{SP_RECORD_CODE, "code function", 4, {1, 0, 0, 0}, 5},
	{SP_RECORD_CODE, "code function", 4, {1, 0, 0, 3}, 2},
	{SP_RECORD_CODE, "code function", 4, {1, 0, 0, 1025}, 1100},
	{SP_RECORD_CODE, "code file", 4, {1, 0, 0, 1024}, 2049},

	/* Of a later version: passed over. */
	{99, NULL, 2, {1, 2}, 50},
	{255, NULL, 0, {0}, 0},
};

static void craft(struct model_bytes *out, const struct payload *p)
{
	FREED_BY(model_done) struct model_bytes b = {0};
	struct model_chunk chunk;

	for (size_t i = 0; i < p->n; i++) {
		/* The head of a sample or a free is a byte. */
		if (i == 0 &&
		    (p->type == SP_RECORD_SAMPLE || p->type == SP_RECORD_FREE ||
		     p->type == SP_RECORD_FREE_ADDRESS))
			model_raw(&b, &(uint8_t){(uint8_t)p->varints[0]}, 1);
		else
			model_varint(&b, p->varints[i]);
	}
	for (size_t i = 0; i < p->tail; i++)
		model_raw(&b, "x", 1);
	model_chunk_begin(&chunk, 1, 1);
	model_record(out, &chunk, p->type, &b);
}

/* Decode a copy that has exactly n bytes. */
static enum sp_decode_result decode(const uint8_t *bytes, size_t n,
				    struct sp_decoded *ret)
{
	struct sp_chunk_state s;
	enum sp_decode_result result;
	uint8_t *exact = malloc(n);
	size_t at = 0;

	if (n)
		memcpy(exact, bytes, n);
	sp_chunk_state_init(&s, 1, 1);
	result = sp_decode_next(&s, exact, n, &at, ret);
	assert_int_equal(at, result == SP_DECODE_RECORD ? n : 0);
	free(exact);
	return result;
}

TEST(ranges)
{
	struct sp_decoded d;

	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		const struct payload *p = &payloads[i];
		FREED_BY(model_done) struct model_bytes b = {0};
		enum sp_decode_result got;

		craft(&b, p);
		got = decode(b.data, b.n, &d);
		if (!p->wrong && (got != SP_DECODE_RECORD || d.type != p->type))
			fail_msg("row %zu should be accepted", i);
		if (p->wrong && (got != SP_DECODE_DAMAGED ||
				 strcmp(d.field, p->wrong) != 0))
			fail_msg("row %zu should be refused for its %s, not %s",
				 i, p->wrong, d.field ? d.field : "at all");
	}
}

/* A step of the stack's id that leaves its range. */
TEST(stack_steps)
{
	static const struct {
		uint64_t before, step; /* as it is stored */
		bool is_right;
	} steps[] = {
		{0, 0, true},
		{0, 1, false},
		{7, 13, true},
		{7, 15, false},
		{UINT32_MAX, 1, true},
		{UINT32_MAX, 2, false},
		{0, 2 * (uint64_t)UINT32_MAX, true},
		{7, UINT64_MAX, false},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct payload p = {
			SP_RECORD_SAMPLE,
			NULL,
			9,
			{0x60, 1, 512, 2, 2, 2, 8, 7, steps[i].step},
			0};
		FREED_BY(model_done) struct model_bytes b = {0};
		struct sp_chunk_state s;
		struct sp_decoded d;
		size_t at = 0;

		craft(&b, &p);
		sp_chunk_state_init(&s, 1, 1);
		s.has_stack_steps = true;
		s.stack = steps[i].before;
		assert_int_equal(sp_decode_next(&s, b.data, b.n, &at, &d),
				 steps[i].is_right ? SP_DECODE_RECORD
						   : SP_DECODE_DAMAGED);
		if (!steps[i].is_right)
			assert_string_equal(d.field, "sample stack");
	}
}

/* Prefixes: nothing, or a record without its end. */
TEST(cut_short)
{
	struct sp_decoded d;

	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		FREED_BY(model_done) struct model_bytes b = {0};

		craft(&b, &payloads[i]);
		assert_int_equal(decode(b.data, 0, &d), SP_DECODE_END);
		for (size_t n = 1; n < b.n; n++) {
			assert_int_equal(decode(b.data, n, &d),
					 SP_DECODE_DAMAGED);
			assert_string_equal(d.field, "record length");
		}
	}
}

/* One record alone: every changed bit is noticed, except that a type of zero
 * is the end. */
TEST(every_bit)
{
	struct sp_decoded d;

	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		FREED_BY(model_done) struct model_bytes b = {0};

		craft(&b, &payloads[i]);
		for (size_t bit = 0; bit < 8 * b.n; bit++) {
			enum sp_decode_result got;

			b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			got = decode(b.data, b.n, &d);
			assert_int_equal(got, b.data[0] ? SP_DECODE_DAMAGED
							: SP_DECODE_END);
			b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

/* A length that points far away. */
TEST(length)
{
	static const uint64_t lengths[] = {
		2, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX - 2, UINT64_MAX};
	struct sp_decoded d;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		FREED_BY(model_done) struct model_bytes b = {0};

		model_raw(&b, "\x06", 1);
		model_varint(&b, lengths[i]);
		model_raw(&b, "abc", 3);
		assert_int_equal(decode(b.data, b.n, &d), SP_DECODE_DAMAGED);
		assert_string_equal(d.field, "record length");
	}
}

/* A record is bound to its file, its chunk and what stood before it. */
TEST(place)
{
	static const struct payload info = {SP_RECORD_INFO, NULL, 1, {3}, 3};
	struct sp_chunk_state s;
	FREED_BY(model_done) struct model_bytes b = {0};
	struct sp_decoded d;
	size_t at = 0;

	craft(&b, &info);
	sp_chunk_state_init(&s, 2, 1);
	assert_int_equal(sp_decode_next(&s, b.data, b.n, &at, &d),
			 SP_DECODE_DAMAGED);
	sp_chunk_state_init(&s, 1, 2);
	assert_int_equal(sp_decode_next(&s, b.data, b.n, &at, &d),
			 SP_DECODE_DAMAGED);
	assert_string_equal(d.field, "record check");
	sp_chunk_state_init(&s, 1, 1);
	assert_int_equal(sp_decode_next(&s, b.data, b.n, &at, &d),
			 SP_DECODE_RECORD);
	/* The same record again is not the next one. */
	at = 0;
	assert_int_equal(sp_decode_next(&s, b.data, b.n, &at, &d),
			 SP_DECODE_DAMAGED);
}

TEST_MAIN(NULL, NULL)
