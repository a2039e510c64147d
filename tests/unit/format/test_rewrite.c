/* SPDX-License-Identifier: MIT */
/*
 * The records of symbols against the naive model of the format: same bytes and
 * back, ids and lengths out of range.
 */
#include "base/rng.h"
#include "format/decode.h"
#include "format/rewrite.h"
#include "support/format_model.h"
#include "support/test.h"

static uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
static struct sp_rng rng;

/* Any number of bits is as likely as any other. */
static uint32_t random_u32(void)
{
	return (uint32_t)(sp_rng_next(&rng) >> 32) >> sp_rng_next(&rng) % 32;
}

struct texts {
	char bytes[SP_FORMAT_NAME_MAX];
	struct sp_record_name name;
};

static void random_name(struct texts *t)
{
	/* Mostly short, now and then as long as can be. */
	t->name = (struct sp_record_name){
		.id = 1 + random_u32() / 2,
		.text = t->bytes,
		.text_bytes =
			sp_rng_next(&rng) % 40
				? sp_rng_next(&rng) % 100
				: SP_FORMAT_NAME_MAX - sp_rng_next(&rng) % 2,
	};
	for (size_t i = 0; i < t->name.text_bytes; i++)
		t->bytes[i] = (char)sp_rng_next(&rng);
}

struct lines {
	struct sp_record_line line[SP_FORMAT_LINES_MAX];
	struct sp_record_symbol symbol;
};

static void random_symbol(struct lines *l)
{
	l->symbol = (struct sp_record_symbol){
		.frame = {random_u32(), sp_rng_next(&rng) >> random_u32() % 64},
		.lines = l->line,
		.n_lines = sp_rng_next(&rng) % 9 ? 1 + sp_rng_next(&rng) % 4
						 : SP_FORMAT_LINES_MAX,
	};
	for (size_t i = 0; i < l->symbol.n_lines; i++)
		l->line[i] = (struct sp_record_line){sp_rng_next(&rng) % 4,
						     random_u32(), random_u32(),
						     random_u32()};
}

static void model_name(struct model_bytes *out, struct model_chunk *c,
		       const struct sp_record_name *name)
{
	FREED_BY(model_done) struct model_bytes b = {0};

	model_varint(&b, name->id);
	model_raw(&b, name->text, name->text_bytes);
	model_record(out, c, SP_RECORD_NAME, &b);
}

static void model_symbol(struct model_bytes *out, struct model_chunk *c,
			 const struct sp_record_symbol *symbol)
{
	FREED_BY(model_done) struct model_bytes b = {0};

	model_varint(&b, symbol->frame.module);
	model_varint(&b, symbol->frame.offset);
	model_varint(&b, symbol->n_lines);
	for (size_t i = 0; i < symbol->n_lines; i++) {
		model_varint(&b, symbol->lines[i].flags);
		model_varint(&b, symbol->lines[i].function);
		model_varint(&b, symbol->lines[i].file);
		model_varint(&b, symbol->lines[i].line);
	}
	model_record(out, c, SP_RECORD_SYMBOL, &b);
}

/* Either of the two, whichever is not NULL. */
static size_t encode(struct sp_chunk_state *state, uint8_t *out, size_t room,
		     const struct sp_record_name *name,
		     const struct sp_record_symbol *symbol)
{
	return name ? sp_encode_name(state, out, room, name)
		    : sp_encode_symbol(state, out, room, symbol);
}

/* Every room that is too small is refused and changes nothing. */
static void check_too_small(const struct sp_chunk_state *state, size_t need,
			    const struct sp_record_name *name,
			    const struct sp_record_symbol *symbol)
{
	static uint8_t out[SP_FORMAT_CHUNK_BYTES];
	const size_t step = need > 200 ? need / 100 : 1;

	for (size_t less = 1; less <= need; less += step) {
		struct sp_chunk_state copy = *state;

		memset(out, 0x55, need);
		assert_int_equal(encode(&copy, out, need - less, name, symbol),
				 0);
		assert_memory_equal(&copy, state, sizeof(copy));
		for (size_t i = 0; i < need; i++)
			assert_int_equal(out[i], 0x55);
	}
}

static void assert_same_name(const struct sp_decoded *got,
			     const struct sp_record_name *want)
{
	assert_int_equal(got->type, SP_RECORD_NAME);
	assert_true(got->u.name.id == want->id);
	assert_int_equal(got->u.name.text_bytes, want->text_bytes);
	if (want->text_bytes)
		assert_memory_equal(got->u.name.text, want->text,
				    want->text_bytes);
}

static void assert_same_symbol(const struct sp_decoded *got,
			       const struct sp_record_symbol *want)
{
	static struct sp_record_line lines[SP_FORMAT_LINES_MAX];

	assert_int_equal(got->type, SP_RECORD_SYMBOL);
	assert_true(got->u.symbol.frame.module == want->frame.module);
	assert_true(got->u.symbol.frame.offset == want->frame.offset);
	assert_int_equal(got->u.symbol.n_lines, want->n_lines);
	sp_decode_lines(got, lines);
	for (size_t i = 0; i < want->n_lines; i++) {
		assert_true(lines[i].flags == want->lines[i].flags);
		assert_true(lines[i].function == want->lines[i].function);
		assert_true(lines[i].file == want->lines[i].file);
		assert_true(lines[i].line == want->lines[i].line);
	}
}

