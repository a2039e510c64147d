/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/record.h"

/* What sp_decode_next found. */
enum sp_decode_result {
	SP_DECODE_RECORD,
	SP_DECODE_END,     /* the committed part of the chunk ends here */
	SP_DECODE_DAMAGED, /* see `field`; nothing after it can be trusted */
};

/* One record; pointers go into the chunk.  Which member holds is `type`; a
 * record of an unknown type has only its payload set and is to be passed over.
 */
struct sp_decoded {
	uint8_t type;
	const char *field; /* what was wrong, when damaged */
	/* Of every record but SAMPLE, FREE and FREE_ADDRESS, as it is in the
	 * chunk. */
	const uint8_t *payload;
	size_t payload_bytes;
	union {
		struct sp_record_info info;
		struct sp_record_module module;
		struct {
			uint64_t id;
			uint64_t flags;
			uint32_t n_frames;
			const uint8_t *frames; /* sp_decode_frames() */
			size_t frames_bytes;
		} stack;
		struct sp_record_thread thread;
		struct sp_record_thread_end thread_end;
		struct sp_record_sample sample;
		struct sp_record_free free;
		struct sp_record_free_address free_address;
		struct sp_record_rss rss;
		struct sp_record_name name;
		struct {
			struct sp_record_frame frame;
			uint32_t n_lines;
			const uint8_t *lines; /* sp_decode_lines() */
			size_t lines_bytes;
		} symbol;
		struct sp_record_mark mark;
		struct sp_record_asked asked;
		struct sp_record_map map;
		struct sp_record_unmap unmap;
		struct sp_record_code code;
	} u;
};

/*
 * Decode the record at *offset of a chunk of `chunk_bytes` bytes; on
 * SP_DECODE_RECORD, *offset moves behind it.  Every field is within its range
 * and every pointer within the chunk.
 */
enum sp_decode_result sp_decode_next(struct sp_chunk_state *state,
				     const uint8_t *chunk, size_t chunk_bytes,
				     size_t *offset, struct sp_decoded *ret);

/* The module of the first frame of a decoded STACK; 0: it has none. */
uint32_t sp_decode_innermost(const struct sp_decoded *stack);

/* Unpack the frames of a decoded STACK into out[0..n_frames). */
void sp_decode_frames(const struct sp_decoded *stack,
		      struct sp_record_frame *out);

/* Unpack the lines of a decoded SYMBOL into out[0..n_lines). */
void sp_decode_lines(const struct sp_decoded *symbol,
		     struct sp_record_line *out);
