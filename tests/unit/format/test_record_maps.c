/* SPDX-License-Identifier: MIT */
/* Records of mappings and of code: each field comes back, from one byte to ten,
 * and the bytes are those of the plain model of the format. */
#include "base/rng.h"
#include "format/decode.h"
#include "format/encode.h"
#include "support/format_model.h"
#include "support/test.h"

#define RECORDS 20000
#define FILE_ID 77
#define CHUNK   9
/* Longer ones are seldom. */
#define TEXT_MAX SP_FORMAT_CODE_TEXT_MAX
#define ROOM     (2 * TEXT_MAX + 64)

static struct sp_rng rng;

/* Of any length; at most `most`. */
static uint64_t any(uint64_t most)
{
	const uint64_t v = sp_rng_next(&rng) >> sp_rng_next(&rng) % 64;

	return v <= most ? v : v % (most + 1);
}

static void make_record(struct sp_record *r)
{
	const uint64_t bytes = 1 + any(UINT64_MAX - 1);
	const uint64_t start = any(UINT64_MAX - bytes);

	memset(r, 0, sizeof(*r));
	if (any(UINT64_MAX) % 4 == 0) {
		static const char text[SP_FORMAT_CODE_TEXT_MAX] = "py::pay";

		r->type = SP_RECORD_CODE;
		r->u.code = (struct sp_record_code){
			{any(UINT32_MAX), any(UINT64_MAX)},
			any(UINT32_MAX),
			text,
			1 + any(TEXT_MAX - 1),
			text,
			any(TEXT_MAX)};
	} else if (any(UINT64_MAX) % 2) {
		r->type = SP_RECORD_MAP;
		r->u.map = (struct sp_record_map){1 + any(UINT64_MAX - 1),
						  any(UINT64_MAX),
						  any(UINT64_MAX),
						  start,
						  bytes,
						  any(UINT32_MAX),
						  any(UINT32_MAX)};
	} else {
		r->type = SP_RECORD_UNMAP;
		r->u.unmap = (struct sp_record_unmap){1 + any(UINT64_MAX - 1),
						      any(UINT64_MAX), start,
						      bytes, any(UINT32_MAX)};
	}
}

static void check_code(const struct sp_record_code *got,
		       const struct sp_record_code *want)
{
	assert_true(got->frame.module == want->frame.module);
	assert_true(got->frame.offset == want->frame.offset);
	assert_true(got->line == want->line);
	assert_int_equal(got->function_bytes, want->function_bytes);
	assert_memory_equal(got->function, want->function,
			    want->function_bytes);
	assert_int_equal(got->file_bytes, want->file_bytes);
	assert_memory_equal(got->file, want->file, want->file_bytes);
}

static void check_record(struct sp_chunk_state *writer,
			 struct sp_chunk_state *reader,
			 struct model_chunk *model, const struct sp_record *r)
{
	static uint8_t out[ROOM];
	struct sp_chunk_state before = *writer;
	struct sp_encoded e = sp_encode(writer, out, sizeof(out), r);
	struct model_bytes bytes = {NULL, 0, 0};
	struct sp_decoded d;
	size_t offset = 0;

	memset(out + e.bytes, 0, sizeof(out) - e.bytes);
	assert_true(e.bytes > 0);
	assert_int_equal(e.type, r->type);
	for (size_t room = 0; room < e.bytes; room += 1 + room / 64) {
		static uint8_t less[ROOM];

		assert_int_equal(sp_encode(&before, less, room, r).bytes, 0);
	}
	out[0] = e.type;
	model_encode(&bytes, model, r);
	assert_int_equal(bytes.n, e.bytes);
	assert_memory_equal(bytes.data, out, e.bytes);
	model_done(&bytes);
	assert_int_equal(sp_decode_next(reader, out, sizeof(out), &offset, &d),
			 SP_DECODE_RECORD);
	assert_int_equal(offset, e.bytes);
	assert_int_equal(d.type, r->type);
	if (r->type == SP_RECORD_CODE)
		check_code(&d.u.code, &r->u.code);
	else if (r->type == SP_RECORD_MAP)
		assert_memory_equal(&d.u.map, &r->u.map, sizeof(d.u.map));
	else
		assert_memory_equal(&d.u.unmap, &r->u.unmap, sizeof(d.u.unmap));
}

TEST(back_and_forth)
{
	struct sp_chunk_state writer, reader;
	struct model_chunk model = {0};

	sp_rng_init(&rng, 3, 5);
	sp_chunk_state_init(&writer, FILE_ID, CHUNK);
	sp_chunk_state_init(&reader, FILE_ID, CHUNK);
	model_chunk_begin(&model, FILE_ID, CHUNK);
	for (unsigned int i = 0; i < RECORDS; i++) {
		struct sp_record r;

		make_record(&r);
		check_record(&writer, &reader, &model, &r);
	}
}

TEST_MAIN(NULL, NULL)
