/* SPDX-License-Identifier: MIT */
#include "pack/columns.h"

#include <string.h>

#include "format/rewrite.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES
#define AT    SP_FORMAT_CHUNK_RECORDS_OFFSET

const struct sp_columns_layout sp_events_layout = {
	.kind = SP_CHUNK_EVENTS,
	.check = SP_CHECK_EVENTS,
	.header_bytes = sizeof(struct sp_events_header),
	.lengths_at = offsetof(struct sp_events_header, column_bytes),
	.n_columns = SP_EVENTS_COLUMNS,
};

const struct sp_columns_layout sp_stacks_layout = {
	.kind = SP_CHUNK_STACKS,
	.check = SP_CHECK_STACKS,
	.header_bytes = sizeof(struct sp_stacks_header),
	.lengths_at = offsetof(struct sp_stacks_header, column_bytes),
	.n_columns = SP_STACKS_COLUMNS,
};

const struct sp_columns_layout sp_names_layout = {
	.kind = SP_CHUNK_NAMES,
	.check = SP_CHECK_NAMES,
	.header_bytes = sizeof(struct sp_names_header),
	.lengths_at = offsetof(struct sp_names_header, column_bytes),
	.n_columns = SP_NAMES_COLUMNS,
};

static void empty_columns(struct sp_columns *c)
{
	memset(c->n, 0, sizeof(c->n));
	c->room = CHUNK - AT - c->layout->header_bytes;
}

void sp_columns_init(struct sp_columns *c,
		     const struct sp_columns_layout *layout, uint64_t file_id,
		     uint64_t first, sp_chunk_fn *fn, void *arg)
{
	c->layout = layout;
	c->file_id = file_id;
	c->index = first;
	c->fn = fn;
	c->arg = arg;
	empty_columns(c);
}

void sp_columns_put(struct sp_columns *c, unsigned int column, uint64_t value)
{
	uint8_t *at = c->bytes[column] + c->n[column];
	const size_t n = (size_t)(sp_varint_put(at, value) - at);

	c->n[column] += n;
	c->room -= n;
}

void sp_columns_put_bytes(struct sp_columns *c, unsigned int column,
			  const void *bytes, size_t n)
{
	if (n)
		memcpy(c->bytes[column] + c->n[column], bytes, n);
	c->n[column] += n;
	c->room -= n;
}

int sp_columns_flush(struct sp_columns *c, void *header)
{
	const struct sp_columns_layout *l = c->layout;
	const size_t used = CHUNK - AT - l->header_bytes - c->room;
	struct sp_chunk_header head = {.magic = SP_FORMAT_CHUNK_MAGIC,
				       .kind = l->kind,
				       .index = c->index++};
	uint8_t *at = c->chunk + AT + l->header_bytes;
	uint64_t check;

	memset(c->chunk, 0, sizeof(c->chunk));
	head.check = sp_format_check(c->file_id, SP_CHECK_CHUNK, &head,
				     sizeof(head));
	memcpy(c->chunk, &head, sizeof(head));
	for (unsigned int i = 0; i < l->n_columns; i++) {
		const uint32_t n = (uint32_t)c->n[i];

		memcpy(at, c->bytes[i], n);
		memcpy((char *)header + l->lengths_at + i * sizeof(n), &n,
		       sizeof(n));
		at += n;
	}
	memcpy(c->chunk + AT, header, l->header_bytes);
	check = sp_columns_check(c->file_id, l->check, c->chunk,
				 l->header_bytes, used);
	memcpy(c->chunk + AT + l->header_bytes - sizeof(check), &check,
	       sizeof(check));
	empty_columns(c);
	return c->fn(c->arg, c->chunk);
}

const char *sp_columns_open(const struct sp_columns_layout *l, uint64_t file_id,
			    const uint8_t *chunk, size_t n, void *ret_header,
			    struct sp_slice *ret_columns)
{
	const uint8_t *at = chunk + AT + l->header_bytes;
	size_t used = 0;
	uint64_t check;

	if (n < AT + l->header_bytes)
		return "columns header";
	memcpy(ret_header, chunk + AT, l->header_bytes);
	for (unsigned int i = 0; i < l->n_columns; i++) {
		uint32_t bytes;

		memcpy(&bytes,
		       (char *)ret_header + l->lengths_at + i * sizeof(bytes),
		       sizeof(bytes));
		if (bytes > n - AT - l->header_bytes - used)
			return "columns length";
		ret_columns[i] =
			(struct sp_slice){at + used, at + used + bytes, false};
		used += bytes;
	}
	memcpy(&check, at - sizeof(check), sizeof(check));
	return check == sp_columns_check(file_id, l->check, chunk,
					 l->header_bytes, used)
		       ? NULL
		       : "columns check";
}
