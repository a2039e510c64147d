/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/record.h"

/*
 * Encode one record into `out`, which has room for `room` bytes.  Returns the
 * record's size, or 0 if it does not fit (nothing is written and the state is
 * unchanged: take another chunk, or drop the record).
 *
 * out[0], the type byte, is left zero: the caller stores sp_encoded.type there
 * last, which commits the record.
 */
struct sp_encoded {
	size_t bytes; /* 0: did not fit */
	uint8_t type;
};

/* Any record; which member holds is `type`. */
struct sp_record {
	enum sp_record_type type;
	union {
		struct sp_record_info info;
		struct sp_record_module module;
		struct sp_record_stack stack;
		struct sp_record_thread thread;
		struct sp_record_thread_end thread_end;
		struct sp_record_sample sample;
		struct sp_record_free free;
		struct sp_record_free_address free_address;
		struct sp_record_rss rss;
		struct sp_record_mark mark;
		struct sp_record_asked asked;
		struct sp_record_map map;
		struct sp_record_unmap unmap;
		struct sp_record_code code;
	} u;
};

struct sp_encoded sp_encode(struct sp_chunk_state *state, uint8_t *out,
			    size_t room, const struct sp_record *record);
