/* SPDX-License-Identifier: MIT */
/*
 * A forked child finds the live set empty: forks before each atomic operation
 * of an insert, a take and a growth, as a signal handler may.
 */
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/file/livetable.h"
#include "support/arch.h"
#include "support/liveset_ops.h"
#include "support/test.h"

static void assert_child(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void reset_child(void)
{
	sp_liveset_reset(++generation);
}

/* The child's own life; its parent's entries are gone. */
static bool child_is_right(uint64_t n, bool reset)
{
	struct liveset_check c;
	struct sp_live live, old;

	if (reset)
		reset_child();
	for (uint64_t i = 0; i < n; i++) {
		const void *p = pointer(address_of(i));

		if ((reset && sp_filter_may_have(p)) ||
		    sp_liveset_may_have(p) || sp_liveset_take(p, &live))
			return false;
	}
	generation = reset ? generation : 0;
	for (uint64_t i = 0; i < 2 * n; i++)
		if (insert(address_of(i), i + 7, &old) != SP_LIVESET_ADDED)
			return false;
	for (uint64_t i = 0; i < 2 * n; i += 2)
		if (!sp_liveset_take(pointer(address_of(i)), &live) ||
		    live.id != i + 7)
			return false;
	liveset_check(&c);
	return c.addresses == n && c.live == n && !c.wrong && !c.in_transit &&
	       !c.misplaced && (n < 500 || !c.unknown);
}

TEST_BETWEEN(fork, begin, end)
{
	static const uint64_t sizes[] = {1, 500, 30000};
	uint64_t n = 0;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (; n < sizes[s]; n++)
			add(address_of(n), n + 1);
		for (int reset = 0; reset < 2; reset++) {
			pid_t pid = fork();

			if (pid == 0)
				_exit(child_is_right(n, reset) ? 0 : 1);
			assert_child(pid);
		}
		assert_sound(n);
	}
	for (uint64_t i = 0; i < n; i++)
		assert_taken(address_of(i), i + 1);
}

/*
 * A signal handler forks in the middle of an insert, a take or a growth: here
 * before one atomic operation after another.  The child goes on where the
 * parent was interrupted; what it was doing has been about an address of its
 * parent's, and must leave nothing behind.
 */
static unsigned int steps_left;
static pid_t child; /* 0 in it */
static bool child_resets;

static void fork_at_step(void)
{
	if (--steps_left)
		return;
	liveset_check_step = NULL;
	/* Without the C library's handlers, which are not for this place. */
	child = (pid_t)TEST_FORK();
	if (child == 0 && child_resets)
		reset_child();
	else if (child == 0)
		generation = 0;
}

static bool child_of_handler_is_right(void)
{
	struct liveset_check c;

	liveset_check(&c);
	/* A counter may be left one too high, never too low. */
	if (c.addresses || c.live || c.busy || c.wrong > 2 || c.nonzero > 1 ||
	    c.sticky)
		return false;
	for (uint64_t i = 0; i < 1000; i++) {
		struct sp_live old;

		if (insert(address_of(i), i + 9, &old) != SP_LIVESET_ADDED)
			return false;
	}
	for (uint64_t i = 0; i < 1000; i++) {
		const void *p = pointer(address_of(i));
		struct sp_live live;

		if (!sp_filter_may_have(p) || !sp_liveset_take(p, &live) ||
		    live.id != i + 9)
			return false;
	}
	liveset_check(&c);
	return !c.addresses && !c.live && !c.in_transit && c.nonzero <= 1;
}

/* Fork before operation `at` of an insert and a take of one more address than
 * `others`, which are there; false: there are not so many operations. */
static bool fork_before(unsigned int at, uint64_t others)
{
	struct sp_live live = {0}, old;
	bool taken, inserted;

	steps_left = at;
	child = -1;
	liveset_check_step = fork_at_step;
	insert(address_of(others), others + 1, &old);
	inserted = child != 0;
	taken = sp_liveset_take(pointer(address_of(others)), &live);
	liveset_check_step = NULL;
	if (child == 0)
		_exit((!taken || (inserted && live.id == others + 1)) &&
				      child_of_handler_is_right()
			      ? 0
			      : 1);
	assert_true(taken);
	assert_sample(&live, others + 1);
	assert_sound(others);
	if (child > 0)
		assert_child(child);
	return child > 0;
}

static void begin_with(uint64_t others)
{
	liveset_check_clear();
	assert_true(sp_liveset_init());
	for (uint64_t i = 0; i < others; i++)
		add(address_of(i), i + 1);
}

TEST_BETWEEN(fork_in_signal_handler, begin, end)
{
	unsigned int n = 0;

	/* Also the insert that makes the filter grow, whose walk is long. */
	for (uint64_t others = 0; others <= 204; others += 204) {
		unsigned int at = 1;

		begin_with(others);
		while (fork_before(at, others)) {
			at += at < 120 ? 1 : 151;
			child_resets = ++n % 2;
			if (others)
				begin_with(others);
		}
	}
	assert_in_range(n, 60, 1000);
}

#define FILL 416u /* of the first table */

#define HELD 50u

static uint64_t n_grown;
/* Of frees in the child that are held up, their counters. */
static const uint8_t *held[HELD];

