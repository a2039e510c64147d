/* SPDX-License-Identifier: MIT */
#ifndef SP_PROFILE_SYMBOLFILE_H
#define SP_PROFILE_SYMBOLFILE_H

#include <stdint.h>

#include "profile/symbolizer.h"

/* Takes a whole chunk of the file; 0 or a negative errno. */
typedef int sp_chunk_fn(void *arg, const uint8_t *chunk);

/*
 * The symbols of every frame in the profile's stacks as chunks of
 * SP_CHUNK_SYMBOLS with the numbers first_chunk, first_chunk + 1, ..., for the
 * file that the profile was read from; each text once.  0 and *ret_frames, how
 * many frames there are; -ENOMEM or what `fn` returned, and *err.
 */
int sp_symbolfile_write(const struct sp_profile *profile,
			struct sp_symbolizer *symbolizer, uint64_t first_chunk,
			sp_chunk_fn *fn, void *arg, sp_progress_fn *progress,
			void *progress_arg, uint64_t *ret_frames,
			struct sp_error *err);

#endif
