/* SPDX-License-Identifier: MIT */
#ifndef SP_FORMAT_SYMBOLS_H
#define SP_FORMAT_SYMBOLS_H

#include "format/encode.h"

/*
 * Encode the records of a chunk of SP_CHUNK_SYMBOLS, as sp_encode() does those
 * of the agent, which has no use for them.  The type byte is stored, too.
 * Returns the record's size, or 0 if it does not fit.
 */
size_t sp_encode_name(struct sp_chunk_state *state, uint8_t *out, size_t room,
		      const struct sp_record_name *name);
size_t sp_encode_symbol(struct sp_chunk_state *state, uint8_t *out, size_t room,
			const struct sp_record_symbol *symbol);

#endif
