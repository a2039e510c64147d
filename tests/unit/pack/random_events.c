/* SPDX-License-Identifier: MIT */
#include "random_events.h"
#include "support/test.h"

#include <errno.h>

#include "base/rng.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

static const uint32_t threads[EVENT_THREADS] = {0, 1, 2, 3, 70, UINT32_MAX};
static const uint32_t stacks[EVENT_STACKS] = {
	0, 1, 2, 3, 4, 50, 51, 900, 1u << 20, UINT32_MAX};
static const uint8_t entries[EVENT_ENTRIES] = {0, 1, 2, 9, 31};

static struct sp_rng rng;

void events_seed(uint64_t stream)
{
	sp_rng_init(&rng, 1, stream);
}

uint64_t events_below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

/* ---- events ---- */

struct event *events;
size_t n_events;
static uint64_t allocated[EVENT_THREADS];

uint64_t event_time(const struct event *e)
{
	return e->is_free ? e->free.time_ns : e->sample.time_ns;
}

/* Distinct, with gaps, not in their order, the second half far away. */
static uint64_t id_of(size_t i, size_t n)
{
	const uint64_t raw = i ^ (i >> 4 & 1 ? 3 : 0);

	return 1 + raw + raw / 100 * 7 + (raw > n / 2 ? 1ull << 63 : 0);
}

static void make_sample(struct event *e, uint64_t id, uint64_t now)
{
	static uint64_t period = 4096;
	const uint64_t size = events_below(50) ? 1 + events_below(3000)
					       : 1 + (sp_rng_next(&rng) >> 1);

	if (!events_below(50))
		period = 1ull << events_below(41);
	*e = (struct event){.stack = events_below(EVENT_STACKS),
			    .entry = events_below(EVENT_ENTRIES),
			    .thread = events_below(EVENT_THREADS)};
	e->sample = (struct sp_record_sample){
		.id = id,
		.time_ns = now,
		.size_bytes = size,
		.offset_bytes = events_below(3) ? 0 : sp_rng_next(&rng) % size,
		.period_bytes = period,
		.stack = stacks[e->stack],
		.thread = threads[e->thread],
		.entry = entries[e->entry]};
	allocated[e->thread] += size;
	e->allocated = allocated[e->thread];
}

/* Mostly what one would expect. */
static void make_free(struct event *e, struct event *of, uint64_t now)
{
	*e = (struct event){.is_free = true, .of = of, .thread = of->thread};
	if (!events_below(4))
		e->thread = events_below(EVENT_THREADS);
	e->free = (struct sp_record_free){
		.id = of->sample.id,
		.time_ns = now,
		.thread = threads[e->thread],
		.flags = events_below(9) ? 0 : SP_FREE_MISSED,
		.has_age = e->thread == of->thread};
	if (!events_below(9))
		e->free.has_age = !e->free.has_age;
	if (e->free.has_age)
		e->free.age_bytes =
			events_below(3) ? allocated[of->thread] - of->allocated
					: sp_rng_next(&rng) >> events_below(64);
}

/* As many samples; `live` of them alive at a time. */
void make_events(size_t n, size_t live, enum event_order order,
		 uint64_t start_ns, event_step *step)
{
	struct event **alive = malloc(n * sizeof(*alive));
	size_t head = 0, tail = 0;
	uint64_t now = start_ns;

	memset(allocated, 0, sizeof(allocated));
	free(events);
	events = malloc(2 * n * sizeof(*events));
	assert_true(events && alive);
	n_events = 0;
	for (size_t i = 0; i < n;) {
		struct event *e = &events[n_events++];
		size_t at = head;

		now += step(now);
		if (tail - head < 1 + events_below(2 * live)) {
			make_sample(e, id_of(i++, n), now);
			alive[tail++] = e;
			continue;
		}
		if (order != EVENT_FIFO)
			at = order == EVENT_LIFO
				     ? tail - 1
				     : head + events_below(tail - head);
		make_free(e, alive[at], now);
		if (order == EVENT_FIFO)
			head++;
		else
			alive[at] = alive[--tail];
	}
	free(alive);
}

/* ---- times ---- */

uint64_t event_step_dense(uint64_t now)
{
	(void)now;
	return events_below(40000);
}

static uint64_t event_step_sparse(uint64_t now)
{
	(void)now;
	return events_below(30 * EVENT_TICK);
}

/* Many at one time, then the neighbour. */
uint64_t event_step_equal(uint64_t now)
{
	(void)now;
	return events_below(40)   ? 0
	       : events_below(30) ? 1 + events_below(2)
				  : events_below(3 * EVENT_TICK);
}

/* At a border, or one off. */
uint64_t event_step_border(uint64_t now)
{
	const uint64_t next = (now / EVENT_TICK + 1) * EVENT_TICK;

	switch (events_below(6)) {
	case 0:
		return next - now;
	case 1:
		return next - 1 - now;
	case 2:
		return next + 1 - now;
	case 3:
		return 1;
	default:
		return 0;
	}
}

uint64_t event_step_gaps(uint64_t now)
{
	(void)now;
	return events_below(200) ? events_below(9)
				 : sp_rng_next(&rng) >> (20 + events_below(20));
}

event_step *const event_steps[EVENT_STEPS] = {
	event_step_dense, event_step_sparse, event_step_equal,
	event_step_border, event_step_gaps};

/* ---- chunks ---- */

uint8_t *chunks;
size_t n_chunks;
size_t chunk_to_fail;
static size_t room;

static int keep_chunk(void *arg, const uint8_t *chunk)
{
	assert_ptr_equal(arg, &n_chunks);
	if (n_chunks == room) {
		room = room ? 2 * room : 16;
		chunks = realloc(chunks, room * CHUNK);
		assert_non_null(chunks);
	}
	memcpy(chunks + n_chunks++ * CHUNK, chunk, CHUNK);
	return chunk_to_fail && n_chunks == chunk_to_fail ? -EDQUOT : 0;
}

struct sp_packer *events_packer(uint64_t tick_ns, const uint64_t *moments,
				size_t n_moments)
{
	struct sp_packer *p =
		sp_packer_new(EVENT_FILE_ID, EVENT_FIRST_CHUNK, tick_ns,
			      moments, n_moments, keep_chunk, &n_chunks);

	assert_non_null(p);
	n_chunks = 0;
	return p;
}

int event_pack(struct sp_packer *p, const struct event *e)
{
	return e->is_free ? sp_pack_free(p, &e->free)
			  : sp_pack_sample(p, &e->sample);
}

void pack_events(uint64_t tick_ns, const uint64_t *moments, size_t n_moments)
{
	struct sp_packer *p = events_packer(tick_ns, moments, n_moments);

	for (size_t i = 0; i < n_events; i++)
		assert_int_equal(event_pack(p, &events[i]), 0);
	assert_int_equal(sp_pack_end(p, EVENT_UNMATCHED, EVENT_UNFINISHED), 0);
	sp_packer_free(p);
}

struct sp_events_header chunk_header(size_t chunk)
{
	struct sp_events_header h;

	memcpy(&h, chunks + chunk * CHUNK + 24, sizeof(h));
	return h;
}

void events_free(void)
{
	free(events);
	free(chunks);
}
