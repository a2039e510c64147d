/* SPDX-License-Identifier: MIT */
/*
 * Chunks of stacks and of names made by hand, right and wrong, up to the most
 * frames, lines and bytes that may be.
 */
#include "hand_columns.h"
#include "support/test.h"

/* ---- what the chunks that are right say ---- */

TEST(stacks)
{
	static const struct sp_record_frame a = {7, 100}, b = {0, 50},
					    c = {7, 51};
	const struct sp_record_frame want[3][3] = {{b, a}, {a, a}, {c, b, a}};
	static const uint64_t ids[] = {1, 3, 2}, flags[] = {0, 5, 0};
	static const uint32_t n_frames[] = {2, 2, 3};
	struct sp_unpacker *u = new_unpacker(SP_CHUNK_STACKS);
	const struct chunk chunk = build_chunk(&stacks_form, &right);
	struct sp_record_frame got[3];
	struct sp_decoded d;

	assert_null(sp_unpack_chunk(u, SP_CHUNK_STACKS, chunk.bytes, chunk.n));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sp_unpack_next(u, &d), 1);
		assert_int_equal(d.type, SP_RECORD_STACK);
		assert_int_equal(d.u.stack.id, ids[i]);
		assert_int_equal(d.u.stack.flags, flags[i]);
		assert_int_equal(d.u.stack.n_frames, n_frames[i]);
		sp_decode_frames(&d, got);
		assert_memory_equal(got, want[i], n_frames[i] * sizeof(got[0]));
	}
	assert_int_equal(sp_unpack_next(u, &d), 0);
	sp_unpacker_free(u);
	free(chunk.bytes);
}

TEST(names)
{
	static const struct sp_record_line want[] = {
		{2, 1, 2, 10}, {1, 1, 0, 20}, {0, 2, 1, 30}};
	static const char *const texts[] = {"f", "a.c"};
	struct sp_unpacker *u = new_unpacker(SP_CHUNK_NAMES);
	const struct chunk chunk = build_chunk(&names_form, &right);
	struct sp_record_line got[2];
	struct sp_decoded d;

	assert_null(sp_unpack_chunk(u, SP_CHUNK_NAMES, chunk.bytes, chunk.n));
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sp_unpack_next(u, &d), 1);
		assert_int_equal(d.type, SP_RECORD_NAME);
		assert_int_equal(d.u.name.id, i + 1);
		assert_int_equal(d.u.name.text_bytes, strlen(texts[i]));
		assert_memory_equal(d.u.name.text, texts[i], strlen(texts[i]));
	}
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sp_unpack_next(u, &d), 1);
		assert_int_equal(d.type, SP_RECORD_SYMBOL);
		assert_int_equal(d.u.symbol.frame.module, i ? 0 : 7);
		assert_int_equal(d.u.symbol.frame.offset, i ? 50 : 100);
		assert_int_equal(d.u.symbol.n_lines, 1 + i);
		sp_decode_lines(&d, got);
		for (size_t k = 0; k <= i; k++) {
			assert_int_equal(got[k].flags, want[i + k].flags);
			assert_int_equal(got[k].function, want[i + k].function);
			assert_int_equal(got[k].file, want[i + k].file);
			assert_int_equal(got[k].line, want[i + k].line);
		}
	}
	assert_int_equal(sp_unpack_next(u, &d), 0);
	sp_unpacker_free(u);
	free(chunk.bytes);
}

/* ---- what is wrong with others ---- */

