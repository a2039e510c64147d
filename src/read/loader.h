/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "format/decode.h"
#include "model/profile.h"
#include "read/marks.h"
#include "read/reader.h"
#include "read/embedded_symbols.h"
#include "read/stream.h"

/* The records of one file, made a profile: zero-initialise, but for the first
 * four, of which the pointers are borrowed. */
struct sp_loader {
	struct sp_profile *p;     /* all zero but for its path, and a part */
	struct sp_reader *reader; /* open */
	struct sp_stream *stream; /* after sp_loader_begin() */
	bool has_no_code;         /* nobody asks for frames and their symbols */
	struct sp_idmap stacks;
	struct sp_idmap threads;
	/* Of the record before: the thread's index, or 0, and its position; the
	 * stack's id, and 1 + its position, or 0. */
	uint64_t last_index;
	uint32_t last_thread;
	uint32_t last_stack_id, last_stack;
	struct sp_idmap modules;
	struct sp_embedded stored;
	size_t stacks_room, threads_room, modules_room, infos_room, rss_room;
	struct sp_marks marks;
	uint64_t last_time_ns;
	const char *command; /* raw, arguments separated by NUL */
	size_t command_bytes;
	struct sp_record_frame frames[SP_FORMAT_FRAMES_MAX]; /* scratch */
};

/* What the header says. */
void sp_loader_begin(struct sp_loader *loader);

/* The next record.  0, -ENOMEM or what the stream's plan returned. */
int sp_loader_take(struct sp_loader *loader, const struct sp_decoded *d);

/* How long the file goes on, by what was read of it so far. */
uint64_t sp_loader_duration_ns(const struct sp_loader *loader);

/* No more comes, and the stream has passed all: everything else that the
 * profile has.  As above. */
int sp_loader_finish(struct sp_loader *loader);

void sp_loader_done(struct sp_loader *loader);