/* One chunk full of random records: the same bytes as the model's, and back. */
static void check_chunk(uint64_t index)
{
	static struct texts texts;
	static struct lines lines;
	struct sp_chunk_state writing, reading;
	struct model_chunk model;
	FREED_BY(model_done) struct model_bytes want = {0};
	size_t at = 0, read_at = 0;

	memset(chunk, 0, sizeof(chunk));
	sp_chunk_state_init(&writing, 9 * index, index);
	sp_chunk_state_init(&reading, 9 * index, index);
	model_chunk_begin(&model, 9 * index, index);
	for (;;) {
		const bool is_name = sp_rng_next(&rng) % 2;
		const struct sp_record_name *name =
			is_name ? &texts.name : NULL;
		const struct sp_record_symbol *symbol =
			is_name ? NULL : &lines.symbol;
		const struct sp_chunk_state before = writing;
		struct sp_decoded d;
		size_t n;

		random_name(&texts);
		random_symbol(&lines);
		n = encode(&writing, chunk + at, sizeof(chunk) - at, name,
			   symbol);
		if (!n)
			break;
		if (is_name)
			model_name(&want, &model, name);
		else
			model_symbol(&want, &model, symbol);
		assert_int_equal(at + n, want.n);
		assert_memory_equal(chunk + at, want.data + at, n);
		check_too_small(&before, n, name, symbol);
		assert_int_equal(sp_decode_next(&reading, chunk, sizeof(chunk),
						&read_at, &d),
				 SP_DECODE_RECORD);
		if (is_name)
			assert_same_name(&d, name);
		else
			assert_same_symbol(&d, symbol);
		at += n;
		assert_int_equal(read_at, at);
	}
	assert_true(at > sizeof(chunk) / 4);
}

TEST(round_trip)
{
	sp_rng_init(&rng, 6, 1);
	for (uint64_t index = 1; index <= 40; index++)
		check_chunk(index);
}

/* The result of decoding a record with that payload and a check that is right;
 * the field that was wrong, or NULL. */
static const char *decode(uint8_t type, const struct model_bytes *payload)
{
	struct model_bytes b = {0};
	struct model_chunk c;
	struct sp_chunk_state s;
	struct sp_decoded d;
	size_t at = 0;

	model_chunk_begin(&c, 1, 1);
	model_record(&b, &c, type, payload);
	assert_true(b.n <= sizeof(chunk));
	memcpy(chunk, b.data, b.n);
	sp_chunk_state_init(&s, 1, 1);
	if (sp_decode_next(&s, chunk, b.n, &at, &d) == SP_DECODE_RECORD)
		d.field = NULL;
	else
		assert_non_null(d.field);
	model_done(&b);
	return d.field;
}

TEST(names_out_of_range)
{
	static const char text[SP_FORMAT_NAME_MAX + 1];
	static const struct {
		uint64_t id;
		size_t bytes;
		const char *field;
	} cases[] = {
		{1, 0, NULL},
		{UINT32_MAX, SP_FORMAT_NAME_MAX, NULL},
		{0, 1, "name id"},
		{UINT32_MAX + 1ull, 1, "name id"},
		{1, SP_FORMAT_NAME_MAX + 1, "name length"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FREED_BY(model_done) struct model_bytes b = {0};
		const char *field;

		model_varint(&b, cases[i].id);
		model_raw(&b, text, cases[i].bytes);
		field = decode(SP_RECORD_NAME, &b);
		if (cases[i].field)
			assert_string_equal(field, cases[i].field);
		else
			assert_null(field);
	}
}

TEST(symbols_out_of_range)
{
	static const uint64_t max = UINT32_MAX, over = UINT32_MAX + 1ull;
	static const struct {
		uint64_t module, says, lines; /* how many it says and has */
		uint64_t line[4];
		const char *field;
	} cases[] = {
		{max, 1, 1, {UINT64_MAX, max, max, max}, NULL},
		{1, SP_FORMAT_LINES_MAX, SP_FORMAT_LINES_MAX, {0, 1}, NULL},
		{over, 1, 1, {0, 1}, "symbol module"},
		{1, 0, 0, {0}, "number of lines"},
		{1,
		 SP_FORMAT_LINES_MAX + 1,
		 SP_FORMAT_LINES_MAX + 1,
		 {0, 1},
		 "number of lines"},
		{1, 2, 1, {0, 1}, "symbol lines"},
		{1, 1, 1, {0, over}, "symbol line"},
		{1, 1, 1, {0, 1, over}, "symbol line"},
		{1, 1, 1, {0, 1, 1, over}, "symbol line"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FREED_BY(model_done) struct model_bytes b = {0};
		const char *field;

		model_varint(&b, cases[i].module);
		model_varint(&b, 0x123);
		model_varint(&b, cases[i].says);
		for (uint64_t k = 0; k < cases[i].lines; k++)
			for (int n = 0; n < 4; n++)
				model_varint(&b, cases[i].line[n]);
		field = decode(SP_RECORD_SYMBOL, &b);
		if (cases[i].field)
			assert_string_equal(field, cases[i].field);
		else
			assert_null(field);
	}
}

TEST_MAIN(NULL, NULL)
