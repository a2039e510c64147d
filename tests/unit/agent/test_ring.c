/* SPDX-License-Identifier: MIT */
/*
 * The ring of chunks against a model that knows everything, with lanes whose
 * threads are stopped and rotations that were left.
 */
#include <time.h>

#include "agent/file/ring.h"
#include "agent/sys/clock.h"
#include "base/rng.h"
#include "format/layout.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define LANES 4u
#define STEPS 200000u

/* Bytes of a chunk, for records. */
#define ROOM (SP_FORMAT_CHUNK_BYTES - SP_FORMAT_CHUNK_RECORDS_OFFSET)

enum { PERMANENT = -1, FREE = 0 };

/* By chunk: its segment. */
static struct model {
	int64_t owners[200];
	uint64_t n;
	uint64_t n_permanent;
	uint32_t oldest; /* as was told at the last turn */
	uint32_t complete;
	uint32_t current;
} model;

static struct sp_lane *lanes[LANES];
static uint64_t lane_chunks[LANES];

static void begin(uint64_t n)
{
	uint8_t hint = 0;

	model = (struct model){
		.n = n, .oldest = 1, .complete = 1, .current = 1};
	for (unsigned int i = 0; i < LANES; i++) {
		lanes[i] = sp_lane_take(&hint);
		lane_chunks[i] = 0;
		assert_non_null(lanes[i]);
	}
	sp_ring_begin(n, true);
}

/* What it says is free was free, and not in the hands of another lane that is
 * held. */
static void take(uint64_t chunk, int64_t owner, bool is_used, unsigned int lane)
{
	const int64_t before = model.owners[chunk];

	assert_in_range(chunk, 1, model.n - 1);
	assert_true(before == FREE ||
		    (before > 0 && before < (int64_t)model.oldest));
	assert_int_equal(is_used, before != FREE);
	for (unsigned int i = 0; i < LANES; i++)
		assert_true(i == lane || lane_chunks[i] != chunk);
	model.owners[chunk] = owner;
}

static void take_sampled(unsigned int lane)
{
	bool is_used;
	const uint64_t n =
		sp_ring_take(lanes[lane], model.current, true, &is_used);

	/* It has let go of what it had. */
	lane_chunks[lane] = 0;
	if (!n)
		return;
	take(n, model.current, is_used, lane);
	sp_ring_took(lanes[lane], n);
	lane_chunks[lane] = n;
}

static void take_permanent(void)
{
	bool is_used;
	const uint64_t n = sp_ring_take_permanent(&is_used);

	if (!n)
		return;
	take(n, PERMANENT, is_used, LANES);
	model.n_permanent++;
	assert_true(model.n_permanent <= 3 * model.n / 4 + 1);
}

static void turn(bool is_full, bool is_recorded)
{
	struct sp_window window;
	struct sp_ring_rotation t;

	if (!sp_ring_begin_rotation(is_full, &t, &window)) {
		if (is_full)
			assert_true(model.complete != model.current);
		return;
	}
	assert_true(model.complete == model.current);
	/* The window's own totals, and never before what was said. */
	if (window.oldest) {
		assert_true(window.oldest >= model.oldest);
		assert_true(window.oldest <= model.complete);
		assert_true(window.alloc_bytes == 1000 * window.oldest);
	} else {
		assert_int_equal(model.oldest, 1);
	}
	assert_true(sp_ring_has_rotation(&t));
	sp_ring_end_rotation(&t, is_recorded);
	if (!is_recorded)
		return;
	if (window.oldest)
		model.oldest = (uint32_t)window.oldest;
	model.current++;
}

static void complete(void)
{
	const struct sp_window window = {.alloc_bytes = 1000 * model.current};

	if (model.complete == model.current)
		return;
	sp_ring_set_complete(model.current, &window);
	model.complete = model.current;
}

static void check(void)
{
	uint64_t extent = 1;

	assert_int_equal(sp_ring_segment(), model.current);
	assert_int_equal(sp_ring_complete(), model.complete);
	for (uint32_t s = model.oldest; s <= model.current; s++) {
		uint64_t at = 0;

		for (uint64_t n = 1; n < model.n; n++) {
			if (model.owners[n] != s)
				continue;
			at = sp_ring_next_of(s, at);
			assert_int_equal(at, n);
		}
		assert_int_equal(sp_ring_next_of(s, at), 0);
	}
	for (uint64_t n = 1; n < model.n; n++)
		if (model.owners[n] != FREE)
			extent = n + 1;
	assert_int_equal(sp_ring_extent(), extent);
}

