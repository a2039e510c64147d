/* SPDX-License-Identifier: MIT */
/* Lanes are exclusive, all can be reached, and no thread waits for one. */
#include <pthread.h>

#include "agent/unwind/lane.h"
#include "support/test.h"

#define SAMPLING (SP_LANES - 1u)
#define THREADS  8
#define ROUNDS   60000u

static void give_all(void)
{
	for (uint8_t i = 1; i <= SP_LANES; i++)
		sp_lane_give(sp_lane_of(i));
}

static void *take_one(void *hint)
{
	return sp_lane_take(hint);
}

/* A lane whose holder is a thread that a forked child does not have. */
static struct sp_lane *take_elsewhere(uint8_t hint)
{
	pthread_t thread;
	void *lane;

	assert_int_equal(pthread_create(&thread, NULL, take_one, &hint), 0);
	pthread_join(thread, &lane);
	assert_non_null(lane);
	return lane;
}

/* From any hint all lanes but the last are found, each once; then none.  A fact
 * of the process has one more. */
TEST(all)
{
	struct sp_lane *lanes[SAMPLING];

	for (unsigned int first = 0; first < 256; first += 5) {
		uint8_t hint;

		for (unsigned int i = 0; i < SAMPLING; i++) {
			hint = (uint8_t)first;
			lanes[i] = sp_lane_take(&hint);
			assert_non_null(lanes[i]);
			assert_true(hint < SAMPLING);
			for (unsigned int k = 0; k < i; k++)
				assert_ptr_not_equal(lanes[i], lanes[k]);
		}
		hint = 7;
		assert_null(sp_lane_take(&hint));
		assert_ptr_equal(sp_lane_take_for_fact(&hint),
				 sp_lane_of(SP_LANES));
		assert_null(sp_lane_take_for_fact(&hint));
		assert_int_equal(hint, 7);
		sp_lane_give(sp_lane_of(SP_LANES));
		sp_lane_give(lanes[first % SAMPLING]);
		assert_ptr_equal(sp_lane_take(&hint), lanes[first % SAMPLING]);
		for (unsigned int i = 0; i < SAMPLING; i++)
			sp_lane_give(lanes[i]);
	}
}

/* A thread gets its own lane back, and a free low one rather than a new one. */
TEST(preference)
{
	uint8_t a = 0, b = 0, other = 30;
	struct sp_lane *first = sp_lane_take(&a);
	struct sp_lane *second = sp_lane_take(&b);

	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	sp_lane_give(second);
	assert_ptr_equal(sp_lane_take(&b), second);
	sp_lane_give(first);
	/* Its own lane is taken: the lowest, not the next higher. */
	assert_non_null(sp_lane_take(&other));
	assert_int_equal(other, 30);
	other = 30;
	assert_ptr_equal(sp_lane_take(&other), first);
	assert_int_equal(other, 0);
	give_all();
}

TEST(number)
{
	assert_null(sp_lane_of(0));
	for (unsigned int i = 0; i < SP_LANES; i++) {
		uint8_t hint = (uint8_t)i;
		struct sp_lane *lane = sp_lane_take_for_fact(&hint);
		uint8_t number = sp_lane_number(lane);

		assert_int_not_equal(number, 0);
		assert_ptr_equal(sp_lane_of(number), lane);
	}
	give_all();
}

/* After a fork everything is free and belongs to no file. */
TEST(reset)
{
	uint8_t chunk;
	uint8_t hints[SP_LANES];
	struct sp_lane *busy, *idle;

	hints[0] = 0;
	busy = take_elsewhere(0);
	idle = sp_lane_take(&hints[0]);
	busy->tail.chunk = idle->tail.chunk = &chunk;
	busy->walks[0].n = idle->walks[0].n = 1;
	sp_lane_give(idle);
	sp_lane_reset();
	assert_null(busy->tail.chunk);
	assert_null(idle->tail.chunk);
	/* Nobody knows what the last walk of a busy one looks like. */
	assert_int_equal(busy->walks[0].n, 0);
	assert_int_equal(idle->walks[0].n, 1);
	idle->walks[0].n = 0;
	for (unsigned int i = 0; i < SP_LANES; i++) {
		hints[i] = 0;
		assert_non_null(sp_lane_take_for_fact(&hints[i]));
	}
	give_all();
}

