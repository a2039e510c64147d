/* SPDX-License-Identifier: MIT */
#include "hand_columns.h"
#include "support/test.h"

#include <errno.h>

#include "format/rewrite.h"
#include "support/format_model.h"

const struct form events_form = {
	SP_CHUNK_EVENTS,
	SP_CHECK_EVENTS,
	80,
	16,
	SP_EVENTS_COLUMNS,
	{
		/* a, b, free a, c like a, free b */
		[SP_COLUMN_WHAT] = VALUES(5, {0, 2, 1, 0, 3}),
		[SP_COLUMN_SITE] = VALUES(4, {1, 0, 2, 9}),
		[SP_COLUMN_SIZE] = VALUES(3, {100, 50, 30}),
		[SP_COLUMN_TIME] = VALUES(4, {2, 10, 3, 10}),
		[SP_COLUMN_THREAD] = VALUES(4, {0, 1, 2, 2}),
		[SP_COLUMN_ID] = VALUES(2, {1, UP(7)}),
		[SP_COLUMN_PERIOD] = VALUES(2, {0, 64}),
		[SP_COLUMN_OFFSET] = VALUES(2, {1, 7}),
	}};

const struct form stacks_form = {
	SP_CHUNK_STACKS,
	SP_CHECK_STACKS,
	32,
	12,
	SP_STACKS_COLUMNS,
	{
		/* b called from a, a called from that a, c from that b */
		[SP_COLUMN_STACK] =
			VALUES(12, {UP(0), 0, UP(0), 2, UP(1), 5, UP(1), 1,
				    DOWN(2), 0, UP(1), 1}),
		[SP_COLUMN_FRAME] = VALUES(4, {0, 0, 1, 0}),
		[SP_COLUMN_PLACE] =
			VALUES(6, {7, UP(100), 0, DOWN(50), 7, UP(1)}),
	}};

/* Of those three places. */
const struct form names_form = {
	SP_CHUNK_NAMES,
	SP_CHECK_NAMES,
	56,
	16,
	SP_NAMES_COLUMNS,
	{
		[SP_COLUMN_LENGTH] = VALUES(2, {1, 3}),
		[SP_COLUMN_TEXT] = VALUES(4, {'f', 'a', '.', 'c'}),
		[SP_COLUMN_LINES] = VALUES(2, {1, 2}),
		[SP_COLUMN_FLAGS] = VALUES(3, {2, 0, 0}),
		[SP_COLUMN_FUNCTION] = VALUES(3, {0, 1, 2}),
		[SP_COLUMN_FILE] = VALUES(3, {1, 0, 2}),
		[SP_COLUMN_LINE] = VALUES(3, {10, 20, 30}),
	}};

const struct form *const forms[3] = {&events_form, &stacks_form, &names_form};

/* Their headers say so many of each. */
static const uint32_t counts[3][2] = {{5, 0}, {3, 0}, {2, 2}};

struct chunk build_chunk(const struct form *form, const struct change *c)
{
	const uint32_t *count = counts[form->kind - SP_CHUNK_EVENTS];
	const size_t head = 24 + form->header_bytes;
	struct model_bytes columns = {0};
	struct chunk chunk;
	uint32_t number = count[0] + (uint32_t)c->more;
	uint32_t other = c->and ? c->and : count[1];
	uint8_t *h = calloc(1, head);
	uint64_t check;

	memcpy(h + 24, &c->first, 8);
	memcpy(h + 32, &number, 4);
	if (form->kind != SP_CHUNK_STACKS)
		memcpy(h + 36, &other, 4);
	if (c->set)
		h[24 + c->set] = 1;
	for (int i = 0; i < (int)form->n_columns; i++) {
		const struct column *is =
			i == c->column ? &c->is : &form->columns[i];
		const bool is_text =
			form->kind == SP_CHUNK_NAMES && i == SP_COLUMN_TEXT;
		const size_t before = columns.n;
		uint32_t n;

		for (size_t k = 0; k < is->n + is->repeat; k++) {
			const uint64_t v =
				is->values[k < is->n ? k : is->n - 1];

			if (is_text)
				model_raw(&columns, &v, 1);
			else
				model_varint(&columns, v);
		}
		n = (uint32_t)(columns.n - before);
		if (i == c->column)
			n += c->more_bytes;
		memcpy(h + 24 + form->lengths_at + 4 * (size_t)i, &n, 4);
	}
	chunk.n = head + columns.n;
	chunk.bytes = malloc(chunk.n);
	assert_non_null(chunk.bytes);
	memcpy(chunk.bytes, h, head);
	if (columns.n)
		memcpy(chunk.bytes + head, columns.data, columns.n);
	check = sp_columns_check(HAND_FILE_ID, form->check, chunk.bytes,
				 form->header_bytes, columns.n);
	memcpy(chunk.bytes + head - 8, &check, 8);
	free(h);
	model_done(&columns);
	return chunk;
}

const char *read_chunk(struct sp_unpacker *u, uint32_t kind,
		       const struct chunk *chunk)
{
	const char *field = sp_unpack_chunk(u, kind, chunk->bytes, chunk->n);
	struct sp_decoded d = {0};
	int r;

	if (field)
		return field;
	while ((r = sp_unpack_next(u, &d)) == 1)
		;
	assert_true(r == 0 || r == -EBADMSG);
	return r ? d.field : NULL;
}

const struct change right = {.column = -1};

const char *read_change(struct sp_unpacker *u, const struct form *form,
			const struct change *change)
{
	struct chunk chunk = build_chunk(form, change);
	const char *field = read_chunk(u, form->kind, &chunk);

	free(chunk.bytes);
	return field;
}

void is_broken(struct sp_unpacker *u, const struct form *form)
{
	const bool is_events = form->kind == SP_CHUNK_EVENTS;
	uint64_t frees, unfinished;

	assert_string_equal(read_change(u, form, &right),
			    "columns after damage");
	assert_null(read_change(u, is_events ? &stacks_form : &events_form,
				&right));
	assert_false(sp_unpack_is_complete(u, &frees, &unfinished));
}

struct sp_unpacker *new_unpacker(uint32_t kind)
{
	struct sp_unpacker *u = sp_unpacker_new(HAND_FILE_ID);

	assert_non_null(u);
	if (kind == SP_CHUNK_NAMES)
		assert_null(read_change(u, &stacks_form, &right));
	return u;
}

void try_changes(const struct form *form, const struct change *changes,
		 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct change *c = &changes[i];
		struct sp_unpacker *u = new_unpacker(form->kind);
		const char *field = read_change(u, form, c);

		if (field ? !c->field || strcmp(field, c->field) != 0
			  : !!c->field)
			fail_msg("%zu: \"%s\" instead of \"%s\"", i,
				 field ? field : "right",
				 c->field ? c->field : "right");
		if (field)
			is_broken(u, form);
		sp_unpacker_free(u);
	}
}
