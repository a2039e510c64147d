/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "read/sinks.h"

/*
 * The samples and frees of a file as a stream of events in the order of time,
 * and its sinks: each sample by itself or groups of those that are alike, which
 * become the file's; a function that is told of everything; and the sinks that
 * all files of a reading share (read/sinks.h).
 *
 * A free finds its sample among those that are open: born, and not yet freed.
 * One that comes before its sample waits for it; those that wait in the end are
 * the profile's unmatched_frees.  A record of a sample that is open already is
 * the same once more.  Memory is proportional to what is open and to what the
 * sinks keep.
 *
 * Of a file whose early samples were discarded (window_ns > 0), those that had
 * ended by then are left out, and the others are born at that moment, in the
 * order of their births.
 */
struct sp_stream;

/* What a free says; of a profile that has_addresses neither age nor `missed`.
 */
struct sp_stream_free {
	uint64_t id; /* of the sample; or the address */
	uint64_t time_ns;
	uint64_t age_bytes; /* SP_UNKNOWN if it is not known */
	uint32_t thread;    /* as freed_by of struct sp_sample */
	bool missed;
};

/*
 * `profile` has what the header says, and its window_ns.  The file is number
 * `part` of those that are read, and its times count from start_ns on their
 * common clock.  `profile` and `sinks` outlive the stream.  With `keeps_all`
 * the file may have its chunks in any order, and all events wait for the end.
 * NULL without memory.
 */
struct sp_stream *sp_stream_new(struct sp_profile *profile,
				struct sp_sinks *sinks, uint16_t part,
				uint64_t start_ns, bool keeps_all);

/* A chunk begins; a sample (alive, as far as it says), a free or a mark at that
 * time of the file comes, in the order of the file; nothing more comes.  0 or
 * -ENOMEM. */
int sp_stream_chunk(struct sp_stream *stream);
int sp_stream_sample(struct sp_stream *stream, const struct sp_sample *sample,
		     uint64_t address);
int sp_stream_free(struct sp_stream *stream,
		   const struct sp_stream_free *event);
int sp_stream_mark(struct sp_stream *stream, uint64_t time_ns);
int sp_stream_last(struct sp_stream *stream);

/*
 * Pass the events before `limit` (struct sp_event, `when`, on the common clock)
 * to the sinks, as far as their order is known by now.  0, -ENOMEM or what the
 * plan's `tell` returned.
 */
int sp_stream_pass(struct sp_stream *stream, uint64_t limit);

/* When the next event is, after sp_stream_pass(); UINT64_MAX: none is known
 * before more is read. */
uint64_t sp_stream_next(const struct sp_stream *stream);

/* Did something come too late, so that the stream is not in order?  Then it has
 * to be read again with `keeps_all`. */
bool sp_stream_is_late(const struct sp_stream *stream);

/* The largest period of a sample, and its largest id. */
uint64_t sp_stream_period_bytes(const struct sp_stream *stream);
uint64_t sp_stream_last_id(const struct sp_stream *stream);

/* All was passed, and the process ends then, while others go on: what it has
 * is no more, for the shared sinks.  0 or -ENOMEM. */
int sp_stream_stop(struct sp_stream *stream, uint64_t time_ns);

/* All was passed: what the file's own sinks have goes to its profile.  As
 * sp_stream_pass(). */
int sp_stream_end(struct sp_stream *stream);

void sp_stream_destroy(struct sp_stream *stream);
