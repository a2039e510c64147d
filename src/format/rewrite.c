/* SPDX-License-Identifier: MIT */
#include "format/rewrite.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

uint64_t sp_columns_check(uint64_t file_id, enum sp_check_kind kind,
			  const uint8_t *chunk, size_t header_bytes,
			  size_t columns_bytes)
{
	const uint8_t *at = chunk + SP_FORMAT_CHUNK_RECORDS_OFFSET;
	const uint64_t h = sp_format_check(file_id, kind, at, header_bytes);

	return sp_hash_bytes(h, at + header_bytes, columns_bytes);
}

/* The payload is where sp_varint_put() left it, behind the length. */
static size_t seal_record(struct sp_chunk_state *state, uint8_t *out,
			  uint8_t *end, uint8_t type)
{
	uint64_t h = sp_hash_word(state->hash, type);

	h = sp_hash_bytes(h, out + 1, (size_t)(end - out - 1));
	state->hash = h;
	*out = type;
	*end++ = (uint8_t)(h >> 48);
	*end++ = (uint8_t)(h >> 56);
	return (size_t)(end - out);
}

/* Where the payload begins, or NULL if the record does not fit. */
static uint8_t *begin_record(uint8_t *out, size_t room, size_t payload_bytes)
{
	if (1 + sp_varint_bytes(payload_bytes) + payload_bytes + 2 > room)
		return NULL;
	return sp_varint_put(out + 1, payload_bytes);
}

size_t sp_encode_name(struct sp_chunk_state *state, uint8_t *out, size_t room,
		      const struct sp_record_name *name)
{
	uint8_t *at = begin_record(
		out, room, sp_varint_bytes(name->id) + name->text_bytes);

	if (!at)
		return 0;
	at = sp_varint_put(at, name->id);
	if (name->text_bytes)
		memcpy(at, name->text, name->text_bytes);
	return seal_record(state, out, at + name->text_bytes, SP_RECORD_NAME);
}

size_t sp_encode_symbol(struct sp_chunk_state *state, uint8_t *out, size_t room,
			const struct sp_record_symbol *symbol)
{
	size_t bytes = sp_varint_bytes(symbol->frame.module) +
		       sp_varint_bytes(symbol->frame.offset) +
		       sp_varint_bytes(symbol->n_lines);
	uint8_t *at;

	for (size_t i = 0; i < symbol->n_lines; i++) {
		const struct sp_record_line *l = &symbol->lines[i];

		bytes += sp_varint_bytes(l->flags) +
			 sp_varint_bytes(l->function) +
			 sp_varint_bytes(l->file) + sp_varint_bytes(l->line);
	}
	at = begin_record(out, room, bytes);
	if (!at)
		return 0;
	at = sp_varint_put(at, symbol->frame.module);
	at = sp_varint_put(at, symbol->frame.offset);
	at = sp_varint_put(at, symbol->n_lines);
	for (size_t i = 0; i < symbol->n_lines; i++) {
		const struct sp_record_line *l = &symbol->lines[i];

		at = sp_varint_put(at, l->flags);
		at = sp_varint_put(at, l->function);
		at = sp_varint_put(at, l->file);
		at = sp_varint_put(at, l->line);
	}
	return seal_record(state, out, at, SP_RECORD_SYMBOL);
}

size_t sp_encode_payload(struct sp_chunk_state *state, uint8_t *out,
			 size_t room, uint8_t type, const uint8_t *payload,
			 size_t payload_bytes)
{
	uint8_t *at = begin_record(out, room, payload_bytes);

	if (!at)
		return 0;
	if (payload_bytes)
		memcpy(at, payload, payload_bytes);
	return seal_record(state, out, at + payload_bytes, type);
}
