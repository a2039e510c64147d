/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "format/decode.h"
#include "model/profile.h"
#include "read/mappings.h"
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
	bool no_samples;          /* of struct sp_plan */
	uint64_t n_parts;         /* of mappings: the last id of a sample */
	uint64_t part_bytes;      /* of those that became samples */
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
	size_t grown[3]; /* one more than the number of such an INFO; 0: none */
	struct sp_marks marks;
	struct sp_mappings mappings;
	uint64_t last_time_ns;
	uint64_t last_event_ns;
	const char *command; /* raw, arguments separated by NUL */
	size_t command_bytes;
	struct sp_record_frame frames[SP_FORMAT_FRAMES_MAX]; /* scratch */
};

/* What the header says; the samples will be of that. */
void sp_loader_begin(struct sp_loader *loader, enum sp_samples_of samples_of);

/* The next record.  0, -ENOMEM or what the stream's plan returned. */
int sp_loader_take(struct sp_loader *loader, const struct sp_decoded *d);

/* There is no further one.  As above. */
int sp_loader_end_records(struct sp_loader *loader);

/* The exact totals, once all else is there, of a profile of mappings: they have
 * no sizes by class, and no phases with totals of their own. */
/* Find an allocator that one of the modules brings along, and that is not seen:
 * what maps memory by itself is looked at.  Before the mappings are played.  0
 * or -ENOMEM. */
int sp_loader_find_brought(struct sp_loader *loader);

void sp_loader_set_mapped_totals(const struct sp_loader *loader);

/* Facts that grow are written again, as a whole, and records come in any order:
 * the longest counts.  True: it was there. */
bool sp_loader_is_known_fact(struct sp_loader *loader,
			     const struct sp_info *info);

/* How the process ended and what the file lacks, once all facts are there. */
void sp_loader_set_end(struct sp_loader *loader);

/* How long the file goes on, by what was read of it so far. */
uint64_t sp_loader_duration_ns(const struct sp_loader *loader);

/* No more comes, and the stream has passed all: everything else that the
 * profile has.  As above. */
int sp_loader_finish(struct sp_loader *loader);

void sp_loader_done(struct sp_loader *loader);
