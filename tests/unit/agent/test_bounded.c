/* SPDX-License-Identifier: MIT */
/*
 * Files of 1 MiB that are filled over and over (in the long form a hundred
 * times), with every allocation: now and then they have exactly the objects
 * that were alive at their window or came later, with their ends, and the exact
 * totals of both sides of the window.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/file/chunks.h"
#include "agent/file/liveset.h"
#include "agent/file/ring.h"
#include "agent/file/slots.h"
#include "agent/file/writer.h"
#include "agent/sys/tid.h"
#include "agent/unwind/lane.h"
#include "base/rng.h"
#include "format/scan.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/test.h"

#define OBJECTS  300000u
#define LIVE_MAX 40000u
#define LOOKS    30u

/* Object number i is sample i: the first is 1. */
struct object {
	uint64_t size_bytes;
	uint64_t freed_at; /* step; 0: alive */
};

static struct sp_process process;
static const char *path;
static struct object objects[OBJECTS + 1];
/* The short form has a fifth of each. */
static unsigned int n_wanted, n_looks, n_turns;
static uint64_t n_objects;
static uint64_t n_steps; /* allocations and frees */
/* By objects that had been allocated: the step that completed a segment. */
static uint64_t complete_at[OBJECTS + 1];
static uint64_t alive[LIVE_MAX]; /* by place: its number; 0: nobody */

static int begin_all(void **state)
{
	n_looks = test_rounds(LOOKS / 5, LOOKS);
	n_wanted = OBJECTS / LOOKS * n_looks;
	n_turns = test_rounds(20, 100);
	process.config.depth = 8;
	process.follows_frees = sp_liveset_init();
	assert_true(process.follows_frees);
	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, 1);
	sp_recorder_init(&process, sp_marks_complete);
	sp_tid_find();
	return agent_fixture_begin(state);
}

static void begin(uint64_t max_file_bytes, uint32_t thread)
{
	path = agent_fixture_open(max_file_bytes);
	atomic_store(&process.generation, 1);
	atomic_store(&process.threads, thread);
	sp_thread.index = thread;
	sp_thread.generation = 1;
	sp_thread.recorded = SP_THREAD_UNKNOWN;
	sp_thread.sampler.law = &process.law;
	sp_thread.suspended = 0;
	n_objects = 0;
	n_steps = 0;
}

/* Addresses come again, as an allocator's do. */
static void *address_of(size_t place)
{
	return (void *)(0x10000000 + 32 * (place + 1));
}

/* What is alive leaves the live set: it is the process's. */
static int end(void **state)
{
	struct sp_live live;

	for (size_t i = 0; i < LIVE_MAX; i++)
		if (alive[i])
			sp_liveset_take(address_of(i), &live);
	memset(alive, 0, sizeof(alive));
	sp_marks_reset();
	sp_recorder_reset();
	return agent_fixture_teardown(state);
}

/* Either may complete a segment. */
static void note_complete(uint32_t complete_before)
{
	if (sp_ring_complete() != complete_before)
		complete_at[n_objects] = n_steps;
}

static void allocate(size_t place, uint64_t size_bytes)
{
	const struct sp_event event = {address_of(place), size_bytes, 0,
				       SP_ENTRY_MALLOC, SP_FRAME_HERE};
	const uint32_t complete = sp_ring_complete();

	n_steps++;
	objects[++n_objects] = (struct object){.size_bytes = size_bytes};
	alive[place] = n_objects;
	sp_recorder_sample(&sp_thread, &event);
	sp_slots_add(0, size_bytes, 1);
	sp_marks_complete();
	note_complete(complete);
}

static void release(size_t place)
{
	const uint32_t complete = sp_ring_complete();

	objects[alive[place]].freed_at = ++n_steps;
	alive[place] = 0;
	sp_recorder_free(address_of(place));
	note_complete(complete);
}

static void one_step(struct sp_rng *rng, size_t n_places)
{
	const size_t place = sp_rng_next(rng) % n_places;

	/* The lower places are for those that live long. */
	if (alive[place] && place < n_places / 2 && sp_rng_next(rng) % 64)
		return;
	if (alive[place])
		release(place);
	if (sp_rng_next(rng) % 8)
		allocate(place, 1 + sp_rng_next(rng) % 5000);
}