static void step(struct sp_rng *rng)
{
	const unsigned int lane = (unsigned int)(sp_rng_next(rng) % LANES);
	uint8_t hint = (uint8_t)lane;

	switch (sp_rng_next(rng) % 16) {
	case 0:
		if (model.n_permanent < model.n / 8)
			take_permanent();
		break;
	case 1:
	case 2:
		turn(false, true);
		break;
	case 3:
		turn(sp_rng_next(rng) % 8 == 0, sp_rng_next(rng) % 8 > 0);
		break;
	case 4:
	case 5:
	case 6:
		complete();
		break;
	case 7:
		/* Somebody else may take the chunk of an idle lane. */
		sp_lane_give(lanes[lane]);
		lane_chunks[lane] = 0;
		assert_ptr_equal(sp_lane_take(&hint), lanes[lane]);
		break;
	default:
		/* Not so often that there is nothing left for the others. */
		if (sp_ring_complete() == sp_ring_segment() ||
		    sp_rng_next(rng) % 4 == 0)
			take_sampled(lane);
	}
}

static void run(uint64_t n)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 31, n);
	begin(n);
	for (unsigned int i = 0; i < STEPS; i++) {
		step(&rng);
		if (i % 64 == 0)
			check();
	}
	/* It did turn, and so did what it discards. */
	assert_true(model.oldest > 100);
	assert_true(model.current - model.oldest < 16);
}

TEST_BETWEEN(sizes, NULL, agent_fixture_teardown)
{
	run(16);
	agent_fixture_close();
	run(37);
	agent_fixture_close();
	run(200);
}

/* About half of the file is the past, if segments are completed in time. */
TEST_BETWEEN(share, NULL, agent_fixture_teardown)
{
	bool is_used;

	begin(100);
	for (unsigned int i = 0; i < 10000; i++) {
		turn(false, true);
		complete();
		take_sampled(0);
		assert_true(lane_chunks[0]);
		if (i > 200) {
			uint64_t kept = 0;

			for (uint64_t n = 1; n < model.n; n++)
				kept += model.owners[n] >= model.oldest;
			assert_in_range(kept, 45, 80);
		}
	}
	/* Three quarters for good, the others turn on. */
	while (sp_ring_take_permanent(&is_used))
		model.n_permanent++;
	assert_true(model.n_permanent <= 75);
}

/* Chunks that a pass is behind need no room any more, so that others get it. */
TEST_BETWEEN(passed, NULL, agent_fixture_teardown)
{
	const unsigned int half = 32;
	bool is_used;

	begin(2 * half + 1);
	for (unsigned int i = 0; i < half; i++)
		take_sampled(0);
	turn(true, true);
	for (unsigned int i = 0; i < half / 4; i++)
		take_sampled(0);
	assert_int_equal(sp_ring_take(lanes[1], model.current, false, &is_used),
			 0);
	/* Of another segment nothing is said. */
	sp_ring_passed(model.current, half);
	assert_int_equal(sp_ring_take(lanes[1], model.current, false, &is_used),
			 0);
	sp_ring_passed(model.current - 1, half / 2);
	assert_true(sp_ring_take(lanes[1], model.current, false, &is_used) > 0);
}

/* A segment gets so many chunks, into which a pass writes so many bytes; true:
 * another may begin.  Bytes of other segments do not count. */
static bool fill_segment(unsigned int chunks, uint32_t bytes)
{
	const uint32_t before = model.current;

	for (unsigned int i = 0; i < chunks; i++) {
		take_sampled(0);
		assert_true(lane_chunks[0]);
	}
	sp_ring_rewrote(before - 1, 7 * ROOM);
	if (bytes)
		sp_ring_rewrote(before, bytes / 2);
	sp_ring_rewrote(before + 1, 9 * ROOM);
	if (bytes)
		sp_ring_rewrote(before, bytes - bytes / 2);
	sp_ring_passed(before - 1, UINT32_MAX);
	/* Of another segment nothing is said. */
	sp_ring_passed(before - 2, UINT32_MAX);
	complete();
	turn(false, true);
	return model.current != before;
}

/* What is alive is what passes wrote, however much is new meanwhile; a segment
 * gets twice as much, in whole chunks, if that is more than an eighth. */
TEST_BETWEEN(rewritten, NULL, agent_fixture_teardown)
{
	const unsigned int n = 64;

	begin(n + 1);
	assert_false(fill_segment(n / 8 - 1, 0));
	assert_true(fill_segment(1, 0));
	assert_int_equal(sp_ring_rewritten_percent(), 0);
	/* A pass that was held up while samples went on. */
	assert_true(fill_segment(3 * n / 8, 0));
	assert_int_equal(sp_ring_rewritten_percent(), 0);
	assert_true(fill_segment(n / 8, ROOM));
	assert_int_equal(sp_ring_rewritten_percent(), 100 / n);
	assert_false(fill_segment(n / 8, n / 8 * ROOM));
	assert_int_equal(sp_ring_rewritten_percent(), 100 / 8);
	assert_false(fill_segment(n / 8 - 1, 0));
	assert_true(fill_segment(1, 0));
	assert_int_equal(sp_ring_rewritten_percent(), 100 / 8);
	/* A byte more is a chunk more. */
	assert_false(fill_segment(10, 5 * ROOM + 1));
	assert_true(fill_segment(1, 0));
	/* Without a pass nothing was rewritten; more than 3/8 never fit. */
	assert_true(fill_segment(n / 8, 0));
	assert_false(fill_segment(3 * n / 8 - 1, n / 4 * ROOM));
	assert_true(fill_segment(1, 0));
	assert_int_equal(sp_ring_rewritten_percent(), 100 / 4);
}

