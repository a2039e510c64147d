/* SPDX-License-Identifier: MIT */
#include "pack/namepack.h"

#include <errno.h>

#include "pack/columns.h"

const char *sp_unname_chunk(struct sp_unname *u, uint64_t file_id,
			    const uint8_t *chunk, size_t n)
{
	struct sp_names_header h;
	const char *wrong = sp_columns_open(&sp_names_layout, file_id, chunk, n,
					    &h, u->columns);

	if (wrong)
		return wrong;
	if (h.first != u->n_places || h.zero)
		return "names number";
	u->places_left = h.n_places;
	u->texts_left = h.n_texts;
	return NULL;
}

static int take_text(struct sp_unname *u, struct sp_decoded *ret)
{
	struct sp_record_name *r = &ret->u.name;

	r->text_bytes = sp_slice_varint(&u->columns[SP_COLUMN_LENGTH]);
	r->text = (const char *)sp_slice_take(&u->columns[SP_COLUMN_TEXT],
					      r->text_bytes);
	r->id = ++u->n_texts;
	ret->field = "text";
	if (u->columns[SP_COLUMN_LENGTH].failed ||
	    u->columns[SP_COLUMN_TEXT].failed ||
	    r->text_bytes > SP_FORMAT_NAME_MAX || r->id > UINT32_MAX)
		return -EBADMSG;
	ret->type = SP_RECORD_NAME;
	return 1;
}

/* The id of the text that a line names by this number; 0: there is none. */
static uint64_t text_id(struct sp_unname *u, uint64_t number)
{
	if (!number)
		number = ++u->n_named;
	return number <= u->n_texts ? number : 0;
}

/* One line to `at`, as in the payload of a SYMBOL: its end; NULL: damaged. */
static uint8_t *take_line(struct sp_unname *u, bool is_last, uint8_t *at)
{
	const uint64_t flags = sp_slice_varint(&u->columns[SP_COLUMN_FLAGS]);
	const uint64_t function =
		text_id(u, sp_slice_varint(&u->columns[SP_COLUMN_FUNCTION]));
	uint64_t file = sp_slice_varint(&u->columns[SP_COLUMN_FILE]);
	const uint64_t line = sp_slice_varint(&u->columns[SP_COLUMN_LINE]);
	const bool has_file = file;

	if (has_file)
		file = text_id(u, file - 1);
	if (u->columns[SP_COLUMN_FLAGS].failed ||
	    u->columns[SP_COLUMN_FUNCTION].failed ||
	    u->columns[SP_COLUMN_FILE].failed ||
	    u->columns[SP_COLUMN_LINE].failed || !function ||
	    (has_file && !file) || line > UINT32_MAX)
		return NULL;
	at = sp_varint_put(at, flags ^ (is_last ? 0 : SP_SYMBOL_INLINED));
	at = sp_varint_put(at, function);
	at = sp_varint_put(at, file);
	return sp_varint_put(at, line);
}

static int take_place(struct sp_unname *u, const struct sp_record_frame *places,
		      size_t n_places, struct sp_decoded *ret)
{
	const uint64_t n = sp_slice_varint(&u->columns[SP_COLUMN_LINES]);
	uint8_t *at = u->lines;

	ret->field = "lines";
	if (u->columns[SP_COLUMN_LINES].failed || u->n_places >= n_places ||
	    n == 0 || n > SP_FORMAT_LINES_MAX)
		return -EBADMSG;
	for (uint64_t i = 0; i < n && at; i++)
		at = take_line(u, i + 1 == n, at);
	if (!at)
		return -EBADMSG;
	ret->type = SP_RECORD_SYMBOL;
	ret->u.symbol.frame = places[u->n_places++];
	ret->u.symbol.n_lines = (uint32_t)n;
	ret->u.symbol.lines = u->lines;
	ret->u.symbol.lines_bytes = (size_t)(at - u->lines);
	return 1;
}

int sp_unname_next(struct sp_unname *u, const struct sp_record_frame *places,
		   size_t n_places, struct sp_decoded *ret)
{
	if (u->texts_left) {
		u->texts_left--;
		return take_text(u, ret);
	}
	if (u->places_left) {
		u->places_left--;
		return take_place(u, places, n_places, ret);
	}
	for (unsigned int i = 0; i < SP_NAMES_COLUMNS; i++)
		if (u->columns[i].at < u->columns[i].end) {
			ret->field = "names column";
			return -EBADMSG;
		}
	return 0;
}
