/* SPDX-License-Identifier: MIT */
/*
 * Eight threads insert and take addresses of the live set, each other's too,
 * from empty through more than ten sizes of table, 25 times, and fall asleep
 * between its atomic operations now and then, also in the middle of
 * moves. Every answer is checked, and the filter is counted again after each
 * round.
 *
 *     test_stress_liveset [OPERATIONS [ADDRESSES]]    a longer run
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/rng.h"
#include "support/liveset_check.h"
#include "support/test.h"

#define THREADS         8u
#define SHORT_ADDRESSES 120000u /* of a round: more than ten tables */
#define SHORT_ROUNDS    25u
#define SHORT_OPS       40000u /* of a thread in a round */

/* What an allocator knows of an address.  It belongs to the thread that made it
 * MOVING. */
enum { FREE, HELD, MOVING };

struct address {
	_Atomic int state;
	_Atomic int racing; /* takers that are in a double free */
	uint64_t id;        /* of the sample, while HELD */
};

static struct address *addresses;
static uint64_t n_addresses;
static uint64_t ops_per_thread;
static unsigned int round_number;
static bool hesitates;
static _Atomic uint64_t wrong;
static _Atomic uint64_t operations;
static pthread_barrier_t start;

static const void *pointer(uint64_t i)
{
	return (const void *)(uintptr_t)(0x7f3300000010 + 32 * i);
}

static void check(bool ok)
{
	if (!ok)
		atomic_fetch_add(&wrong, 1);
}

static bool is_sample(const struct sp_live *live, uint64_t i, uint64_t id)
{
	return live->id == id &&
	       live->clock_bytes == id * 3 % (1ull << SP_LIVESET_CLOCK_BITS) &&
	       live->thread == (uint32_t)i && live->generation == 1;
}

static void insert(uint64_t i, uint64_t id)
{
	struct sp_live old, live = {id, id * 3, (uint32_t)i, 1};

	addresses[i].id = id;
	check(sp_liveset_insert(pointer(i), &live, &old) == SP_LIVESET_ADDED);
	check(sp_filter_may_have(pointer(i)));
	atomic_store(&addresses[i].state, HELD);
}

static void take(uint64_t i)
{
	struct sp_live live;

	check(sp_filter_may_have(pointer(i)));
	check(sp_liveset_may_have(pointer(i)));
	check(sp_liveset_take(pointer(i), &live) &&
	      is_sample(&live, i, addresses[i].id));
	check(!sp_liveset_take(pointer(i), &live));
	atomic_store(&addresses[i].state, FREE);
}

/* Insert and take at random: in the first half of the work rather insert, in
 * the second rather take. */
