/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

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

/* The sample has ended by the event, which is a free. */
static inline void sp_event_end(const struct sp_event *end,
				struct sp_sample *sample)
{
	sample->freed_ns = end->when >> 1;
	sample->age_bytes = end->u.free.age_bytes;
	sample->freed_by = end->u.free.thread;
	sample->free_missed = end->u.free.missed;
}

/* Later times, which only a forged file has, are taken as this one. */
#define SP_EVENT_LAST_NS (UINT64_MAX / 2 - 1)

/* Events of one chunk. */
struct sp_run {
	struct sp_event *events;
	size_t n, room, at;
	bool is_sorted;
};

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
struct sp_event *sp_order_put_more(struct sp_order *order, uint64_t when);
static inline struct sp_event *sp_order_put(struct sp_order *order,
					    uint64_t when)
{
	struct sp_run *run = order->filling;
	struct sp_event *event;

	if (run->n == run->room)
		return sp_order_put_more(order, when);
	event = &run->events[run->n];
	if (run->n++ && when < event[-1].when)
		run->is_sorted = false;
	event->when = when;
	return event;
}

/* No run follows: all events leave.  0 or -ENOMEM. */
int sp_order_end(struct sp_order *order);

/*
 * The events that are next, up to *ret_end; those of them leave that are before
 * *ret_limit, the first at least.  NULL: none leaves before the next run.
 */
const struct sp_event *sp_order_look(struct sp_order *order,
				     const struct sp_event **ret_end,
				     uint64_t *ret_limit);

/* So many of them have left. */
static inline void sp_order_leave(struct sp_order *order, size_t n)
{
	order->heads[0].run->at += n;
}

void sp_order_done(struct sp_order *order);