static struct sp_profile *load(void)
{
	struct sp_profile *p;

	sp_writer_publish(1);
	p = load_whole_profile(path);
	assert_int_equal(p->unfinished_records, 0);
	assert_int_equal(p->unmatched_frees, 0);
	return p;
}

static void check_sample(const struct sp_profile *p, const struct sp_sample *s)
{
	const struct object *o = &objects[s->id];

	assert_true(s->size_bytes == o->size_bytes);
	assert_true((s->freed_ns != SP_NEVER) == (o->freed_at != 0));
	assert_true(sp_sample_is_survivor(p, s) ==
		    (s->id <= p->discarded_objects));
}

/* The window is behind object number `discarded_objects`. */
static uint64_t check(uint64_t max_file_bytes)
{
	struct sp_profile *p = load();
	const uint64_t first = p->discarded_objects;
	uint64_t bytes = 0, left = 0, at = 0;
	struct stat st;

	assert_true(p->exact_alloc_objects == n_objects);
	for (uint64_t i = 1; i <= n_objects; i++) {
		const struct object *o = &objects[i];

		if (i <= first)
			bytes += o->size_bytes;
		if (i <= first && o->freed_at &&
		    o->freed_at <= complete_at[first])
			continue;
		left++;
		assert_true(at < p->n_samples && p->samples[at].id == i);
		check_sample(p, &p->samples[at++]);
	}
	assert_true(p->n_samples == left);
	assert_true(p->discarded_bytes == bytes);
	/* Its THREAD record is there. */
	assert_true(p->n_thread_infos == 1);
	assert_true(p->thread_infos[0].tid == (uint64_t)gettid());
	assert_int_equal(stat(path, &st), 0);
	assert_true((uint64_t)st.st_size <= max_file_bytes);
	return first;
}

static void run(uint64_t max_file_bytes, size_t n_places, uint32_t thread)
{
	struct sp_rng rng;
	uint64_t window = 0;

	sp_rng_init(&rng, 91, n_places);
	begin(max_file_bytes, thread);
	for (unsigned int look = 1; look <= n_looks; look++) {
		/* In the middle of passes, too. */
		const uint64_t until = (uint64_t)n_wanted * look / n_looks -
				       sp_rng_next(&rng) % 3000;

		while (n_objects < until)
			one_step(&rng, n_places);
		window = check(max_file_bytes);
	}
	assert_true(sp_ring_segment() > n_turns);
	/* At least half of the file is the past. */
	assert_true(window < n_objects - 5000);
	assert_true(window > n_objects - 40000);
	assert_true(agent_fixture_losses() == 0);
}

TEST_BETWEEN(few_alive, NULL, end)
{
	run(1 << 20, 50, 1);
}

/* A pass rewrites a third of what a segment has. */
TEST_BETWEEN(many_alive, NULL, end)
{
	run(1 << 20, 1000, 1);
}

/* One of the threads that the file does not remember for good. */
TEST_BETWEEN(late_thread, NULL, end)
{
	run(1 << 20, 50, 1000000);
}

/* Where more is alive than a segment's share of the file, no more than twice as
 * much is rewritten as comes anew. */
TEST_BETWEEN(much_alive, NULL, end)
{
	const uint64_t max_file_bytes = 4 << 20;
	struct sp_rng rng;

	sp_rng_init(&rng, 92, 1);
	begin(max_file_bytes, 1);
	while (n_objects < OBJECTS) {
		const size_t place = sp_rng_next(&rng) % LIVE_MAX;

		if (alive[place])
			release(place);
		allocate(place, 64);
	}
	check(max_file_bytes);
	assert_in_range(sp_ring_segment() - 1, 3, 2 * OBJECTS / LIVE_MAX);
	assert_true(agent_fixture_losses() == 0);
}