static void operate(struct sp_rng *rng, uint64_t op)
{
	uint64_t v = sp_rng_next(rng), i = (v >> 8) % n_addresses;
	bool may_insert = (v & 7) < (op < ops_per_thread / 2 ? 7u : 2u);
	int state = atomic_load(&addresses[i].state);

	if (state == MOVING || (state == FREE && !may_insert) ||
	    !atomic_compare_exchange_strong(&addresses[i].state, &state,
					    MOVING))
		return;
	if (state == FREE)
		insert(i, (v | 1) >> (64 - SP_LIVESET_ID_BITS) | 1);
	else
		take(i);
	atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

static _Thread_local struct sp_rng hesitation;

/* Now and then, in the middle of an operation, others do a lot. */
static void hesitate(void)
{
	if (sp_rng_next(&hesitation) % 4096 == 0)
		usleep(200);
}

static void *work(void *arg)
{
	struct sp_rng rng;

	sp_rng_init(&hesitation, 52, *(unsigned int *)arg);
	liveset_check_step = hesitates ? hesitate : NULL;
	sp_rng_init(&rng, 51 + round_number, *(unsigned int *)arg);
	pthread_barrier_wait(&start);
	for (uint64_t op = 0; op < ops_per_thread; op++)
		operate(&rng, op);
	return NULL;
}

static void run_threads(void *(*body)(void *))
{
	unsigned int numbers[THREADS];
	pthread_t threads[THREADS];

	for (unsigned int t = 0; t < THREADS; t++) {
		numbers[t] = t;
		assert_int_equal(
			pthread_create(&threads[t], NULL, body, &numbers[t]),
			0);
	}
	for (unsigned int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
}

static struct liveset_check assert_sound(uint64_t live)
{
	struct liveset_check c;

	liveset_check(&c);
	assert_int_equal(c.addresses, live);
	assert_int_equal(c.live, live);
	assert_int_equal(c.busy, 0);
	assert_int_equal(c.duplicates, 0);
	assert_int_equal(c.misplaced, 0);
	assert_int_equal(c.in_transit, 0);
	assert_int_equal(c.wrong, 0);
	assert_int_equal(c.sticky, 0);
	return c;
}

/* What is held is there, and nothing else. */
static void check_end(void)
{
	uint64_t held = 0;

	for (uint64_t i = 0; i < n_addresses; i++)
		held += atomic_load(&addresses[i].state) == HELD;
	assert_sound(held);
	for (uint64_t i = 0; i < n_addresses; i++)
		if (atomic_load(&addresses[i].state) == HELD)
			take(i);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(assert_sound(0).nonzero, 0);
}

static void run_round(void)
{
	liveset_check_clear();
	assert_true(sp_liveset_init());
	round_number++;
	memset(addresses, 0, n_addresses * sizeof(*addresses));
	run_threads(work);
}

static void begin(uint64_t n, uint64_t ops)
{
	n_addresses = n;
	ops_per_thread = ops;
	addresses = calloc(n, sizeof(*addresses));
	atomic_store(&wrong, 0);
	atomic_store(&operations, 0);
	pthread_barrier_init(&start, NULL, THREADS);
}

static void done(void)
{
	free(addresses);
	liveset_check_clear();
}

TEST(turns)
{
	struct liveset_check c;

	begin(SHORT_ADDRESSES, SHORT_OPS);
	hesitates = true;
	for (unsigned int r = 0; r < SHORT_ROUNDS; r++) {
		run_round();
		liveset_check(&c);
		assert_in_range(c.table + c.tables, 15, 30);
		check_end();
	}
	assert_in_range(atomic_load(&operations),
			SHORT_ROUNDS * SHORT_OPS * THREADS / 3, UINT64_MAX);
	done();
}

/* ---- freed twice at the same time: one gets it ---- */

static _Atomic unsigned int takers;

static void *take_all(void *arg)
{
	struct sp_live live;

	sp_rng_init(&hesitation, 53, *(unsigned int *)arg);
	liveset_check_step = hesitate;
	pthread_barrier_wait(&start);
	for (uint64_t i = 0; i < n_addresses; i++)
		if (sp_liveset_take(pointer(i), &live)) {
			check(is_sample(&live, i, i + 1));
			check(atomic_fetch_add(&addresses[i].racing, 1) == 0);
			atomic_fetch_add(&takers, 1);
		}
	return NULL;
}

TEST(double_frees)
{
	begin(20000, 0);
	assert_true(sp_liveset_init());
	for (uint64_t i = 0; i < n_addresses; i++)
		insert(i, i + 1);
	run_threads(take_all);
	assert_int_equal(atomic_load(&takers), n_addresses);
	assert_int_equal(assert_sound(0).nonzero, 0);
	done();
}

/* ---- by hand ---- */

static int run_long(uint64_t ops, uint64_t n)
{
	struct liveset_check c;

	begin(n, ops / THREADS);
	run_round();
	liveset_check(&c);
	printf("%llu operations, table %u, filter of %llu KiB, %llu live\n",
	       (unsigned long long)atomic_load(&operations), c.table,
	       (unsigned long long)(c.counters >> 10),
	       (unsigned long long)c.addresses);
	check_end();
	done();
	puts("sound");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run_long(strtoull(argv[1], NULL, 10),
				argc > 2 ? strtoull(argv[2], NULL, 10)
					 : 1000000);
	return TEST_RUN(NULL, NULL);
}