TEST(hostile_stacks)
{
#define STACK(...) COLUMN(STACK, 12, {__VA_ARGS__})
#define REST       UP(1), 5, UP(1), 1, DOWN(2), 0, UP(1), 1
#define END        DOWN(2), 0, UP(1), 1
	static const struct change changes[] = {
		{NULL,
		 STACK(UP(U32 - 1), 0, 0, 2, DOWN(U32 - 2), 0, UP(1), 1, END)},
		{"stack", STACK(UP(U32), 0, 0, 2, REST)},
		{"stack", STACK(DOWN(1), 0, 0, 2, REST)},
		{"stack", STACK(DOWN(2), 0, 0, 2, REST)},
		/* callers that are not there */
		{"stack", STACK(0, 0, UP(1), 2, REST)},
		{"stack", STACK(0, 0, DOWN(1), 2, REST)},
		{NULL, STACK(0, 0, 0, 2, UP(1), 5, 0, 1, END)},
		{NULL, STACK(0, 0, 0, 2, UP(1), 5, UP(2), 1, END)},
		{"stack", STACK(0, 0, 0, 2, UP(1), 5, UP(3), 1, END)},
		{"stack", STACK(0, 0, 0, 2, UP(1), 5, DOWN(1), 1, END)},
		{"stack", STACK(0, 0, 0, 2, UP(1), 5, UP(U32), 1, END)},
		/* more or less frames than there are */
		{"stack", STACK(0, 0, 0, 3, REST)},
		{"stack", STACK(0, 0, 0, UINT64_MAX, REST)},
		{"stacks column",
		 STACK(0, 0, 0, 2, UP(1), 5, UP(1), 1, DOWN(2), 0, UP(1), 0)},
		{"stack",
		 COLUMN(STACK, 11,
			{0, 0, 0, 2, UP(1), 5, UP(1), 1, DOWN(2), 0, UP(1)})},
		/* places */
		{NULL, COLUMN(FRAME, 4, {0, 0, 2, 0})},
		{"stack", COLUMN(FRAME, 4, {0, 0, 3, 0})},
		{"stack", COLUMN(FRAME, 4, {0, 0, UINT64_MAX, 0})},
		{"stack", COLUMN(FRAME, 4, {1, 0, 1, 0})},
		{"stack", COLUMN(FRAME, 3, {0, 0, 1})},
		{"stacks column", COLUMN(FRAME, 5, {0, 0, 1, 0, 1})},
		{NULL, COLUMN(PLACE, 6, {U32, 1, 0, UINT64_MAX, 7, 0})},
		{"stack", COLUMN(PLACE, 6, {7, 0, U32 + 1, 0, 7, 0})},
		{"stack", COLUMN(PLACE, 5, {7, 0, 0, 0, 7})},
		{"stacks column", COLUMN(PLACE, 7, {7, 0, 0, 0, 7, 0, 0})},
		/* the header */
		{"stacks number", .column = -1, .first = 1},
		{"stack", .column = -1, .more = 1},
		{"stacks column", .column = -1, .more = -1},
		{"columns length", .column = SP_COLUMN_PLACE, .more_bytes = 1},
	};

	TRY(stacks_form, changes);
}

/* A stack of `depth` frames of one place; in the next chunk `n` that go on from
 * there, each with so many more. */
static const char *read_deep(uint64_t depth, uint64_t n, uint64_t more)
{
	const struct change first = {.column = -1, .more = -2};
	const struct change second = {
		.column = -1, .first = 1, .more = (int)n - 3};
	struct form form = stacks_form;
	struct sp_unpacker *u = new_unpacker(SP_CHUNK_STACKS);
	const char *field;

	form.columns[SP_COLUMN_STACK] =
		(struct column)VALUES(4, {0, 0, 0, depth});
	form.columns[SP_COLUMN_FRAME] =
		(struct column)REPEATED(2, depth - 2, {0, 1});
	form.columns[SP_COLUMN_PLACE] = (struct column)VALUES(2, {0, 0});
	field = read_change(u, &form, &first);
	if (!field) {
		form.columns[SP_COLUMN_STACK] =
			more ? (struct column)VALUES(4, {0, 0, 0, more})
			     : (struct column)REPEATED(1, 4 * n - 1, {0});
		form.columns[SP_COLUMN_FRAME] =
			(struct column)VALUES(more, {1});
		form.columns[SP_COLUMN_PLACE] = (struct column){0};
		field = read_change(u, &form, &second);
	}
	sp_unpacker_free(u);
	return field;
}

TEST(deep)
{
	const uint64_t most = SP_FORMAT_FRAMES_MAX;
	const uint64_t stacks = SP_FORMAT_CHUNK_FRAMES_MAX / most;

	assert_null(read_deep(most, 1, 0));
	assert_string_equal(read_deep(most + 1, 1, 0), "stack");
	assert_null(read_deep(most - 1, 1, 1));
	assert_string_equal(read_deep(most, 1, 1), "stack");
	/* A few bytes stand for as many frames as that. */
	assert_null(read_deep(most, stacks, 0));
	assert_string_equal(read_deep(most, stacks + 1, 0), "stack");
}