static void fork_and_grow_at_step(void)
{
	struct sp_live old;

	fork_at_step();
	if (child != 0)
		return;
	for (uint64_t i = 0; i < n_grown; i++) {
		insert(address_of(i), i + 9, &old);
		for (uint64_t k = 0; i == n_grown / 2 && k < HELD; k++)
			held[k] = sp_filter_counter(pointer(address_of(k)));
	}
}

static bool child_has_grown(uint64_t interrupted)
{
	unsigned int overwritten = 0;
	struct sp_live live;

	for (uint64_t i = 0; i < n_grown; i++) {
		const void *p = pointer(address_of(i));

		if (i == interrupted)
			continue;
		if (i<HELD && * held[i]> 127)
			return false;
		if (!sp_filter_may_have(p) || !sp_liveset_take(p, &live))
			return false;
		overwritten += live.id != i + 9;
	}
	return overwritten <= 1;
}

/* With so many others, before operation `at` of an insert; false: there are not
 * so many. */
static bool fork_and_grow(uint64_t others, unsigned int at)
{
	struct sp_live old;

	begin_with(others);
	steps_left = at;
	child = -1;
	child_resets = true;
	liveset_check_step = fork_and_grow_at_step;
	insert(address_of(others), 1, &old);
	liveset_check_step = NULL;
	if (child == 0)
		_exit(child_has_grown(others) ? 0 : 1);
	if (child > 0)
		assert_child(child);
	return child > 0;
}

/* The handler goes on in the child, and what it inserts there stays: also what
 * has the addresses that the parent was moving, in the second table, in the
 * third, and when the filter's memory that the parent was settling would go
 * back. */
TEST_BETWEEN(fork_and_grow_in_signal_handler, begin, end)
{
	unsigned int n = 0;

	/* The insert that begins a move goes on; the other ends it. */
	for (uint64_t more = 1; more <= 15; more += 14) {
		n_grown = 100;
		for (unsigned int at = 1; fork_and_grow(FILL + more, at); n++)
			at += 3;
		n_grown = 3000;
		for (unsigned int at = 1; fork_and_grow(FILL + more, at); n++)
			at += 5;
		n_grown = 6000;
		for (unsigned int at = 1; fork_and_grow(FILL + more, at); n++)
			at += 17;
	}
	assert_in_range(n, 100, 10000);
}

/* ---- the gap: the handler gets the very place that was claimed ---- */

#define WRONG_VALUES 2

static uint64_t alike; /* an address of the same home as the first */

static size_t home_of(uint64_t address)
{
	return sp_livetable_home(0, sp_livetable_hash(address));
}

static void fork_and_insert_alike_at_step(void)
{
	struct sp_live old;

	fork_at_step();
	if (child == 0)
		insert(alike, 77, &old);
}

/* What the child's handler has inserted is there, once; its values may be of
 * whom it was interrupted by. */
static int judge_same_place(void)
{
	const struct sp_live expected = sample(77);
	const void *p = pointer(alike);
	struct sp_live live = {0}, more;
	struct liveset_check c;

	if (!sp_filter_may_have(p) || !sp_liveset_may_have(p) ||
	    !sp_liveset_take(p, &live) || sp_liveset_take(p, &more))
		return 1;
	liveset_check(&c);
	if (c.addresses || c.live || c.busy || c.in_transit)
		return 1;
	return memcmp(&live, &expected, sizeof(live)) == 0 ? 0 : WRONG_VALUES;
}

/* Fork before operation `at` of an insert; -1: there are not so many.  Else how
 * the child has ended. */
static int fork_into_same_place(unsigned int at)
{
	struct sp_live old;
	int status;

	begin_with(0);
	steps_left = at;
	child = -1;
	child_resets = true;
	liveset_check_step = fork_and_insert_alike_at_step;
	insert(address_of(0), 1, &old);
	liveset_check_step = NULL;
	if (child == 0)
		_exit(judge_same_place());
	if (child < 0)
		return -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Only between the claim of the place and the store of its values, two words,
 * can they be wrong (docs/internals.md). */
TEST_BETWEEN(fork_into_same_place, begin, end)
{
	unsigned int n = 0, n_wrong = 0;
	uint64_t i = 1;

	while (home_of(address_of(i)) != home_of(address_of(0)))
		i++;
	alike = address_of(i);
	for (int r; (r = fork_into_same_place(n + 1)) >= 0; n++) {
		assert_true(r == 0 || r == WRONG_VALUES);
		n_wrong += r == WRONG_VALUES;
	}
	print_message("%u operations, before %u of them\n", n, n_wrong);
	assert_in_range(n, 20, 1000);
	assert_in_range(n_wrong, 1, 5);
}

/* A child that begins anew can tell a fork of its own. */
TEST_BETWEEN(fork_in_signal_handler_of_child, begin, end)
{
	bool all = true;
	pid_t pid = fork();

	if (pid) {
		assert_child(pid);
		return;
	}
	reset_child();
	child_resets = false;
	for (unsigned int at = 1; at < 30; at++)
		all &= fork_before(at, 0);
	_exit(all ? 0 : 1);
}

TEST_MAIN(NULL, NULL)
