/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "format/decode.h"
#include "model/profile.h"
#include "pack/chunkwriter.h"

/*
 * Call stacks in columns (docs/format.md, "Stacks"): a tree, of which each
 * stack adds what no stack before it has.
 */

/*
 * The stacks of a profile as chunks with the numbers first_chunk, ...: 0 and
 * *ret_places, the frames in the order in which they come, each once, for the
 * caller to free, and *ret_n; -ENOMEM or what `fn` returned.
 */
int sp_stackpack_write(const struct sp_profile *profile, uint64_t first_chunk,
		       sp_chunk_fn *fn, void *arg, struct sp_frame **ret_places,
		       size_t *ret_n);

/* ---- from chunks, for unpack.c ---- */

struct sp_unstack_node {
	uint32_t caller; /* 1 + its node; 0: none */
	uint32_t place;
	uint32_t depth; /* frames from the outermost one on */
};

/* Zero-initialise. */
struct sp_unstack {
	struct sp_record_frame *places;
	size_t n_places, places_room;
	struct sp_unstack_node *nodes;
	size_t n_nodes, nodes_room;
	uint64_t n_stacks;
	uint64_t id;     /* of the last stack */
	uint64_t leaf;   /* 1 + its innermost node; 0: it had none */
	uint64_t offset; /* of the last new place */
	uint64_t n_left; /* stacks of the chunk */
	size_t n_frames; /* of those of the chunk that were given */
	struct sp_slice columns[SP_STACKS_COLUMNS];
	uint8_t frames[SP_FORMAT_FRAMES_MAX * 2 * SP_VARINT_MAX_BYTES];
};

/* As sp_unpack_chunk() and sp_unpack_next() (pack/events.h). */
const char *sp_unstack_chunk(struct sp_unstack *unstack, uint64_t file_id,
			     const uint8_t *chunk, size_t bytes);
int sp_unstack_next(struct sp_unstack *unstack, struct sp_decoded *ret);

void sp_unstack_done(struct sp_unstack *unstack);