TEST(hostile_names)
{
	static const struct change changes[] = {
		{NULL, COLUMN(LENGTH, 2, {0, 4})},
		{"text", COLUMN(LENGTH, 2, {1, 4})},
		{"text", COLUMN(LENGTH, 2, {1, UINT64_MAX})},
		{"text", COLUMN(LENGTH, 1, {1})},
		{"names column", COLUMN(LENGTH, 2, {1, 2})},
		{"names column", COLUMN(LENGTH, 3, {1, 3, 0})},
		{"lines", COLUMN(LINES, 2, {0, 2})},
		{"lines", COLUMN(LINES, 2, {1, 3})},
		{"lines", COLUMN(LINES, 1, {1})},
		{"names column", COLUMN(LINES, 2, {1, 1})},
		{NULL, COLUMN(FLAGS, 3, {UINT64_MAX, 1, 3})},
		{"lines", COLUMN(FLAGS, 2, {0, 0})},
		/* texts that are not there, among them the next one */
		{NULL, COLUMN(FUNCTION, 3, {2, 1, 2})},
		{"lines", COLUMN(FUNCTION, 3, {0, 3, 2})},
		{"lines", COLUMN(FUNCTION, 3, {0, UINT64_MAX, 2})},
		{"lines", COLUMN(FUNCTION, 3, {0, 0, 2})},
		{"lines", COLUMN(FUNCTION, 2, {0, 1})},
		{NULL, COLUMN(FILE, 3, {3, 1, 0})},
		{"lines", COLUMN(FILE, 3, {1, 4, 2})},
		{"lines", COLUMN(FILE, 3, {1, 1, 2})},
		{"lines", COLUMN(FILE, 3, {1, UINT64_MAX, 2})},
		{"lines", COLUMN(FILE, 2, {1, 0})},
		{NULL, COLUMN(LINE, 3, {10, 0, U32})},
		{"lines", COLUMN(LINE, 3, {10, 20, U32 + 1})},
		{"lines", COLUMN(LINE, 2, {10, 20})},
		{"names column", COLUMN(LINE, 4, {10, 20, 30, 0})},
		/* the header */
		{"names number", .column = -1, .first = 1},
		{"names number", .column = -1, .set = 44},
		{"text", .column = -1, .and = 3},
		{"lines", .column = -1, .more = 1},
		{"names column", .column = -1, .more = -1},
		{"names column", .column = -1, .and = 1, .more = -2},
		{"columns length", .column = SP_COLUMN_LINE, .more_bytes = 1},
	};

	TRY(names_form, changes);
}

/* A text of so many bytes, and so many places of so many lines. */
static const char *read_many(uint64_t text_bytes, uint64_t places,
			     uint64_t lines)
{
	const struct change counted = {
		.column = -1, .and = 1, .more = (int)places - 2};
	const size_t n = places * lines - 1;
	struct form form = names_form;
	struct sp_unpacker *u = new_unpacker(SP_CHUNK_NAMES);
	const char *field;

	form.columns[SP_COLUMN_LENGTH] = (struct column)VALUES(1, {text_bytes});
	form.columns[SP_COLUMN_TEXT] =
		(struct column)REPEATED(1, text_bytes - 1, {'x'});
	form.columns[SP_COLUMN_LINES] =
		(struct column)REPEATED(1, places - 1, {lines});
	form.columns[SP_COLUMN_FLAGS] = (struct column)REPEATED(1, n, {0});
	form.columns[SP_COLUMN_FUNCTION] = (struct column)REPEATED(1, n, {1});
	form.columns[SP_COLUMN_FILE] = (struct column)REPEATED(1, n, {0});
	form.columns[SP_COLUMN_LINE] = (struct column)REPEATED(1, n, {0});
	field = read_change(u, &form, &counted);
	if (field)
		is_broken(u, &names_form);
	sp_unpacker_free(u);
	return field;
}

TEST(many_names)
{
	assert_null(read_many(SP_FORMAT_NAME_MAX, 3, SP_FORMAT_LINES_MAX));
	assert_string_equal(read_many(SP_FORMAT_NAME_MAX + 1, 3, 1), "text");
	/* The stacks have three places. */
	assert_string_equal(read_many(1, 4, 1), "lines");
	assert_string_equal(read_many(1, 3, SP_FORMAT_LINES_MAX + 1), "lines");
}

TEST_MAIN(NULL, NULL)
