/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "format/decode.h"

/*
 * Symbols from columns (docs/format.md, "Names"), for unpack.c: texts, then the
 * lines of one place after the other.  symbolfile.c writes them.
 * Zero-initialise.
 */
struct sp_unname {
	uint64_t n_places;                /* that had their turn */
	uint64_t n_texts;                 /* likewise */
	uint64_t n_named;                 /* of these, that a line has named */
	uint32_t places_left, texts_left; /* of the chunk */
	struct sp_slice columns[SP_NAMES_COLUMNS];
	uint8_t lines[SP_FORMAT_LINES_MAX * 4 * SP_VARINT_MAX_BYTES];
};

/* As sp_unpack_chunk() (pack/events.h). */
const char *sp_unname_chunk(struct sp_unname *unname, uint64_t file_id,
			    const uint8_t *chunk, size_t bytes);

/* Likewise, of a file with such places. */
int sp_unname_next(struct sp_unname *unname,
		   const struct sp_record_frame *places, size_t n_places,
		   struct sp_decoded *ret);
