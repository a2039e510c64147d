/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/decode.h"
#include "read/source.h"

/*
 * A profile file as a stream of records, with the header, the newest status and
 * the exact totals beside it.  The file is untrusted, may be torn by a kill,
 * and may be written to while it is read: it is read with pread into bounded
 * memory (one chunk; a compressed file also the window of zstd), every
 * structure is verified, and what cannot be used is noted in `damage` and
 * passed over.
 */
struct sp_reader_damage {
	uint64_t records;       /* places where a chunk or block was given up */
	uint64_t ignored_bytes; /* not used because of that */
	char text[256];         /* the first one, for people; "" if none */
};

/* One thread slot's part of the totals. */
struct sp_reader_slot {
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t owner_bytes; /* of the thread that owns it now */
	uint64_t owner_objects;
	uint64_t thread; /* its index, 0: nobody */
	uint64_t tid;
};

struct sp_reader {
	struct sp_source source;
	const char *path;    /* borrowed */
	uint64_t file_bytes; /* unpacked; UINT64_MAX: not known yet */
	struct sp_file_header header;
	struct sp_status status; /* all zero if there was none yet */
	struct sp_window window; /* likewise if nothing was discarded */
	struct sp_reader_slot slots[SP_FORMAT_SLOTS];
	bool lacks_slots; /* of one nothing can be read */
	/* Exact totals by size class, of the class pages that were passed so
	 * far: complete when sp_reader_next has returned 0. */
	bool has_classes;
	struct sp_class_total classes[SP_FORMAT_CLASSES];
	/* What each slot has in them, and whether its page was there. */
	bool has_class_slot[SP_FORMAT_SLOTS];
	struct sp_class_total class_slots[SP_FORMAT_SLOTS];
	bool is_cut;     /* the file is shorter than its writer made it */
	bool is_running; /* the process that writes it is still there */
	/* If so, records of later are passed over; else UINT64_MAX. */
	uint64_t opened_ns;
	struct sp_reader_damage damage;
	/* Records, chunks and publications in whose middle the process ended:
	 * all that was complete is there, so this is no damage. */
	uint64_t unfinished;
	uint64_t unfinished_chunks; /* of these: among records and chunks */
	/* Frees of samples that a packed copy left out; complete at the end. */
	uint64_t unmatched_frees;

	uint64_t chunk_index; /* of the buffer; 0: before the first */
	size_t chunk_bytes;
	size_t offset;
	bool in_chunk;                /* of records */
	bool in_columns;              /* of which `unpacker` has a chunk */
	struct sp_unpacker *unpacker; /* NULL: none is needed yet */
	struct sp_chunk_state state;
	uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
};

/* Open and read what is not records.  0; a negative errno and *err if it is no
 * profile file of a known version.  Close it in either case. */
int sp_reader_open(struct sp_reader *reader, const char *path,
		   struct sp_error *err);

/* The next record (valid until the next call): 1; 0 at the end; negative errno
 * and *err if the file cannot be read. */
int sp_reader_next(struct sp_reader *reader, struct sp_decoded *ret,
		   struct sp_error *err);

/* Did the process discard more since the file was opened?  Then what was alive
 * may have been missed. */
bool sp_reader_is_outdated(struct sp_reader *reader);

void sp_reader_close(struct sp_reader *reader);
