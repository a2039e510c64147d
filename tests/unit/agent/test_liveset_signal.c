/* SPDX-License-Identifier: MIT */
/*
 * A signal handler uses the live set, or leaves for good, before each atomic
 * operation of an insert that moves entries to a larger table.  At the end, two
 * threads: one moves while an insert of the other is asleep.
 */
#include <pthread.h>
#include <semaphore.h>

#include "agent/file/livetable.h"
#include "support/liveset_ops.h"
#include "support/test.h"

#define FILL  416u       /* of the first table */
#define MOVES (FILL + 5) /* with so many there, the next insert moves */

static unsigned int steps_left;
static void (*handler)(void);
static uint64_t n_there; /* addresses 0 to n_there - 1 */

static void handle_at_step(void)
{
	if (--steps_left)
		return;
	liveset_check_step = NULL;
	handler();
}

/* An insert, with the handler before operation `at`; false: there are not so
 * many. */
static bool insert_with(void (*of)(void), unsigned int at, uint64_t i)
{
	struct sp_live old;

	handler = of;
	steps_left = at;
	liveset_check_step = handle_at_step;
	insert(address_of(i), i + 1, &old);
	liveset_check_step = NULL;
	return steps_left == 0;
}

static unsigned int step_after(unsigned int at)
{
	return at + (at < 400 ? 1 : 7);
}

/* The next insert moves: the first buckets, or some behind those. */
static void begin_with(void **test_state, uint64_t n)
{
	begin(test_state);
	for (uint64_t i = 0; i < n; i++)
		add(address_of(i), i + 1);
	n_there = n;
}

static void take_all(void)
{
	for (uint64_t i = 0; i < n_there; i++)
		assert_taken(address_of(i), i + 1);
}

/* What a handler takes is there once, wherever the mover has it. */
TEST_BETWEEN(takes_in_between, NULL, end)
{
	unsigned int n = 0;

	for (uint64_t more = 0; more <= 4; more += 2) {
		for (unsigned int at = 1;; at = step_after(at), n++) {
			begin_with(test_state, MOVES + more - 1);
			if (!insert_with(take_all, at, n_there))
				break;
			for (uint64_t i = 0; i < n_there; i++)
				assert_absent(address_of(i));
			assert_sound(1);
			assert_taken(address_of(n_there), n_there + 1);
			assert_int_equal(assert_sound(0).nonzero, 0);
		}
	}
	assert_in_range(n, 1000, 100000);
}

static void add_some(void)
{
	for (uint64_t i = 0; i < 100; i++)
		add(address_of(10000 + i), 10001 + i);
}

/* What it inserts stays, while it cannot move. */
TEST_BETWEEN(inserts_in_between, NULL, end)
{
	for (unsigned int at = 1;; at = step_after(at)) {
		begin_with(test_state, MOVES);
		if (!insert_with(add_some, at, n_there))
			break;
		n_there++;
		assert_sound(n_there + 100);
		take_all();
		for (uint64_t i = 0; i < 100; i++)
			assert_taken(address_of(10000 + i), 10001 + i);
		assert_sound(0);
	}
}

/* What it inserts and takes again is found by the filter meanwhile. */
static void add_and_take(void)
{
	for (uint64_t i = 0; i < 3; i++)
		add(address_of(20000 + i), 20001 + i);
	for (uint64_t i = 0; i < 3; i++)
		assert_taken(address_of(20000 + i), 20001 + i);
}

/* The insert that empties the first table is one of the last of these. */
TEST_BETWEEN(comes_and_goes_in_between, NULL, end)
{
	for (uint64_t more = 13; more <= 17; more++) {
		for (unsigned int at = 1;; at = step_after(at)) {
			begin_with(test_state, MOVES + more);
			if (!insert_with(add_and_take, at, n_there))
				break;
			n_there++;
			assert_sound(n_there);
			take_all();
			assert_sound(0);
		}
	}
}

#define SECOND_FILL 1664u

static uint64_t n_grown;

/* Until some of the second table has been moved. */
static void grow_twice(void)
{
	for (uint64_t i = n_there + 1; i < n_grown; i++)
		add(address_of(i), i + 1);
}

