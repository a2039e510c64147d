/* SPDX-License-Identifier: MIT */
#include "export/html_columns.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

/* Bytes as they come. */
struct column {
	uint8_t *bytes;
	size_t n, room;
	bool failed; /* not enough memory: later values are dropped */
};

static void put_value(struct column *c, uint64_t value)
{
	if (c->room - c->n < SP_VARINT_MAX_BYTES) {
		const size_t room = 2 * c->room + 4096;
		uint8_t *grown = c->failed ? NULL : realloc(c->bytes, room);

		if (!grown) {
			c->failed = true;
			return;
		}
		c->bytes = grown;
		c->room = room;
	}
	c->n = (size_t)(sp_varint_put(c->bytes + c->n, value) - c->bytes);
}

static char *base64_text(const uint8_t *bytes, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	char *text = malloc((n + 2) / 3 * 4 + 1), *to = text;

	for (size_t i = 0; text && i < n; i += 3) {
		const size_t left = n - i;
		const uint32_t three = (uint32_t)bytes[i] << 16 |
				       (left > 1 ? bytes[i + 1] : 0u) << 8 |
				       (left > 2 ? bytes[i + 2] : 0u);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[three & 63] : '=';
	}
	if (text)
		*to = '\0';
	return text;
}

/* Writes the column, and frees it. */
static int finish_column(struct sp_json *json, const char *key,
			 struct column *c)
{
	char *text = c->failed ? NULL : base64_text(c->bytes, c->n);

	if (text)
		sp_json_string(json, key, text);
	free(c->bytes);
	free(text);
	return text ? 0 : -ENOMEM;
}

int sp_html_columns_paths(struct sp_json *json,
			  const struct sp_html_paths *paths)
{
	const struct sp_html_path none = {0}, *last = &none;
	struct column c = {0};

	for (size_t i = 0; i < paths->n_paths; i++) {
		const struct sp_html_path *path = &paths->paths[i];
		const uint32_t *frames = paths->frames + path->at;
		uint32_t shared = 0;

		while (shared < path->n_frames && shared < last->n_frames &&
		       frames[shared] == paths->frames[last->at + shared])
			shared++;
		put_value(&c, shared);
		put_value(&c, path->n_frames - shared);
		for (uint32_t k = shared; k < path->n_frames; k++)
			put_value(&c, frames[k]);
		put_value(&c, path->n_frames - 1 - path->flat);
		last = path;
	}
	return finish_column(json, "paths", &c);
}

int sp_html_columns_kinds(struct sp_json *json,
			  const struct sp_html_cells *cells)
{
	struct column c = {0};

	for (size_t i = 0; i < cells->n_kinds; i++) {
		const struct sp_html_kind *kind = &cells->kinds[i];

		put_value(&c, kind->size_bytes);
		put_value(&c, 2 * (uint64_t)kind->period + kind->is_sure);
	}
	return finish_column(json, "kinds", &c);
}

int sp_html_columns_cells(struct sp_json *json,
			  const struct sp_html_cells *cells, size_t n_paths)
{
	const struct sp_html_cell *cell = cells->cells;
	const struct sp_html_cell *end = cell + cells->n_cells;
	struct column c = {0};

	for (size_t i = 0; i < n_paths; i++) {
		const struct sp_html_cell *next = cell;

		while (next < end && next->stack == i)
			next++;
		put_value(&c, (uint64_t)(next - cell));
		for (; cell < next; cell++) {
			put_value(&c, cell->kind);
			put_value(&c, cell->born);
			put_value(&c, cell->freed);
			put_value(&c, (cell->count - 1) << SP_HTML_FLAG_BITS |
					      cell->flags);
		}
	}
	return finish_column(json, "cells", &c);
}
