/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/record.h"

/* Takes a whole chunk of a file; 0 or a negative errno. */
typedef int sp_chunk_fn(void *arg, const uint8_t *chunk);

/* Records into the chunks of a copy, one chunk after the other. */
struct sp_chunk_writer {
	uint64_t file_id;
	uint64_t index; /* of the chunk */
	uint32_t kind;  /* enum sp_chunk_kind */
	sp_chunk_fn *fn;
	void *arg;
	struct sp_chunk_state state;
	size_t used; /* bytes of the chunk; 0: there is none yet */
	uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
};

/* Chunks with the numbers first, first + 1, ... go to `fn`. */
void sp_chunk_writer_init(struct sp_chunk_writer *writer, uint64_t file_id,
			  enum sp_chunk_kind kind, uint64_t first,
			  sp_chunk_fn *fn, void *arg);

/* Where the next record belongs, and how many bytes there are for it.  Add what
 * it takes to `used`; what does not fit comes after a flush. */
uint8_t *sp_chunk_writer_room(struct sp_chunk_writer *writer, size_t *ret_room);

/* The chunk goes out, if there is one.  0, or what `fn` returned. */
int sp_chunk_writer_flush(struct sp_chunk_writer *writer);
