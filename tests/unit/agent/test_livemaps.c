/* SPDX-License-Identifier: MIT */
/*
 * The table of mappings: numbers, room by the length of the file, parts that
 * are cut out.  And without a wait: a thread that finds the table taken goes
 * on, and its change is in the table when the holder is done.  A signal
 * handler, a jump and a fork come before each atomic operation; a thread is
 * asleep with the table while another changes it 1,000 times; four threads use
 * it at once.  A plain array of pages is the model.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "agent/sys/diag.h"
#include "agent/thread/thread.h"
#include "base/rng.h"
#include "format/layout.h"
#include "support/livemaps_check.h"
#include "support/test.h"

#define MIB   0x100000u
#define UNITS 256u /* of addresses that the model knows, a MiB each */

static struct sp_span make_span(uint64_t i)
{
	return (struct sp_span){.start = (1 + i) * MIB,
				.end = (1 + i) * MIB + MIB / 2,
				.number = sp_livemaps_number()};
}

static uint64_t losses(void)
{
	uint64_t all[SP_FORMAT_LOSSES];

	sp_diag_read(all);
	return all[SP_LOSS_MAP];
}

static int empty_table(void **state)
{
	(void)state;
	livemaps_check_step = NULL;
	sp_livemaps_give_left();
	sp_livemaps_reset();
	sp_livemaps_begin(1ull << 30);
	return 0;
}

static size_t fill_table(size_t most)
{
	size_t n = 0;

	while (n < most) {
		const struct sp_span s = make_span(n);

		if (sp_livemaps_put(&s))
			break;
		n++;
	}
	return n;
}

static int cut_all(void)
{
	return sp_livemaps_cut(0, UINT64_MAX, UINT64_MAX);
}

TEST_BETWEEN(room, empty_table, NULL)
{
	const struct sp_span again = {
		.start = MIB, .end = MIB + MIB / 2, .number = UINT64_MAX};

	assert_int_equal(fill_table(SIZE_MAX), SP_LIVEMAPS_MAX);
	/* One in the place of another needs none. */
	assert_int_equal(sp_livemaps_put(&again), 0);
	sp_livemaps_reset();
	/* 1 MiB has 16 chunks. */
	sp_livemaps_begin(1 << 20);
	assert_int_equal(fill_table(SIZE_MAX), 512);
	/* The lower half of the one that falls in two stays. */
	assert_int_equal(
		sp_livemaps_cut(MIB + 0x10000, MIB + 0x20000, UINT64_MAX),
		-ENOSPC);
	assert_int_equal(cut_all(), 512);
	assert_false(sp_livemaps_any());
}

TEST_BETWEEN(numbers, empty_table, NULL)
{
	struct sp_span first, second;
	uint64_t before;

	assert_false(sp_livemaps_any());
	first = make_span(0);
	assert_int_equal(first.number, 1);
	assert_int_equal(sp_livemaps_put(&first), 0);
	assert_true(sp_livemaps_any());
	/* Unmapped, and mapped again by another thread before this one said
	 * so. */
	before = sp_livemaps_number();
	second = make_span(0);
	assert_int_equal(sp_livemaps_put(&second), 0);
	assert_int_equal(sp_livemaps_cut(first.start, first.end, before), 0);
	assert_true(sp_livemaps_any());
	assert_int_equal(
		sp_livemaps_cut(first.start, first.end, sp_livemaps_number()),
		1);
	assert_false(sp_livemaps_any());
}

/* ---- the model ---- */

/* What stands at each MiB: 0, or the number of its mapping. */
struct model {
	uint64_t numbers[UNITS];
};

static void assert_model(const struct model *m)
{
	struct sp_span s;
	uint64_t at = 0;

	for (unsigned int i = 0; i < UNITS; i++) {
		const int r = sp_livemaps_find((uint64_t)i * MIB,
					       (uint64_t)(i + 1) * MIB, 0, &s);

		assert_in_range(r, 0, 1);
		assert_int_equal(r ? s.number : 0, m->numbers[i]);
		if (r)
			at = s.end;
	}
	assert_int_equal(sp_livemaps_find(at, UINT64_MAX, 0, &s), 0);
}

static void model_put(struct model *m, unsigned int from, unsigned int n,
		      uint64_t number)
{
	for (unsigned int i = from; i < from + n; i++)
		m->numbers[i] = number;
}