/* Those that the child is in the middle of using stay its own: two if a signal
 * handler interrupted the first use. */
TEST(reset_but_own)
{
	uint8_t chunk, hint = 0;
	struct sp_lane *kept[2] = {sp_lane_take(&hint), sp_lane_take(&hint)};
	struct sp_lane *other = take_elsewhere(0);

	for (int i = 0; i < 2; i++) {
		kept[i]->tail.chunk = &chunk;
		kept[i]->walks[0].n = 1;
	}
	other->tail.chunk = &chunk;
	sp_lane_reset();
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(kept[i]->tail.chunk, &chunk);
		assert_int_equal(kept[i]->walks[0].n, 1);
	}
	assert_null(other->tail.chunk);
	for (unsigned int i = 2; i < SP_LANES; i++) {
		struct sp_lane *lane = sp_lane_take_for_fact(&hint);

		assert_non_null(lane);
		assert_ptr_not_equal(lane, kept[0]);
		assert_ptr_not_equal(lane, kept[1]);
	}
	assert_null(sp_lane_take_for_fact(&hint));
	give_all();
	for (int i = 0; i < 2; i++)
		kept[i]->walks[0].n = 0;
	sp_lane_reset();
	assert_null(kept[0]->tail.chunk);
}

/* Closed once nobody has one; what a fork resets stays closed. */
TEST(closed)
{
	uint8_t chunk, hint = 3;
	struct sp_lane *lane = sp_lane_take(&hint);

	assert_false(sp_lane_is_closed());
	assert_false(sp_lane_close());
	assert_true(sp_lane_is_closed());
	for (unsigned int i = 0; i < SP_LANES; i++) {
		hint = (uint8_t)i;
		assert_null(sp_lane_take_for_fact(&hint));
	}
	sp_lane_give(lane);
	assert_true(sp_lane_close());
	assert_true(sp_lane_close());
	lane->tail.chunk = &chunk;
	sp_lane_reset();
	assert_null(lane->tail.chunk);
	assert_null(sp_lane_take_for_fact(&hint));
	assert_true(sp_lane_is_closed());
	sp_lane_open();
	assert_false(sp_lane_is_closed());
	assert_non_null(sp_lane_take(&hint));
	sp_lane_open();
	for (unsigned int i = 1; i < SP_LANES; i++)
		assert_non_null(sp_lane_take_for_fact(&hint));
	assert_null(sp_lane_take_for_fact(&hint));
	give_all();
}

struct worker {
	unsigned int index;
	unsigned int taken, missed, shared;
};

/* The lane's plain fields are the holder's alone. */
static void *take_and_give(void *arg)
{
	struct worker *w = arg;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		/* All want the same one first. */
		uint8_t hint = 0;
		struct sp_lane *lane = sp_lane_take(&hint);
		size_t mark = (size_t)w->index * ROUNDS + i + 1;

		if (!lane) {
			w->missed++;
			continue;
		}
		w->taken++;
		lane->tail.at = mark;
		lane->tail.populated++;
		for (volatile int spin = 0; spin < 20; spin++)
			;
		w->shared += lane->tail.at != mark;
		sp_lane_give(lane);
	}
	return NULL;
}

TEST(threads)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	uint8_t hints[SP_LANES];
	size_t total = 0;

	for (unsigned int i = 0; i < SP_LANES; i++) {
		hints[i] = 0;
		sp_lane_take_for_fact(&hints[i])->tail.populated = 0;
	}
	give_all();
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		assert_int_equal(pthread_create(&threads[i], NULL,
						take_and_give, &workers[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].shared, 0);
		/* Fewer threads than lanes: nobody goes without. */
		assert_int_equal(workers[i].missed, 0);
	}
	/* Every round was counted by plain increments. */
	for (unsigned int i = 0; i < SP_LANES; i++) {
		hints[i] = 0;
		total += sp_lane_take_for_fact(&hints[i])->tail.populated;
	}
	assert_int_equal(total, THREADS * ROUNDS);
	give_all();
}

TEST_MAIN(NULL, NULL)
