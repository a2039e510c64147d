/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "format/record.h"
#include "pack/chunkwriter.h"

/* Chunks of columns: a header, which ends in its check, then numbers. */
struct sp_columns_layout {
	enum sp_chunk_kind kind;
	enum sp_check_kind check;
	size_t header_bytes;
	size_t lengths_at; /* of the lengths in the header, u32 each */
	unsigned int n_columns;
};

extern const struct sp_columns_layout sp_events_layout;
extern const struct sp_columns_layout sp_stacks_layout;
extern const struct sp_columns_layout sp_names_layout;

/* ---- writing ---- */

struct sp_columns {
	const struct sp_columns_layout *layout;
	uint64_t file_id;
	uint64_t index; /* of the chunk */
	sp_chunk_fn *fn;
	void *arg;
	size_t room; /* bytes that are left for all columns */
	size_t n[SP_EVENTS_COLUMNS];
	uint8_t bytes[SP_EVENTS_COLUMNS][SP_FORMAT_CHUNK_BYTES];
	uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
};

/* Chunks with the numbers first, first + 1, ... go to `fn`. */
void sp_columns_init(struct sp_columns *columns,
		     const struct sp_columns_layout *layout, uint64_t file_id,
		     uint64_t first, sp_chunk_fn *fn, void *arg);

/* Add a number.  There must be room. */
void sp_columns_put(struct sp_columns *columns, unsigned int column,
		    uint64_t value);

/* Add n bytes as they are, likewise. */
void sp_columns_put_bytes(struct sp_columns *columns, unsigned int column,
			  const void *bytes, size_t n);

/* The chunk goes out, with `header`, of which lengths and check are set here.
 * 0, or what `fn` returned. */
int sp_columns_flush(struct sp_columns *columns, void *header);

/* ---- reading ---- */

/*
 * The header and the columns of a chunk, untrusted, that has `bytes` bytes.
 * NULL, or the field that is damaged.
 */
const char *sp_columns_open(const struct sp_columns_layout *layout,
			    uint64_t file_id, const uint8_t *chunk,
			    size_t bytes, void *ret_header,
			    struct sp_slice *ret_columns);
