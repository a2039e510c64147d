/* SPDX-License-Identifier: MIT */
#include "profile/symbolfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "format/symbols.h"

/* A text that has an id; free while !id. */
struct cell {
	uint64_t hash;
	const char *text; /* of the symbolizer */
	uint32_t id;
};

struct writer {
	uint64_t file_id;
	uint64_t index; /* of the chunk */
	sp_chunk_fn *fn;
	void *arg;
	struct cell *cells; /* open addressing, at most half full */
	size_t n_cells;     /* a power of two */
	uint32_t n_names;
	struct sp_chunk_state state;
	size_t used; /* bytes of the chunk; 0: there is none yet */
	uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
};

static int flush(struct writer *w)
{
	int r;

	if (!w->used)
		return 0;
	r = w->fn(w->arg, w->chunk);
	w->used = 0;
	w->index++;
	return r;
}

static void begin_chunk(struct writer *w)
{
	struct sp_chunk_header h = {.magic = SP_FORMAT_CHUNK_MAGIC,
				    .kind = SP_CHUNK_SYMBOLS,
				    .index = w->index};

	h.check = sp_format_check(w->file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memset(w->chunk, 0, sizeof(w->chunk));
	memcpy(w->chunk, &h, sizeof(h));
	sp_chunk_state_init(&w->state, w->file_id, w->index);
	w->used = sizeof(h);
}

/* One of the two records; every one fits into an empty chunk. */
static int put(struct writer *w, const struct sp_record_name *name,
	       const struct sp_record_symbol *symbol)
{
	for (;;) {
		uint8_t *at = w->chunk + w->used;
		const size_t room = sizeof(w->chunk) - w->used;
		size_t n = 0;
		int r;

		if (w->used)
			n = name ? sp_encode_name(&w->state, at, room, name)
				 : sp_encode_symbol(&w->state, at, room,
						    symbol);
		w->used += n;
		if (n)
			return 0;
		r = flush(w);
		if (r < 0)
			return r;
		begin_chunk(w);
	}
}

static int grow_cells(struct writer *w)
{
	const size_t n = w->n_cells ? 2 * w->n_cells : 1024;
	struct cell *cells = calloc(n, sizeof(*cells));

	if (!cells || w->n_names >= UINT32_MAX / 2) {
		free(cells);
		return -ENOMEM;
	}
	for (size_t i = 0; i < w->n_cells; i++) {
		size_t at = w->cells[i].hash & (n - 1);

		if (!w->cells[i].id)
			continue;
		while (cells[at].id)
			at = (at + 1) & (n - 1);
		cells[at] = w->cells[i];
	}
	free(w->cells);
	w->cells = cells;
	w->n_cells = n;
	return 0;
}

/* The id of a text, which is written if it is new; 0 for none. */
static int name_id(struct writer *w, const char *text, uint32_t *ret_id)
{
	size_t bytes, at;
	uint64_t hash;

	*ret_id = 0;
	if (!text)
		return 0;
	if (2 * ((size_t)w->n_names + 1) > w->n_cells && grow_cells(w) < 0)
		return -ENOMEM;
	bytes = strlen(text);
	hash = sp_hash_bytes(0, text, bytes);
	for (at = hash & (w->n_cells - 1); w->cells[at].id;
	     at = (at + 1) & (w->n_cells - 1)) {
		*ret_id = w->cells[at].id;
		if (w->cells[at].hash == hash &&
		    strcmp(w->cells[at].text, text) == 0)
			return 0;
	}
	*ret_id = ++w->n_names;
	w->cells[at] = (struct cell){hash, text, *ret_id};
	if (bytes > SP_FORMAT_NAME_MAX)
		bytes = SP_FORMAT_NAME_MAX;
	return put(w, &(struct sp_record_name){*ret_id, text, bytes}, NULL);
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
		int r = name_id(w, s->function, &lines[i].function);

		if (r >= 0)
			r = name_id(w, s->file, &lines[i].file);
		if (r < 0)
			return r;
		lines[i].line = s->line;
		lines[i].flags = (s->is_inlined ? SP_SYMBOL_INLINED : 0) |
				 (s->is_fallback ? SP_SYMBOL_FALLBACK : 0);
	}
	return put(w, NULL, &record);
}

static int compare_frames(const void *a, const void *b)
{
	const struct sp_frame *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Every frame of the stacks once, in order; NULL if memory is short. */
static struct sp_frame *distinct_frames(const struct sp_profile *p, size_t *ret)
{
	struct sp_frame *frames;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < p->n_stacks; i++)
		n += p->stacks[i].n_frames;
	frames = malloc((n + 1) * sizeof(*frames));
	if (!frames)
		return NULL;
	n = 0;
	for (size_t i = 0; i < p->n_stacks; i++)
		for (uint32_t k = 0; k < p->stacks[i].n_frames; k++)
			frames[n++] = p->stacks[i].frames[k];
	qsort(frames, n, sizeof(*frames), compare_frames);
	for (size_t i = 0; i < n; i++)
		if (!kept || compare_frames(&frames[kept - 1], &frames[i]) != 0)
			frames[kept++] = frames[i];
	*ret = kept;
	return frames;
}

int sp_symbolfile_write(const struct sp_profile *profile,
			struct sp_symbolizer *symbolizer, uint64_t first_chunk,
			sp_chunk_fn *fn, void *arg, sp_progress_fn *progress,
			void *progress_arg, uint64_t *ret_frames,
			struct sp_error *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	size_t n = 0;
	struct sp_frame *frames = distinct_frames(profile, &n);
	int r = w && frames ? 0 : -ENOMEM;

	if (w) {
		w->file_id = profile->file_id;
		w->index = first_chunk;
		w->fn = fn;
		w->arg = arg;
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = write_frame(
			w, frames[i],
			sp_symbolizer_lookup(symbolizer, frames[i], true));
		if (progress && i % 64 == 0)
			progress(progress_arg, i, n);
	}
	if (r >= 0)
		r = flush(w);
	*ret_frames = n;
	free(frames);
	if (w)
		free(w->cells);
	free(w);
	return r < 0 ? sp_error_set(err, r, profile->path,
				    "its symbols cannot be written: %s",
				    strerror(-r))
		     : 0;
}