/* SAMPLE records of that sample in a segment. */
static unsigned int count_in(uint32_t segment, uint64_t id)
{
	unsigned int n = 0;

	for (uint64_t c = 0; (c = sp_ring_next_of(segment, c));) {
		struct sp_chunk_state state = {.hash = 0};
		size_t bytes, offset = SP_FORMAT_CHUNK_RECORDS_OFFSET;
		const uint8_t *chunk = sp_chunks_read(c, segment, &bytes);
		unsigned int records = UINT32_MAX;
		struct sp_record_sample s;

		while (chunk && sp_scan_sample(&state, chunk, bytes, &offset,
					       &records, &s))
			n += s.id == id;
		if (chunk)
			sp_chunks_leave(c);
	}
	return n;
}

/* Behind the back of the recorder, so that no pass goes on. */
static void write_sample(uint64_t id, size_t place, bool is_again)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};
	struct sp_lane *lane = sp_lane_take(&sp_thread.lane_hint);

	r.u.sample = (struct sp_record_sample){
		.id = id,
		.time_ns = sp_writer_time(),
		.address = (uintptr_t)address_of(place),
		.size_bytes = objects[id].size_bytes,
		.period_bytes = 1,
		.thread = 1,
		.entry = SP_ENTRY_MALLOC,
		.is_again = is_again,
	};
	assert_true(sp_chunks_append_to(lane, &r, 0));
	sp_lane_give(lane);
}

/* What two leave that rewrite the same sample (rewrite_live.c, I1): what is
 * twice in one segment is once in the next, however long it lives. */
TEST_BETWEEN(twice_in_a_segment, NULL, end)
{
	begin(1 << 20, 1);
	for (size_t place = 0; place < 100; place++)
		allocate(place, 64);
	for (size_t place = 0; place < 100; place++)
		for (unsigned int i = 0; i < place % 4; i++)
			write_sample(1 + place, place, true);
	assert_int_equal(count_in(1, 4), 4);
	for (size_t place = 100; sp_ring_complete() < 30; place++) {
		if (place >= 200)
			release(100 + place % 100);
		allocate(100 + place % 100, 64);
	}
	for (uint64_t id = 1; id <= 100; id++)
		assert_int_equal(count_in(sp_ring_complete(), id), 1);
	check(1 << 20);
}

/* Bytes of samples that were written again to a segment. */
static uint64_t bytes_again(uint32_t segment)
{
	uint64_t sum = 0;

	for (uint64_t c = 0; (c = sp_ring_next_of(segment, c));) {
		struct sp_chunk_state state = {.hash = 0};
		size_t bytes, at, offset = SP_FORMAT_CHUNK_RECORDS_OFFSET;
		const uint8_t *chunk = sp_chunks_read(c, segment, &bytes);
		unsigned int records = UINT32_MAX;
		struct sp_record_sample s;

		for (at = offset;
		     chunk && sp_scan_sample(&state, chunk, bytes, &offset,
					     &records, &s);
		     at = offset)
			sum += s.is_again ? offset - at : 0;
		if (chunk)
			sp_chunks_leave(c);
	}
	return sum;
}

/* What a pass has written is what is alive, although it is held up while a
 * third of the file is filled with samples that are new. */
static void check_held_up(size_t n_alive)
{
	const uint64_t room = 4 << 20, new_bytes = room / 3;
	const size_t last = LIVE_MAX - 1;
	uint64_t sum;
	uint32_t segment;

	begin(room, 1);
	for (size_t place = 0; place < n_alive; place++)
		allocate(place, 64);
	while (sp_ring_at_rest() || sp_ring_segment() < 4) {
		allocate(last, 64);
		release(last);
	}
	segment = sp_ring_segment();
	for (uint64_t n = 0; n < new_bytes / SP_FORMAT_CHUNK_BYTES; n++) {
		const uint64_t before = sp_ring_extent();

		while (sp_ring_extent() == before)
			write_sample(1, 0, false);
	}
	while (sp_ring_complete() != segment) {
		allocate(last, 64);
		release(last);
	}
	sum = bytes_again(segment);
	assert_true(sum >= 8 * n_alive);
	/* With their stacks. */
	assert_in_range(sp_ring_rewritten_percent(), 100 * sum / room,
			100 * sum / room + 2);
}

TEST_BETWEEN(held_up_with_few, NULL, end)
{
	check_held_up(100);
}

TEST_BETWEEN(held_up_with_many, NULL, end)
{
	check_held_up(LIVE_MAX / 2);
}

TEST_MAIN(begin_all, agent_fixture_end)