/* A lane whose holder stopped keeps its chunk, however often the ring turns. */
TEST_BETWEEN(stopped, NULL, agent_fixture_teardown)
{
	uint64_t kept;

	begin(40);
	take_sampled(1);
	kept = lane_chunks[1];
	for (unsigned int i = 0; i < 1000; i++) {
		turn(false, true);
		complete();
		take_sampled(0); /* take() looks at it */
	}
	assert_int_equal(lane_chunks[1], kept);
	assert_int_equal(model.owners[kept], 1);
	assert_true(model.oldest > 1);
}

/* A turn that somebody has left is made by another, and not once more by him
 * who comes back late. */
TEST_BETWEEN(rotation_that_was_left, NULL, agent_fixture_teardown)
{
	const struct timespec second = {1, 1000000};
	struct sp_ring_rotation left, other;
	struct sp_window window;
	uint64_t begun_ns;

	begin(40);
	begun_ns = sp_clock_now_ns();
	assert_true(sp_ring_begin_rotation(true, &left, &window));
	/* A machine may stand still for that second. */
	if (!sp_ring_begin_rotation(true, &other, &window)) {
		nanosleep(&second, NULL);
		assert_true(sp_ring_begin_rotation(true, &other, &window));
	} else {
		assert_true(sp_clock_now_ns() - begun_ns >= 1000000000u);
	}
	assert_false(sp_ring_has_rotation(&left));
	sp_ring_end_rotation(&left, true);
	assert_int_equal(sp_ring_segment(), 1);
	sp_ring_end_rotation(&other, true);
	assert_int_equal(sp_ring_segment(), 2);
	sp_ring_end_rotation(&left, true);
	assert_int_equal(sp_ring_segment(), 2);
	/* Likewise what completes it. */
	sp_ring_set_complete(2, &(struct sp_window){.mark = 5});
	sp_ring_set_complete(1, &(struct sp_window){.mark = 6});
	assert_int_equal(sp_ring_complete(), 2);
}

/* One segment, of which nothing is ever discarded, and some room is kept. */
TEST_BETWEEN(without_turns, NULL, agent_fixture_teardown)
{
	const uint64_t n = 100, kept = 16;
	uint64_t taken = 0, permanent = 0;
	struct sp_ring_rotation rotation;
	struct sp_window window;
	bool is_used;

	begin(n);
	sp_ring_begin(n, false);
	for (;; taken++) {
		const uint64_t chunk =
			sp_ring_take(lanes[0], 1, false, &is_used);

		if (!chunk)
			break;
		assert_int_equal(chunk, 1 + taken);
		assert_false(is_used);
		sp_ring_took(lanes[0], chunk);
		assert_false(sp_ring_begin_rotation(true, &rotation, &window));
	}
	assert_int_equal(taken, n - kept);
	for (; sp_ring_take_permanent(&is_used); permanent++)
		assert_false(is_used);
	assert_int_equal(permanent, kept - 1);
	assert_int_equal(sp_ring_segment(), 1);
	assert_int_equal(sp_ring_complete(), 1);
}

/* Chunks of a closed file that are left for what comes after its end. */
#define SPARE 2u

/* With n chunks, of which `used` were taken: no chunk beyond the length of the
 * file is given from then on, and of those before it each that never was, once.
 */
static void check_close(bool turns, uint64_t n, uint64_t used)
{
	const uint64_t most = used + 1 + SPARE;
	const uint64_t want = most < n ? most : n;
	uint64_t chunk, left = 0;
	bool is_used;

	sp_ring_begin(n, turns);
	for (uint64_t i = 0; i < used; i++)
		assert_int_equal(sp_ring_take_permanent(&is_used), i + 1);
	assert_int_equal(sp_ring_extent(), used + 1);
	assert_int_equal(sp_ring_close(), want);
	for (; (chunk = sp_ring_take_permanent(&is_used)); left++) {
		assert_int_equal(chunk, used + 1 + left);
		assert_false(is_used);
	}
	assert_int_equal(used + 1 + left, want);
	assert_int_equal(sp_ring_extent(), want);
}

TEST(close)
{
	for (int turns = 0; turns < 2; turns++) {
		check_close(turns, 100, 0);
		check_close(turns, 100, 1);
		check_close(turns, 100, 50);
		/* Near the end of the file there are fewer. */
		check_close(turns, 6, 3);
		check_close(turns, 6, 4);
		check_close(turns, 6, 5);
	}
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
