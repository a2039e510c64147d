/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Births and frees of samples, put into the order of time.
 *
 * They come in runs: the chunks of a file.  Chunks are handed out in the order
 * of time and each belongs to one thread, so that no event of a run is much
 * older than the first one of the run before.  Events that are old enough leave
 * when the next run begins; the others wait.  Memory is proportional to the
 * runs that overlap.
 *
 * A file in which that does not hold has `is_late` set: it is read again with
 * `keeps_all`, by which all events wait until the end.
 */
struct sp_event {
	/* Twice the time, + 1 for a birth: at one moment frees come first. */
	uint64_t when;
	uint64_t id; /* of the sample; or the address that was freed */
	union {
		struct {
			uint64_t offset_bytes;
			uint32_t
				group; /* position in struct sp_sample_groups */
			uint32_t object; /* as for sp_sinks_birth() */
		} birth;
		/* Where frees have addresses.  Beyond 4 GiB an offset is of a
		 * period that such a file does not have. */
		struct {
			uint64_t address;
			uint32_t group;
			uint32_t offset_bytes;
		} birth_at;
		struct {
			uint64_t age_bytes;
			uint32_t thread; /* position, UINT32_MAX: unknown */
			bool missed;
		} free;
	} u;
};

/* Later times, which only a forged file has, are taken as this one. */
#define SP_EVENT_LAST_NS (UINT64_MAX / 2 - 1)

struct sp_run;

struct sp_order_head {
	uint64_t when; /* of the next event of the run */
	struct sp_run *run;
};

/* Zero-initialise, but for `keeps_all`. */
struct sp_order {
	struct sp_order_head *heads; /* a heap, the earliest first */
	size_t n_heads, room;
	struct sp_run *filling; /* not in the heap */
	struct sp_run *spare;   /* its room is used again, or NULL */
	uint64_t until;         /* what is older leaves now */
	uint64_t limit;         /* of that, what the first run may give */
	bool keeps_all;
	bool is_late; /* an event came behind one that had left */
};

/* A run begins, before the first event too.  0 or -ENOMEM. */
int sp_order_begin_run(struct sp_order *order);

/* An event of that `when`: the caller fills in the rest.  NULL without
 * memory. */
struct sp_event *sp_order_put(struct sp_order *order, uint64_t when);

/* No run follows: all events leave.  0 or -ENOMEM. */
int sp_order_end(struct sp_order *order);

/* The next event that leaves, valid until the next call of any function; NULL:
 * no more before the next run. */
const struct sp_event *sp_order_next(struct sp_order *order);

/* An event that may leave so many after the last one; NULL: not known. */
const struct sp_event *sp_order_ahead(const struct sp_order *order, size_t n);

void sp_order_done(struct sp_order *order);
