/* SPDX-License-Identifier: MIT */
/* Lanes: exclusive, all of them reachable, never waited for. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/lane.h"

#define THREADS 8
#define ROUNDS  60000u

/* From any hint all lanes are found, each once; then none. */
static void test_all(void **state)
{
	struct sp_lane *lanes[SP_LANES];

	(void)state;
	for (unsigned int first = 0; first < 256; first += 5) {
		uint8_t hint;

		for (unsigned int i = 0; i < SP_LANES; i++) {
			hint = (uint8_t)first;
			lanes[i] = sp_lane_take(&hint);
			assert_non_null(lanes[i]);
			assert_true(hint < SP_LANES);
			for (unsigned int k = 0; k < i; k++)
				assert_ptr_not_equal(lanes[i], lanes[k]);
		}
		hint = 7;
		assert_null(sp_lane_take(&hint));
		assert_int_equal(hint, 7);
		sp_lane_give(lanes[first % SP_LANES]);
		assert_ptr_equal(sp_lane_take(&hint), lanes[first % SP_LANES]);
		for (unsigned int i = 0; i < SP_LANES; i++)
			sp_lane_give(lanes[i]);
	}
}

/* A thread gets its own lane back, and a free low one rather than a new one. */
static void test_preference(void **state)
{
	uint8_t a = 0, b = 0, other = 30;
	struct sp_lane *first = sp_lane_take(&a);
	struct sp_lane *second = sp_lane_take(&b);

	(void)state;
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
	sp_lane_reset(NULL);
}

/* After a fork everything is free and belongs to no file. */
static void test_reset(void **state)
{
	uint8_t chunk;
	uint8_t hints[SP_LANES];
	struct sp_lane *busy, *idle;

	(void)state;
	hints[0] = hints[1] = 0;
	busy = sp_lane_take(&hints[0]);
	idle = sp_lane_take(&hints[1]);
	busy->chunk = idle->chunk = &chunk;
	busy->unwind_tls = idle->unwind_tls = &chunk;
	sp_lane_give(idle);
	sp_lane_reset(NULL);
	assert_null(busy->chunk);
	assert_null(idle->chunk);
	/* Nobody knows what the caches of a busy one look like. */
	assert_null(busy->unwind_tls);
	assert_ptr_equal(idle->unwind_tls, &chunk);
	idle->unwind_tls = NULL;
	for (unsigned int i = 0; i < SP_LANES; i++) {
		hints[i] = 0;
		assert_non_null(sp_lane_take(&hints[i]));
	}
	sp_lane_reset(NULL);
}

/* The one that the child is in the middle of using stays its own. */
static void test_reset_but_one(void **state)
{
	uint8_t chunk, hints[2] = {0, 0};
	struct sp_lane *kept = sp_lane_take(&hints[0]);
	struct sp_lane *other = sp_lane_take(&hints[1]);

	(void)state;
	kept->chunk = other->chunk = &chunk;
	kept->unwind_tls = &chunk;
	sp_lane_reset(kept);
	assert_ptr_equal(kept->chunk, &chunk);
	assert_ptr_equal(kept->unwind_tls, &chunk);
	assert_null(other->chunk);
	for (unsigned int i = 1; i < SP_LANES; i++) {
		struct sp_lane *lane = sp_lane_take(&hints[0]);

		assert_non_null(lane);
		assert_ptr_not_equal(lane, kept);
	}
	assert_null(sp_lane_take(&hints[0]));
	kept->unwind_tls = NULL;
	sp_lane_reset(NULL);
	assert_null(kept->chunk);
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
		lane->at = mark;
		lane->populated++;
		for (volatile int spin = 0; spin < 20; spin++)
			;
		w->shared += lane->at != mark;
		sp_lane_give(lane);
	}
	return NULL;
}

static void test_threads(void **state)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	uint8_t hints[SP_LANES];
	size_t total = 0;

	(void)state;
	for (unsigned int i = 0; i < SP_LANES; i++) {
		hints[i] = 0;
		sp_lane_take(&hints[i])->populated = 0;
	}
	sp_lane_reset(NULL);
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
		total += sp_lane_take(&hints[i])->populated;
	}
	assert_int_equal(total, THREADS * ROUNDS);
	sp_lane_reset(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preference),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_reset_but_one),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
