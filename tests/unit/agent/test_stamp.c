/* SPDX-License-Identifier: MIT */
/*
 * Threads that take objects from each other: an object is freed later than it
 * was allocated, its place is used again later than that, and no two
 * allocations have the same time.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/array.h"
#include "agent/event/stamp.h"
#include "agent/file/writer.h"
#include "support/test.h"

#define THREADS 3
#define TURNS   200000u
#define PLACES  4u

/* When it was allocated, or freed: bit 0 says that it is free. */
static _Atomic uint64_t places[PLACES];
static _Atomic unsigned int wrong;
static uint64_t times[THREADS][TURNS];

static void *work(void *arg)
{
	uint64_t *own = arg;

	for (unsigned int i = 0, n = 0; n < TURNS; i++) {
		_Atomic uint64_t *place = &places[i % PLACES];
		uint64_t was = atomic_exchange(place, UINT64_MAX), now;

		if (was == UINT64_MAX) /* in the hands of another */
			continue;
		now = was & 1 ? sp_stamp_allocation() : sp_stamp_free();
		if (now <= was >> 1)
			atomic_fetch_add(&wrong, 1);
		if (was & 1)
			own[n++] = now;
		atomic_store(place, now << 1 | !(was & 1));
	}
	return NULL;
}

TEST(order)
{
	pthread_t threads[THREADS];
	uint64_t *all = &times[0][0];

	for (unsigned int i = 0; i < PLACES; i++)
		atomic_store(&places[i], 1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, work, times[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	qsort(all, THREADS * TURNS, sizeof(*all), sp_array_compare_u64);
	for (size_t i = 1; i < THREADS * TURNS; i++)
		assert_true(all[i - 1] < all[i]);
}

/* A mark lies between what was before and what comes after, by the clock. */
TEST(clock)
{
	for (unsigned int i = 0; i < 1000; i++) {
		const uint64_t before = sp_writer_time();
		const uint64_t freed = sp_stamp_free();
		const uint64_t now = sp_stamp_now();

		assert_true(now > freed && now >= before);
		assert_true(sp_stamp_allocation() > now);
		assert_true(sp_stamp_free() > now);
	}
}

/* Times do not stand still while a thread does something else. */
TEST(age)
{
	for (unsigned int i = 0; i < 100; i++) {
		const uint64_t begin = sp_writer_time();

		while (sp_writer_time() < begin + 1000000)
			;
		assert_true(sp_stamp_free() > begin + 500000);
	}
}

TEST_MAIN(NULL, NULL)
