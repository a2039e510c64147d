/* SPDX-License-Identifier: MIT */
#include "read/symbolfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "format/rewrite.h"
#include "pack/columns.h"
#include "read/load.h"

struct writer {
	struct sp_index index; /* of names */
	const char **names;    /* texts of the symbolizer, by id - 1 */
	size_t n_names, names_room;
	bool is_packed;
	struct sp_chunk_writer chunks; /* if not, else: */
	struct sp_columns columns;
	struct sp_names_header header;
	uint32_t n_named; /* texts that a line has named */
};

static int flush_chunk(struct writer *w)
{
	const struct sp_names_header h = w->header;
	int r;

	if (!w->is_packed)
		return sp_chunk_writer_flush(&w->chunks);
	if (!h.n_places && !h.n_texts)
		return 0;
	r = sp_columns_flush(&w->columns, &w->header);
	w->header = (struct sp_names_header){.first = h.first + h.n_places};
	return r;
}

static void put_number(struct writer *w, enum sp_names_column column,
		       uint64_t value)
{
	sp_columns_put(&w->columns, column, value);
}

/* Texts are named in the order in which they were written: 0 is the next. */
static uint64_t text_number(struct writer *w, uint32_t id)
{
	if (id <= w->n_named)
		return id;
	w->n_named++;
	return 0;
}

static void put_line(struct writer *w, const struct sp_record_line *l,
		     bool is_last)
{
	put_number(w, SP_COLUMN_FLAGS,
		   l->flags ^ (is_last ? 0 : SP_SYMBOL_INLINED));
	put_number(w, SP_COLUMN_FUNCTION, text_number(w, l->function));
	put_number(w, SP_COLUMN_FILE,
		   l->file ? 1 + text_number(w, l->file) : 0);
	put_number(w, SP_COLUMN_LINE, l->line);
}

/* As put_name(). */
static int put_packed(struct writer *w, const struct sp_record_name *name,
		      const struct sp_record_symbol *symbol)
{
	const size_t most =
		SP_VARINT_MAX_BYTES * (name ? 1 : 1 + 4 * symbol->n_lines) +
		(name ? name->text_bytes : 0);

	if (w->columns.room < most) {
		int r = flush_chunk(w);

		if (r < 0)
			return r;
	}
	if (name) {
		w->header.n_texts++;
		put_number(w, SP_COLUMN_LENGTH, name->text_bytes);
		sp_columns_put_bytes(&w->columns, SP_COLUMN_TEXT, name->text,
				     name->text_bytes);
		return 0;
	}
	w->header.n_places++;
	put_number(w, SP_COLUMN_LINES, symbol->n_lines);
	for (size_t i = 0; i < symbol->n_lines; i++)
		put_line(w, &symbol->lines[i], i + 1 == symbol->n_lines);
	return 0;
}

/* One of the two records; every one fits into an empty chunk. */
static int put_name(struct writer *w, const struct sp_record_name *name,
		    const struct sp_record_symbol *symbol)
{
	struct sp_chunk_writer *c = &w->chunks;

	if (w->is_packed)
		return put_packed(w, name, symbol);
	for (;;) {
		size_t room;
		uint8_t *at = sp_chunk_writer_room(c, &room);
		const size_t n =
			name ? sp_encode_name(&c->state, at, room, name)
			     : sp_encode_symbol(&c->state, at, room, symbol);
		int r;

		c->used += n;
		if (n)
			return 0;
		r = sp_chunk_writer_flush(c);
		if (r < 0)
			return r;
	}
}

/* The id of a text, which is written if it is new; 0 for none. */
static int name_id(struct writer *w, const char *text, uint32_t *ret_id)
{
	struct sp_index_probe probe;
	size_t bytes;

	*ret_id = 0;
	if (!text)
		return 0;
	if (sp_index_reserve(&w->index) < 0 ||
	    sp_array_reserve((void **)&w->names, &w->names_room, w->n_names,
			     sizeof(*w->names)))
		return -ENOMEM;
	bytes = strlen(text);
	probe = sp_index_begin(sp_hash_bytes(0, text, bytes));
	while (sp_index_next(&w->index, &probe)) {
		*ret_id = probe.position + 1;
		if (strcmp(w->names[probe.position], text) == 0)
			return 0;
	}
	sp_index_put(&w->index, &probe, w->n_names);
	w->names[w->n_names++] = text;
	*ret_id = (uint32_t)w->n_names;
	if (bytes > SP_FORMAT_NAME_MAX)
		bytes = SP_FORMAT_NAME_MAX;
	return put_name(w, &(struct sp_record_name){*ret_id, text, bytes},
			NULL);
}

static int write_frame(struct writer *w, struct sp_frame frame,
		       struct sp_symbols symbols)
{
	struct sp_record_line lines[SP_FORMAT_LINES_MAX];
	const struct sp_record_symbol record = {
		.frame = {.module = frame.module, .offset = frame.offset},
		.lines = lines,
		.n_lines = symbols.count < SP_FORMAT_LINES_MAX
				   ? symbols.count
				   : SP_FORMAT_LINES_MAX};

	for (size_t i = 0; i < record.n_lines; i++) {
		const struct sp_symbol *s = &symbols.symbol[i];
		int r = name_id(w, s->identity ? s->identity : s->function,
				&lines[i].function);

		if (r >= 0)
			r = name_id(w, s->file, &lines[i].file);
		if (r < 0)
			return r;
		lines[i].line = s->line;
		lines[i].flags = (s->is_inlined ? SP_SYMBOL_INLINED : 0) |
				 (s->is_fallback ? SP_SYMBOL_FALLBACK : 0) |
				 (s->is_clone ? SP_SYMBOL_CLONE : 0) |
				 (s->lacks_inlined ? SP_SYMBOL_LACKS : 0) |
				 (s->calls_wrapper ? SP_SYMBOL_CALLS : 0);
	}
	return put_name(w, NULL, &record);
}

/* Frames in the order in which they are written. */
static int write_frames(struct writer *w, const struct sp_frame *frames,
			size_t n, struct sp_symbolizer *symbolizer,
			sp_progress_fn *progress, void *progress_arg)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		r = write_frame(
			w, frames[i],
			sp_symbolizer_lookup(symbolizer, frames[i], true));
		if (progress && i % 64 == 0)
			progress(progress_arg, i, n);
	}
	return r < 0 ? r : flush_chunk(w);
}

int sp_symbolfile_write(const struct sp_profile *profile,
			struct sp_symbolizer *symbolizer,
			const struct sp_symbolfile *file,
			sp_progress_fn *progress, void *progress_arg,
			uint64_t *ret_frames, struct sp_error *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	struct sp_frame *frames = NULL;
	size_t n = file->n_places;
	int r = -ENOMEM;

	if (!file->places)
		frames = sp_profile_frames(profile, &n);
	if (w && (frames || file->places)) {
		w->is_packed = file->places;
		sp_columns_init(&w->columns, &sp_names_layout, profile->file_id,
				file->first_chunk, file->fn, file->arg);
		sp_chunk_writer_init(&w->chunks, profile->file_id,
				     SP_CHUNK_SYMBOLS, file->first_chunk,
				     file->fn, file->arg);
		r = write_frames(w, frames ? frames : file->places, n,
				 symbolizer, progress, progress_arg);
	}
	*ret_frames = n;
	free(frames);
	if (w) {
		sp_index_done(&w->index);
		free(w->names);
	}
	free(w);
	return r < 0 ? sp_error_set(err, r, profile->path,
				    "its symbols cannot be written: %s",
				    strerror(-r))
		     : 0;
}