static int put(struct model *m, unsigned int from, unsigned int n,
	       uint32_t flags)
{
	const struct sp_span s = {.start = (uint64_t)from * MIB,
				  .end = (uint64_t)(from + n) * MIB,
				  .number = sp_livemaps_number(),
				  .flags = flags};

	model_put(m, from, n, s.number);
	return sp_livemaps_put(&s);
}

static int cut(struct model *m, unsigned int from, unsigned int n)
{
	model_put(m, from, n, 0);
	return sp_livemaps_cut((uint64_t)from * MIB, (uint64_t)(from + n) * MIB,
			       sp_livemaps_number());
}

static void move(struct model *m, unsigned int from, unsigned int n,
		 unsigned int to)
{
	const uint64_t number = sp_livemaps_number();
	const struct sp_span s = {.start = (uint64_t)to * MIB,
				  .end = (uint64_t)(to + n) * MIB,
				  .number = sp_livemaps_number(),
				  .flags = SP_MAP_MOVED};
	bool was_there = false;

	for (unsigned int i = from; i < from + n; i++)
		was_there |= m->numbers[i] != 0;
	model_put(m, from, n, 0);
	if (was_there)
		model_put(m, to, n, s.number);
	assert_int_equal(sp_livemaps_move((uint64_t)from * MIB,
					  (uint64_t)(from + n) * MIB, number,
					  &s),
			 0);
}

/* What a thread does with pages of its own, [first, first + n). */
static void use_pages(struct model *m, struct sp_rng *rng, unsigned int first,
		      unsigned int n, unsigned int calls)
{
	for (unsigned int i = 0; i < calls; i++) {
		const uint64_t v = sp_rng_next(rng);
		const unsigned int from = (unsigned int)(v >> 8) % n;
		const unsigned int room = n - from < 4 ? n - from : 4;
		const unsigned int some = 1 + (unsigned int)(v >> 40) % room;
		const unsigned int to =
			(unsigned int)(v >> 44) % (n - some + 1);

		switch (v & 3) {
		case 0:
			assert_true(cut(m, first + from, some) != -EBUSY);
			break;
		case 1:
			/* mremap() refuses what overlaps. */
			if (to >= from + some || from >= to + some)
				move(m, first + from, some, first + to);
			break;
		default:
			assert_int_equal(put(m, first + from, some, 0), 0);
		}
	}
}

TEST_BETWEEN(as_an_array, empty_table, NULL)
{
	static struct model m;
	struct sp_rng rng;

	memset(&m, 0, sizeof(m));
	sp_rng_init(&rng, 71, 1);
	for (unsigned int i = 0; i < 100; i++) {
		use_pages(&m, &rng, 1, UNITS - 1, 100);
		assert_model(&m);
	}
	assert_int_equal(losses(), 0);
}

/* What has moved while another thread got its old place, and said so first. */
TEST_BETWEEN(moved_late, empty_table, NULL)
{
	static struct model m;
	struct sp_span s = {.start = 20 * MIB, .end = 21 * MIB};
	uint64_t call;

	memset(&m, 0, sizeof(m));
	put(&m, 10, 1, 0);
	call = sp_livemaps_number();
	put(&m, 10, 1, 0);
	s.number = sp_livemaps_number();
	assert_int_equal(sp_livemaps_move(10 * MIB, 11 * MIB, call, &s), 0);
	model_put(&m, 20, 1, s.number);
	assert_model(&m);
	/* What came and went later was not there; nor what was elsewhere. */
	put(&m, 10, 1, 0);
	s.number = sp_livemaps_number();
	s.start += 4 * MIB;
	s.end += 4 * MIB;
	assert_int_equal(sp_livemaps_move(10 * MIB, 11 * MIB, 1, &s), 0);
	assert_int_equal(sp_livemaps_move(11 * MIB, 12 * MIB, call, &s), 0);
	assert_model(&m);
}

