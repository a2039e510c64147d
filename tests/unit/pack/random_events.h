/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pack/events.h"

/* Samples and frees at random, in the order of time, and their chunks. */

/* Their threads, of which 0 is not known, stacks and entry points: small
 * numbers and the ends of the range. */
#define EVENT_THREADS 6
#define EVENT_STACKS  10
#define EVENT_ENTRIES 5

struct event {
	bool is_free;
	struct event *of; /* its sample */
	struct sp_record_sample sample;
	struct sp_record_free free;
	/* Which of these; and what its thread had then allocated. */
	size_t stack, entry, thread;
	uint64_t allocated;
	/* In the file: site, and number among its samples. */
	uint64_t site, number;
};

extern struct event *events;
extern size_t n_events;

void events_seed(uint64_t stream);
uint64_t events_below(uint64_t n);
uint64_t event_time(const struct event *e);

/* In which order objects are freed. */
enum event_order {
	EVENT_FIFO,
	EVENT_LIFO,
	EVENT_ANY,
};

/* How much later than `now` the next event is. */
typedef uint64_t event_step(uint64_t now);

#define EVENT_TICK 1000000ull

extern event_step *const event_steps[];
#define EVENT_STEPS 5

uint64_t event_step_dense(uint64_t now); /* fifty to the tick */
uint64_t event_step_equal(uint64_t now);
uint64_t event_step_border(uint64_t now);
uint64_t event_step_gaps(uint64_t now);

/* `n` samples; about `live` of them alive at a time. */
void make_events(size_t n, size_t live, enum event_order order,
		 uint64_t start_ns, event_step *step);

/* ---- as chunks ---- */

#define EVENT_FILE_ID     0x0123456789abcdefull
#define EVENT_FIRST_CHUNK 7
/* What the last one says. */
#define EVENT_UNMATCHED  11
#define EVENT_UNFINISHED 22

extern uint8_t *chunks;
extern size_t n_chunks;
extern size_t chunk_to_fail; /* this one is not taken: -EDQUOT; 0: all are */

struct sp_packer *events_packer(uint64_t tick_ns, const uint64_t *moments,
				size_t n_moments);
int event_pack(struct sp_packer *packer, const struct event *e);
void pack_events(uint64_t tick_ns, const uint64_t *moments, size_t n_moments);
struct sp_events_header chunk_header(size_t chunk);

void events_free(void);
