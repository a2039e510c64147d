/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "pack/chunkwriter.h"
#include "read/load.h"
#include "symbols/symbolizer.h"

/* How and where symbols are written. */
struct sp_symbolfile {
	/* Packed: the frames in the order of their places
	 * (sp_stackpack_write()); NULL: as records. */
	const struct sp_frame *places;
	size_t n_places;
	uint64_t first_chunk;
	sp_chunk_fn *fn;
	void *arg;
};

/*
 * The symbols of every frame in the profile's stacks as chunks with the numbers
 * first_chunk, first_chunk + 1, ..., for the file that the profile was read
 * from; each text once.  0 and *ret_frames, how many frames there are; -ENOMEM
 * or what `fn` returned, and *err.
 */
int sp_symbolfile_write(const struct sp_profile *profile,
			struct sp_symbolizer *symbolizer,
			const struct sp_symbolfile *file,
			sp_progress_fn *progress, void *progress_arg,
			uint64_t *ret_frames, struct sp_error *err);