/* The insert comes too late for its bucket, or just not. */
TEST_BETWEEN(growth_in_between, NULL, end)
{
	unsigned int tables = 0, n = 0;

	for (uint64_t more = 1; more <= 48; more += 2) {
		for (unsigned int at = 1 + more % 3; at < 48; at += 3, n++) {
			begin_with(test_state, MOVES);
			n_grown = SECOND_FILL + 5 + more;
			assert_true(insert_with(grow_twice, at, n_there));
			n_there = n_grown;
			tables += assert_sound(n_there).tables;
			take_all();
			assert_int_equal(assert_sound(0).nonzero, 0);
		}
	}
	assert_in_range(tables, n, 3 * n);
}

static jmp_buf outside;

static void leave(void)
{
	longjmp(outside, 1);
}

/* Leave an insert before operation `at`; false: there are not so many. */
static bool leave_insert(unsigned int at)
{
	if (setjmp(outside))
		return true;
	return insert_with(leave, at, n_there);
}

/* Others go on, and the next moves clear up. */
static void assert_others_go_on(uint64_t from, uint64_t until)
{
	struct liveset_check c;
	struct sp_live live;

	sp_liveset_take(pointer(address_of(n_there)), &live);
	for (uint64_t i = from; i < until; i++)
		add(address_of(i), i + 1);
	for (uint64_t i = 0; i < until; i++)
		if (i != n_there)
			assert_taken(address_of(i), i + 1);
	liveset_check(&c);
	assert_int_equal(c.addresses, 0);
	assert_int_equal(c.tables, 1);
	assert_int_equal(c.in_transit + c.busy, 0);
}

TEST_BETWEEN(left, NULL, end)
{
	unsigned int at = 1;

	for (; begin_with(test_state, MOVES), leave_insert(at);
	     at = step_after(at)) {
		sp_liveset_give_left();
		assert_others_go_on(n_there + 1, 2000);
		liveset_check_clear();
	}
	assert_in_range(at, 400, 100000);
}

/* Who moves after one that has left a COPY, before the word was MOVED, is
 * interrupted in turn: what the handler takes is there once. */
TEST_BETWEEN(takes_after_left, NULL, end)
{
	unsigned int n = 0;

	for (unsigned int left_at = 1; n < 2000; left_at++) {
		struct liveset_check c;
		unsigned int at = 1;
		bool more = true;

		for (; more; at = step_after(at), n++) {
			begin_with(test_state, MOVES);
			assert_true(leave_insert(left_at));
			sp_liveset_give_left();
			liveset_check(&c);
			if (c.in_transit != 1 || c.addresses <= n_there)
				break;
			more = insert_with(take_all, at, n_there + 1);
			if (!more)
				break;
			for (uint64_t i = 0; i < n_there; i++)
				assert_absent(address_of(i));
		}
	}
}

/* Whoever left does not come back to give back the lock: nothing moves, there
 * are more and more tables, and nothing is lost. */
TEST_BETWEEN(left_for_good, NULL, end)
{
	for (unsigned int at = 600; at < 1000; at += 37) {
		struct liveset_check c;

		begin_with(test_state, MOVES);
		assert_true(leave_insert(at));
		for (uint64_t i = n_there + 1; i < 40000; i++)
			add(address_of(i), i + 1);
		liveset_check(&c);
		assert_in_range(c.tables, 14, 16);
		sp_liveset_give_left();
		assert_others_go_on(40000, 70000);
	}
}

/* A free may have found its counter and be held up while the filter grows: it
 * does not learn there that what is in the set is not, though the memory is
 * back at the kernel, and an insert that is held up, too, counts there. */
