/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/encode.h"

/* The check of a chunk of columns: of a header of header_bytes, but for its own
 * 8, and of the columns behind it. */
uint64_t sp_columns_check(uint64_t file_id, enum sp_check_kind kind,
			  const uint8_t *chunk, size_t header_bytes,
			  size_t columns_bytes);

/*
 * Encode the records that the offline side writes and the agent does not, as
 * sp_encode() does those of the agent.  The type byte is stored, too.  Returns
 * the record's size, or 0 if it does not fit.
 */
size_t sp_encode_name(struct sp_chunk_state *state, uint8_t *out, size_t room,
		      const struct sp_record_name *name);
size_t sp_encode_symbol(struct sp_chunk_state *state, uint8_t *out, size_t room,
			const struct sp_record_symbol *symbol);

/* A record of any type whose payload does not depend on others before it, as it
 * was decoded (all but SAMPLE and FREE). */
size_t sp_encode_payload(struct sp_chunk_state *state, uint8_t *out,
			 size_t room, uint8_t type, const uint8_t *payload,
			 size_t payload_bytes);
