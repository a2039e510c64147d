/* SPDX-License-Identifier: MIT */
#include "format/scan.h"

#include "base/bytes.h"

static uint64_t read_difference(struct sp_slice *s)
{
	return (uint64_t)sp_unzigzag(sp_slice_varint(s));
}

static void take_sample(struct sp_slice *s, struct sp_chunk_state *state,
			struct sp_record_sample *r)
{
	const uint8_t head = sp_slice_u8(s);

	if (head & SP_SAMPLE_THREAD)
		state->thread = sp_slice_varint(s);
	if (head & SP_SAMPLE_PERIOD)
		state->period_bytes = sp_slice_varint(s);
	state->sample_id += read_difference(s);
	state->time_ns += read_difference(s);
	state->address += read_difference(s);
	*r = (struct sp_record_sample){
		.id = state->sample_id,
		.time_ns = state->time_ns,
		.address = state->address,
		.period_bytes = state->period_bytes,
		.thread = state->thread,
		.entry = head & SP_SAMPLE_ENTRY,
		.is_again = head & SP_SAMPLE_AGAIN,
	};
	r->size_bytes = sp_slice_varint(s);
	r->offset_bytes = sp_slice_varint(s);
	state->stack += read_difference(s);
	r->stack = state->stack;
}

static void take_free(struct sp_slice *s, struct sp_chunk_state *state)
{
	const uint8_t head = sp_slice_u8(s);

	if (head & SP_FREE_HEAD_THREAD)
		state->thread = sp_slice_varint(s);
	state->freed_id += read_difference(s);
	state->time_ns += read_difference(s);
}

/* The payload of the record at *offset; false: it is not committed. */
static bool next_record(const uint8_t *chunk, size_t bytes_there,
			size_t *offset, uint8_t *ret_type, struct sp_slice *ret)
{
	struct sp_slice s = {chunk + *offset, chunk + bytes_there, false};
	uint64_t bytes;

	if (!sp_slice_left(&s))
		return false;
	*ret_type = __atomic_load_n(s.at, __ATOMIC_ACQUIRE);
	sp_slice_u8(&s);
	bytes = sp_slice_varint(&s);
	ret->at = sp_slice_take(&s, bytes);
	sp_slice_take(&s, 2);
	if (*ret_type == SP_RECORD_NONE || s.failed)
		return false;
	ret->end = ret->at + bytes;
	ret->failed = false;
	*offset = (size_t)(s.at - chunk);
	return true;
}

bool sp_scan_sample(struct sp_chunk_state *state, const uint8_t *chunk,
		    size_t bytes, size_t *offset, unsigned int *records,
		    struct sp_record_sample *ret)
{
	struct sp_slice payload;
	uint8_t type;

	for (; *records && next_record(chunk, bytes, offset, &type, &payload);
	     --*records) {
		if (type == SP_RECORD_SAMPLE) {
			take_sample(&payload, state, ret);
			--*records;
			return true;
		}
		if (type == SP_RECORD_FREE)
			take_free(&payload, state);
	}
	return false;
}

bool sp_scan_stack(const uint8_t *chunk, size_t bytes, size_t offset,
		   uint32_t id, uint32_t *ret_flags,
		   struct sp_record_frame *out, unsigned int *ret_n)
{
	struct sp_slice s;
	uint64_t n;
	uint8_t type;

	if (offset >= bytes || !next_record(chunk, bytes, &offset, &type, &s) ||
	    type != SP_RECORD_STACK || sp_slice_varint(&s) != id)
		return false;
	*ret_flags = (uint32_t)sp_slice_varint(&s);
	n = sp_slice_varint(&s);
	if (s.failed || n > SP_FORMAT_FRAMES_MAX)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		out[i].module = sp_slice_varint(&s);
		out[i].offset = sp_slice_varint(&s);
	}
	*ret_n = (unsigned int)n;
	return !s.failed;
}