TEST_BETWEEN(older_counters, begin, end)
{
	uint64_t n = 1;
	const uint8_t *at;

	add(address_of(0), 1);
	at = sp_filter_counter(pointer(address_of(0)));
	assert_in_range(*at, 1, 127);
	for (; n < 3000; n++) {
		add(address_of(n), n + 1);
		assert_in_range(*at, 0, 127);
	}
	assert_ptr_not_equal(sp_filter_counter(pointer(address_of(0))), at);
	assert_int_equal(*at, 0);
	sp_filter_adjust(0, address_of(0), 1);
	assert_in_range(*at, 1, 127);
	for (; n < 50000; n++)
		add(address_of(n), n + 1);
	assert_in_range(*at, 1, 127);
	sp_filter_adjust(0, address_of(0), -1);
	assert_in_range(*at, 0, 127);
	sp_filter_adjust(0, address_of(0), -1);
	assert_in_range(*at, 0, 127);
	assert_taken(address_of(0), 1);
}

/*
 * Two threads are asleep at once: an insert, somewhere, and then one that moves
 * the first buckets, somewhere.  The first goes on to its end, then the other.
 * If the mover announced its buckets after it has read the words (I4), the
 * insert would leave its word in a table that is given up.
 */
#define LATE 1000000u /* what is inserted late; the first i that is tried */

static sem_t to_insert, to_mover;
static unsigned int mover_at, mover_inserts;
static bool mover_slept;

static void insert_sleeps(void)
{
	if (--steps_left)
		return;
	liveset_check_step = NULL;
	sem_post(&to_mover);
	sem_wait(&to_insert);
}

static void mover_sleeps(void)
{
	if (--steps_left)
		return;
	liveset_check_step = NULL;
	mover_slept = true;
	sem_post(&to_insert);
	sem_wait(&to_mover);
}

static void *move_at_step(void *unused)
{
	struct sp_live old;

	sem_wait(&to_mover);
	for (unsigned int i = 1; i < mover_inserts; i++, n_there++)
		insert(address_of(n_there), n_there + 1, &old);
	steps_left = mover_at;
	liveset_check_step = mover_sleeps;
	insert(address_of(n_there), n_there + 1, &old);
	liveset_check_step = NULL;
	n_there++;
	if (!mover_slept)
		sem_post(&to_insert);
	return unused;
}

/* An address whose home is among the first buckets of the first table, and has
 * room. */
static uint64_t late_one(void)
{
	for (uint64_t i = LATE;; i++) {
		struct sp_liveplace p;

		sp_livetable_begin(&p, 0, sp_livetable_hash(address_of(i)));
		if (p.bucket - sp_livetable_first(0) >= 2)
			continue;
		for (; p.slot < SP_LIVETABLE_SLOTS; p.slot++)
			if (sp_livetable_content(&p) == SP_LIVEWORD_EMPTY)
				return i;
	}
}

/* False: the mover has not so many operations. */
static bool insert_beside_mover(unsigned int insert_at, uint64_t late)
{
	pthread_t mover;
	struct sp_live old;

	mover_slept = false;
	assert_int_equal(sem_init(&to_insert, 0, 0), 0);
	assert_int_equal(sem_init(&to_mover, 0, 0), 0);
	assert_int_equal(pthread_create(&mover, NULL, move_at_step, NULL), 0);
	steps_left = insert_at;
	liveset_check_step = insert_sleeps;
	assert_int_equal(insert(address_of(late), late + 1, &old),
			 SP_LIVESET_ADDED);
	assert_null(liveset_check_step); /* it has slept */
	sem_post(&to_mover);
	assert_int_equal(pthread_join(mover, NULL), 0);
	sem_destroy(&to_insert);
	sem_destroy(&to_mover);
	return mover_slept;
}

TEST_BETWEEN(inserts_beside_a_mover, NULL, end)
{
	uint64_t late;

	mover_inserts = 4; /* the last of these moves */
	for (unsigned int insert_at = 1; insert_at < 30; insert_at += 2) {
		bool more = true;

		for (mover_at = 1; more; mover_at += mover_at < 60 ? 7 : 31) {
			begin_with(test_state, FILL - 1);
			late = late_one();
			more = insert_beside_mover(insert_at, late);
			assert_sound(n_there + 1);
			for (; n_there < 700; n_there++)
				add(address_of(n_there), n_there + 1);
			assert_taken(address_of(late), late + 1);
			take_all();
			assert_sound(0);
		}
		assert_in_range(mover_at, 1000, 100000); /* it has moved */
	}
}

TEST_MAIN(NULL, NULL)
