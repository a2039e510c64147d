/* SPDX-License-Identifier: MIT */
/* Changes that wait for the table of mappings: in order, also when four threads
 * leave them while another takes them; too many; what a fork and a jump leave
 * behind. */
#include <pthread.h>
#include <stdatomic.h>

#include "agent/thread/thread.h"
#include "support/mapqueue_numbers.h"

#define THREADS 4u
#define EACH    20000u
static_assert(SP_MAPQUEUE_MAX + THREADS * EACH <= TAKEN_MAX, "has room");

_Thread_local struct sp_thread sp_thread;

TEST_BETWEEN(some_at_a_time, empty_queue, NULL)
{
	assert_false(sp_mapqueue_any());
	assert_true(sp_mapqueue_take(note));
	for (uint64_t i = 0; i < 800; i++)
		assert_true(put(i));
	for (uint64_t i = 0; i < 3; i++) {
		assert_true(sp_mapqueue_any());
		assert_false(sp_mapqueue_take(note));
		assert_in_order(256 * i, 256);
		assert_true(put(800 + i));
	}
	assert_true(sp_mapqueue_take(note));
	assert_in_order(768, 35);
	assert_false(sp_mapqueue_any());
}

/* Cells become free in another order than they were used in. */
TEST_BETWEEN(reused, empty_queue, NULL)
{
	uint64_t next = 0, first = 0;

	for (unsigned int round = 0; round < 500; round++) {
		for (unsigned int i = 0; i < 1 + round % 400; i++)
			assert_true(put(next++));
		sp_mapqueue_take(note);
		first += n_taken;
		assert_in_order(first - n_taken, n_taken);
	}
	while (!sp_mapqueue_take(note))
		;
	assert_in_order(first, next - first);
}

TEST_BETWEEN(too_many, empty_queue, NULL)
{
	for (uint64_t i = 0; i < SP_MAPQUEUE_MAX; i++)
		assert_true(put(i));
	assert_false(put(SP_MAPQUEUE_MAX));
	assert_false(sp_mapqueue_take(note));
	assert_true(put(SP_MAPQUEUE_MAX));
	while (!sp_mapqueue_take(note))
		;
	assert_in_order(0, SP_MAPQUEUE_MAX + 1);
}

TEST_BETWEEN(forked, empty_queue, NULL)
{
	for (uint64_t i = 0; i < 100; i++)
		assert_true(put(i));
	sp_mapqueue_reset();
	assert_true(put(1000));
	assert_true(sp_mapqueue_take(note));
	assert_in_order(1000, 1);
}

/* Nothing was left in the middle: what waits is taken. */
TEST_BETWEEN(nothing_left, empty_queue, NULL)
{
	assert_true(put(1));
	assert_int_equal(sp_mapqueue_give_left(), 0);
	assert_true(sp_mapqueue_take(note));
	assert_in_order(1, 1);
}

/* ---- threads ---- */

static pthread_mutex_t in_order = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_number;
static atomic_uint running;

static void *put_many(void *unused)
{
	for (unsigned int i = 0; i < EACH; i++) {
		pthread_mutex_lock(&in_order);
		while (!put(next_number))
			;
		next_number++;
		pthread_mutex_unlock(&in_order);
	}
	running--;
	return unused;
}

/* Each knows of all that were put before his: none overtakes another. */
TEST_BETWEEN(threads, empty_queue, NULL)
{
	pthread_t threads[THREADS];

	next_number = 0;
	running = THREADS;
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, put_many, NULL), 0);
	while (running)
		sp_mapqueue_take(note);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (!sp_mapqueue_take(note))
		;
	assert_in_order(0, THREADS * EACH);
	assert_false(sp_mapqueue_any());
}

static void *put_some(void *arg)
{
	for (uint64_t i = 0; i < EACH; i++)
		while (!put((uint64_t)(uintptr_t)arg << 32 | i))
			;
	running--;
	return arg;
}

/* Without knowing of each other: each thread's own come in order, none is lost
 * or comes twice. */
TEST_BETWEEN(threads_apart, empty_queue, NULL)
{
	uint64_t seen[THREADS] = {0};
	pthread_t threads[THREADS];

	running = THREADS;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, put_some, (void *)i),
			0);
	while (running)
		sp_mapqueue_take(note);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (!sp_mapqueue_take(note))
		;
	assert_int_equal(n_taken, THREADS * EACH);
	for (size_t i = 0; i < n_taken; i++)
		assert_int_equal((uint32_t)taken[i], seen[taken[i] >> 32]++);
}

TEST_MAIN(NULL, NULL)
