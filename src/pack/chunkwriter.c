/* SPDX-License-Identifier: MIT */
#include "pack/chunkwriter.h"

#include <string.h>

void sp_chunk_writer_init(struct sp_chunk_writer *w, uint64_t file_id,
			  enum sp_chunk_kind kind, uint64_t first,
			  sp_chunk_fn *fn, void *arg)
{
	w->file_id = file_id;
	w->index = first;
	w->kind = kind;
	w->fn = fn;
	w->arg = arg;
	w->used = 0;
}

uint8_t *sp_chunk_writer_room(struct sp_chunk_writer *w, size_t *ret_room)
{
	struct sp_chunk_header h = {.magic = SP_FORMAT_CHUNK_MAGIC,
				    .kind = w->kind,
				    .index = w->index};

	if (!w->used) {
		h.check = sp_format_check(w->file_id, SP_CHECK_CHUNK, &h,
					  sizeof(h));
		memset(w->chunk, 0, sizeof(w->chunk));
		memcpy(w->chunk, &h, sizeof(h));
		sp_chunk_state_init(&w->state, w->file_id, w->index);
		w->used = sizeof(h);
	}
	*ret_room = sizeof(w->chunk) - w->used;
	return w->chunk + w->used;
}

int sp_chunk_writer_flush(struct sp_chunk_writer *w)
{
	if (!w->used)
		return 0;
	w->used = 0;
	w->index++;
	return w->fn(w->arg, w->chunk);
}
