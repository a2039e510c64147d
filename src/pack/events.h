/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "format/decode.h"
#include "pack/chunkwriter.h"
#include "pack/open_samples.h"

/*
 * Samples and frees in columns (docs/format.md, "Events"), in the order of
 * time.  Nearly all of what a record says is what those before it make one
 * expect, and only the exceptions are written; what is left repeats itself as
 * the program does.  Both ways keep the same expectations.
 */

/* Where samples come from: a stack and an entry point. */
struct sp_events_site {
	uint32_t stack; /* id */
	uint32_t next;  /* 1 + another site of that stack; pack.c only */
	uint32_t samples;
	uint32_t expected; /* number, among these, of the next to be freed */
	uint8_t entry;
};

/* What has been seen up to an event. */
struct sp_events_state {
	struct sp_events_site *sites;
	size_t n_sites, sites_room;
	uint64_t *allocated; /* bytes in samples of each thread, by position */
	size_t n_threads, threads_room;
	struct sp_idmap threads; /* index to position */
	struct sp_open_samples open;
	uint64_t n_events;
	uint64_t time_ns;
	uint64_t period_bytes;
	uint64_t sample_id; /* of the last sample */
	uint32_t thread;    /* index, of the last event */
	uint32_t position;  /* of that thread */
};

void sp_events_init(struct sp_events_state *state);
void sp_events_done(struct sp_events_state *state);

/* The event is of another thread than the last one.  0 or -ENOMEM. */
int sp_events_set_thread(struct sp_events_state *state, uint32_t index);

/* A site that is not there yet.  0 or -ENOMEM. */
int sp_events_add_site(struct sp_events_state *state, uint32_t stack,
		       uint8_t entry);

/*
 * Where a free finds what it is expected to say of its age: the sample was
 * taken by the thread at `position` when that had allocated `allocated_bytes`.
 * False: nothing, since another thread freed it.
 */
static inline bool sp_events_expected_age(const struct sp_events_state *s,
					  uint32_t position,
					  uint64_t allocated_bytes,
					  uint64_t *ret_bytes)
{
	*ret_bytes = s->allocated[position] - allocated_bytes;
	return position == s->position;
}

/* ---- records to chunks ---- */

struct sp_packer;

/*
 * Chunks with the numbers first_chunk, first_chunk + 1, ... go to `fn`.  With a
 * tick_ns > 0 times are only told to within that: but none crosses one of the
 * `moments`, which ascend and are borrowed.  NULL without memory.
 */
struct sp_packer *sp_packer_new(uint64_t file_id, uint64_t first_chunk,
				uint64_t tick_ns, const uint64_t *moments,
				size_t n_moments, sp_chunk_fn *fn, void *arg);

/* Records in the order of time, each sample before its free; of ids that are
 * there once.  0, -ENOMEM, -EILSEQ: not in that order, or what `fn` returned.
 */
int sp_pack_sample(struct sp_packer *packer, const struct sp_record_sample *r);
int sp_pack_free(struct sp_packer *packer, const struct sp_record_free *r);

/* Nothing more comes. */
int sp_pack_end(struct sp_packer *packer, uint64_t unmatched_frees,
		uint64_t unfinished);

void sp_packer_free(struct sp_packer *packer);

/* ---- chunks to records ---- */

struct sp_unpacker;

struct sp_unpacker *sp_unpacker_new(uint64_t file_id);

/*
 * A chunk of columns (SP_CHUNK_EVENTS, SP_CHUNK_STACKS or SP_CHUNK_NAMES) of
 * which the chunk's own header is right, in the order of the file.  It stays
 * where it is until sp_unpack_next() has returned something else than 1.  NULL,
 * or the field that is damaged: then no later chunk of that kind can be read
 * either.
 */
const char *sp_unpack_chunk(struct sp_unpacker *unpacker, uint32_t kind,
			    const uint8_t *chunk, size_t bytes);

/* The next SAMPLE, FREE, STACK, NAME or SYMBOL: it holds until the next call.
 * 1; 0 at the end of the chunk; -EBADMSG with ret->field, as above, or -ENOMEM.
 */
int sp_unpack_next(struct sp_unpacker *unpacker, struct sp_decoded *ret);

/* Was that the last chunk?  Then also what its header says. */
bool sp_unpack_is_complete(const struct sp_unpacker *unpacker,
			   uint64_t *ret_unmatched_frees,
			   uint64_t *ret_unfinished);

void sp_unpacker_free(struct sp_unpacker *unpacker);
