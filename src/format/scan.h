/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "format/record.h"

/*
 * The samples of a chunk that this process has written, and that another thread
 * may still write to: decode.h is for untrusted bytes, and not for the agent.
 * No check and no range is looked at, but nothing behind the first `bytes` of
 * the chunk is read, whatever they are.  Stacks are steps.
 *
 * The next SAMPLE from *offset on: true, *ret, and *offset is behind it.  Each
 * record that is passed is taken off *records.  False: that is 0, or else the
 * committed part of the chunk ends at *offset.
 */
bool sp_scan_sample(struct sp_chunk_state *state, const uint8_t *chunk,
		    size_t bytes, size_t *offset, unsigned int *records,
		    struct sp_record_sample *ret);

/*
 * The frames of the STACK at `offset` of a chunk into out[0..*ret_n), of
 * SP_FORMAT_FRAMES_MAX; false: no committed STACK of that id begins there.
 */
bool sp_scan_stack(const uint8_t *chunk, size_t bytes, size_t offset,
		   uint32_t id, uint32_t *ret_flags,
		   struct sp_record_frame *out, unsigned int *ret_n);
