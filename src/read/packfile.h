/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "pack/chunkwriter.h"

/*
 * A whole profile once more, packed: its samples and frees in columns, without
 * their addresses, and, where there is more than one sample to the millisecond,
 * with times to the millisecond; nothing else is lost.  For a file that is
 * whole, undamaged and no longer written to.
 */
#define SP_PACKFILE_TICK_NS 1000000u

/* What the rest of the file needs to know. */
struct sp_packfile_facts {
	struct sp_frame *places; /* for the symbols; the caller frees them */
	size_t n_places;
	uint64_t unfinished; /* for the events */
};

/*
 * The chunks from 0 on that are not events nor symbols go to `fn`.  0 and *ret;
 * what `fn` returned, or negative errno and *err.
 */
int sp_packfile_write_facts(const struct sp_profile *profile, sp_chunk_fn *fn,
			    void *arg, struct sp_packfile_facts *ret,
			    struct sp_error *err);

/* The last chunks, from first_chunk on.  Likewise. */
int sp_packfile_write_events(const struct sp_profile *profile,
			     uint64_t first_chunk, uint64_t unfinished,
			     sp_chunk_fn *fn, void *arg, struct sp_error *err);

/* To how many nanoseconds its times will be, or are; 0: all. */
uint64_t sp_packfile_time_error_ns(const struct sp_profile *profile);