/* Parts without access, and what is newer than the call. */
TEST_BETWEEN(opened, empty_table, NULL)
{
	static struct model m;
	struct sp_span all = {.start = 2 * MIB, .end = 20 * MIB}, s;

	memset(&m, 0, sizeof(m));
	put(&m, 1, 5, SP_MAP_NO_ACCESS);
	put(&m, 8, 2, 0);
	put(&m, 12, 3, SP_MAP_NO_ACCESS);
	all.number = sp_livemaps_number();
	put(&m, 16, 1, SP_MAP_NO_ACCESS);
	all.flags = SP_MAP_OPENED;
	assert_false(sp_livemaps_owes());
	assert_int_equal(sp_livemaps_open(&all), 0);
	assert_true(sp_livemaps_owes());
	model_put(&m, 2, 4, all.number);
	model_put(&m, 12, 3, all.number);
	assert_model(&m);
	assert_int_equal(sp_livemaps_find(0, UINT64_MAX, SP_MAP_OPENED, &s), 1);
	assert_int_equal(s.start, 2 * MIB);
	assert_int_equal(s.end, 6 * MIB);
	/* Both are written, and that is noted. */
	assert_true(livemaps_check_unwritten(&s));
	assert_int_equal(s.start, 2 * MIB);
	sp_livemaps_set_place(&s);
	assert_true(livemaps_check_unwritten(&s));
	assert_int_equal(s.start, 12 * MIB);
	sp_livemaps_set_place(&s);
	assert_false(livemaps_check_unwritten(&s));
	assert_false(sp_livemaps_owes());
	assert_model(&m);
}

/* ---- before each atomic operation ---- */

static unsigned int steps_left;
static void (*then)(void);
static struct model *shared;
static struct sp_rng nested_rng;

static void count_down(void)
{
	if (--steps_left)
		return;
	livemaps_check_step = NULL;
	then();
}

/* Calls with `fn` before operation `at`; false: they have not so many. */
static bool calls_with(void (*fn)(void), unsigned int at, struct sp_rng *rng)
{
	then = fn;
	steps_left = at;
	livemaps_check_step = count_down;
	use_pages(shared, rng, 1, 20, 20);
	livemaps_check_step = NULL;
	return steps_left == 0;
}

static void handle(void)
{
	use_pages(shared, &nested_rng, 30, 20, 100);
}

/* A handler's changes are never lost, and none that it interrupted is. */
TEST_BETWEEN(handlers, empty_table, NULL)
{
	static struct model m;
	const uint64_t before = losses();
	struct sp_rng rng;
	unsigned int at = 1;
	bool more = true;

	shared = &m;
	memset(&m, 0, sizeof(m));
	sp_rng_init(&nested_rng, 72, 2);
	for (uint64_t seed = 0; more; at++, seed++) {
		sp_rng_init(&rng, 73, seed);
		more = calls_with(handle, at, &rng);
		assert_model(&m);
	}
	assert_in_range(at, 60, 10000);
	assert_int_equal(losses(), before);
	assert_null(livemaps_check_holder());
}

static jmp_buf outside;

static void leave(void)
{
	handle();
	longjmp(outside, 1);
}

static bool leave_calls(unsigned int at, uint64_t seed)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 74, seed);
	if (setjmp(outside))
		return true;
	return calls_with(leave, at, &rng);
}

/* Who leaves with the table empties it, and that is counted; he leaves no cell
 * behind, and the next one has the table. */
TEST_BETWEEN(left, empty_table, NULL)
{
	static struct model m;
	unsigned int at = 1, emptied = 0;

	shared = &m;
	memset(&m, 0, sizeof(m));
	sp_rng_init(&nested_rng, 75, 2);
	for (uint64_t seed = 0; leave_calls(at, seed); at++, seed++) {
		const bool has_table = livemaps_check_holder() != NULL;
		uint64_t before = losses();

		sp_livemaps_give_left();
		emptied += has_table;
		assert_true(!has_table || losses() > before);
		assert_int_equal(livemaps_check_filling(), 0);
		cut_all();
		assert_null(livemaps_check_holder());
		assert_int_equal(livemaps_check_used(), 0);
		memset(&m, 0, sizeof(m));
		use_pages(&m, &nested_rng, 1, 100, 50);
		assert_model(&m);
	}
	assert_in_range(emptied, 30, 10000);
}

static void fork_here(void)
{
	sp_livemaps_reset();
	memset(shared, 0, sizeof(*shared));
	handle();
}

/* The child has what it mapped itself, also what it mapped in the handler that
 * forked; what was interrupted there goes on, and is the parent's. */
TEST_BETWEEN(forks_in_handlers, empty_table, NULL)
{
	static struct model m;
	struct sp_rng rng;
	unsigned int at = 1;
	bool more = true;

	shared = &m;
	sp_rng_init(&nested_rng, 76, 2);
	for (uint64_t seed = 0; more; at++, seed++) {
		memset(&m, 0, sizeof(m));
		sp_rng_init(&rng, 77, seed);
		use_pages(&m, &rng, 1, 200, 100);
		/* One call is interrupted. */
		then = fork_here;
		steps_left = at;
		livemaps_check_step = count_down;
		sp_livemaps_put(&(struct sp_span){.start = 210 * MIB,
						  .end = 211 * MIB,
						  .number = 1000000});
		livemaps_check_step = NULL;
		more = steps_left == 0;
		if (!more)
			break;
		assert_model(&m);
		empty_table(NULL);
	}
	assert_in_range(at, 8, 10000);
}

