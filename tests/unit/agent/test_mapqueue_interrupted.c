/* SPDX-License-Identifier: MIT */
/* A signal handler forks, or leaves by a jump, between any two atomic
 * operations of a thread that puts changes for the table of mappings, or takes
 * them. */
#include <setjmp.h>

#include "agent/thread/thread.h"
#include "support/test.h"

/* Between the atomic operations; NULL: nothing happens there. */
static void (*step)(void);

static void atomic_step(void)
{
	if (step)
		step();
}

#include "support/atomic_steps.h"

#include "agent/file/mapqueue.c"

#include "support/mapqueue_numbers.h"

_Thread_local struct sp_thread sp_thread;

static unsigned int steps_left;
static void (*handler)(void);

static void handle_at_step(void)
{
	if (--steps_left)
		return;
	step = NULL;
	handler();
}

static void begin_steps(void (*of)(void), unsigned int at)
{
	empty_queue(NULL);
	handler = of;
	steps_left = at;
}

static bool waits(void)
{
	for (unsigned int cell = 0; cell < atomic_load(&n_cells); cell++)
		if (atomic_load(state_of(cell)) & TICKET)
			return true;
	return false;
}

static bool had_waited;

static void fork_in_handler(void)
{
	had_waited = waits();
	sp_mapqueue_reset();
}

/* A signal handler forks while a change is put: in the child it waits if it did
 * not wait before. */
TEST_BETWEEN(forked_while_one_is_put, empty_queue, NULL)
{
	unsigned int at = 1, kept = 0;

	for (;; at++) {
		begin_steps(fork_in_handler, at);
		step = handle_at_step;
		assert_true(put(7));
		step = NULL;
		if (steps_left)
			break;
		sp_mapqueue_take(note);
		assert_in_order(7, had_waited ? 0 : 1);
		kept += !had_waited;
	}
	assert_in_range(kept, 5, at);
}

static bool is_forked;

/* The first change that is taken: its handler forks, and puts one. */
static void note_and_fork(const struct sp_mapchange *change)
{
	note(change);
	if (is_forked)
		return;
	is_forked = true;
	sp_mapqueue_reset();
	assert_true(put(100));
}

/* What the parent had put is not taken in the child, though the take that was
 * interrupted goes on there. */
TEST_BETWEEN(forked_while_some_are_taken, empty_queue, NULL)
{
	is_forked = false;
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(put(i));
	sp_mapqueue_take(note_and_fork);
	assert_in_order(1, 1);
	assert_true(sp_mapqueue_any());
	assert_true(sp_mapqueue_take(note));
	assert_in_order(100, 1);
}

static jmp_buf out;

static void leave(void)
{
	longjmp(out, 1);
}

/* Whoever leaves a take by a jump leaves what he did not get to; at most the
 * one that he was at comes again. */
TEST_BETWEEN(left_while_some_are_taken, empty_queue, NULL)
{
	static volatile unsigned int at;

	for (at = 1;; at++) {
		begin_steps(leave, at);
		for (uint64_t i = 0; i < 3; i++)
			assert_true(put(i));
		if (!setjmp(out)) {
			step = handle_at_step;
			sp_mapqueue_take(note);
			step = NULL;
			break;
		}
		sp_mapqueue_give_left();
		assert_true(n_taken == 3 || sp_mapqueue_any());
		if (sp_mapqueue_any())
			assert_true(sp_mapqueue_take(note));
		assert_in_range(n_taken, 3, 4);
		for (size_t i = 1; i < n_taken; i++)
			assert_in_range(taken[i] - taken[i - 1], 0, 1);
		assert_int_equal(taken[n_taken - 1], 2);
	}
	assert_in_order(0, 3);
	assert_in_range(at, 10, 1000);
}

/* Whoever leaves a put: it waits, or is told to be lost. */
TEST_BETWEEN(left_while_one_is_put, empty_queue, NULL)
{
	static volatile unsigned int at;

	for (at = 1;; at++) {
		unsigned int lost;

		begin_steps(leave, at);
		if (!setjmp(out)) {
			step = handle_at_step;
			put(0);
			step = NULL;
			break;
		}
		lost = sp_mapqueue_give_left();
		assert_int_equal(waits() + lost, waits() || lost);
		if (waits())
			assert_true(sp_mapqueue_any());
		while (!sp_mapqueue_take(note))
			;
		assert_in_range(n_taken + lost, 0, 1);
		assert_false(waits());
	}
	assert_in_range(at, 5, 1000);
}

TEST_MAIN(NULL, NULL)