/* ---- threads ---- */

static sem_t is_asleep, may_go_on;

static void sleep_with_table(void)
{
	if (livemaps_check_holder() != &sp_thread)
		return;
	livemaps_check_step = NULL;
	sem_post(&is_asleep);
	sem_wait(&may_go_on);
}

static void *hold_table(void *arg)
{
	livemaps_check_step = sleep_with_table;
	assert_int_equal(put(arg, 1, 1, 0), 0);
	return NULL;
}

/* One thread sleeps with the table; this one changes it, and is not held up. */
TEST_BETWEEN(holder_asleep, empty_table, NULL)
{
	static struct model m;
	const uint64_t before = losses();
	struct sp_rng rng;
	struct sp_span s;
	pthread_t holder;

	memset(&m, 0, sizeof(m));
	sp_rng_init(&rng, 78, 1);
	sem_init(&is_asleep, 0, 0);
	sem_init(&may_go_on, 0, 0);
	assert_int_equal(pthread_create(&holder, NULL, hold_table, &m), 0);
	sem_wait(&is_asleep);
	use_pages(&m, &rng, 10, 200, 1000);
	assert_true(sp_livemaps_any());
	assert_int_equal(sp_livemaps_find(0, UINT64_MAX, 0, &s), -EAGAIN);
	assert_int_equal(sp_livemaps_cut(0, 1, UINT64_MAX), -EAGAIN);
	sem_post(&may_go_on);
	pthread_join(holder, NULL);
	assert_model(&m);
	assert_int_equal(losses(), before);
	sem_destroy(&is_asleep);
	sem_destroy(&may_go_on);
}

/* As many wait as can; what is beyond is refused, and not more. */
TEST_BETWEEN(too_many_wait, empty_table, NULL)
{
	static struct model m;
	pthread_t holder;

	memset(&m, 0, sizeof(m));
	sem_init(&is_asleep, 0, 0);
	sem_init(&may_go_on, 0, 0);
	assert_int_equal(pthread_create(&holder, NULL, hold_table, &m), 0);
	sem_wait(&is_asleep);
	for (unsigned int i = 0; i < SP_MAPQUEUE_MAX; i++)
		assert_int_equal(put(&m, 2 + i % 200, 1, 0), 0);
	assert_int_equal(sp_livemaps_cut(0, 1, UINT64_MAX), -EBUSY);
	sem_post(&may_go_on);
	pthread_join(holder, NULL);
	while (sp_mapqueue_any())
		cut(&m, 250, 1);
	assert_model(&m);
	sem_destroy(&is_asleep);
	sem_destroy(&may_go_on);
}

#define THREADS 4u

static struct model everyones;
static pthread_mutex_t baton = PTHREAD_MUTEX_INITIALIZER;
/* Else one that loses its processor with the table has too many wait. */
static pthread_barrier_t together;

/* Pages of its own, and some that go from hand to hand: as the kernel, which
 * hands them out again at once. */
static void *use_at_once(void *arg)
{
	const unsigned int number = (unsigned int)(uintptr_t)arg;
	struct sp_rng rng;

	sp_rng_init(&rng, 79, number);
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t ends;

		if (i % 20 == 0)
			pthread_barrier_wait(&together);
		use_pages(&everyones, &rng, 1 + 40 * number, 40, 4);
		pthread_mutex_lock(&baton);
		ends = sp_livemaps_number();
		model_put(&everyones, 200, 8, 0);
		pthread_mutex_unlock(&baton);
		/* Others have them by now, maybe. */
		assert_true(sp_livemaps_cut(200 * MIB, 208 * MIB, ends) !=
			    -EBUSY);
		pthread_mutex_lock(&baton);
		put(&everyones, 200 + i % 8, 1, 0);
		pthread_mutex_unlock(&baton);
	}
	return NULL;
}

TEST_BETWEEN(threads, empty_table, NULL)
{
	const uint64_t before = losses();
	pthread_t threads[THREADS];

	memset(&everyones, 0, sizeof(everyones));
	pthread_barrier_init(&together, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_at_once,
						(void *)i),
				 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&together);
	assert_model(&everyones);
	assert_int_equal(losses(), before);
	assert_false(sp_mapqueue_any());
}

TEST_MAIN(NULL, NULL)
