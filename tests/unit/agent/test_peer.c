/* SPDX-License-Identifier: MIT */
/*
 * Walks by the private copy of libunwind are those by tables, frame by frame:
 * in stacks that differ in their middles, through signals, from several threads
 * and in signal handlers that come in the middle of another walk.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "agent/unwind/framewalk.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/peer.h"
#include "agent/unwind/stack_bounds.h"
#include "support/test.h"

#define DEPTH_MAX 400u
#define NOINLINE  __attribute__((noinline))

/* Walks that were libunwind's. */
static _Atomic unsigned int n_peers;

/* A copy of libunwind is in no object: what its frames are, tables do not know.
 * No sample begins in the middle of another one. */
static bool is_through_copy(const struct sp_walk *walk)
{
	for (unsigned int i = 0; i < walk->n; i++)
		if (!sp_modules_find((uintptr_t)walk->pcs[walk->first + i] - 1,
				     NULL))
			return true;
	return false;
}

static int NOINLINE look(void)
{
	const struct sp_call_frame *frame = SP_FRAME_HERE;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	bool is_cut = false, is_peer_cut;
	const struct sp_walk *tables, *peer;

	assert_non_null(lane);
	tables = sp_framewalk_tables(lane, frame, DEPTH_MAX, &is_cut);
	is_peer_cut = is_cut;
	peer = sp_peer_walk(lane, frame, DEPTH_MAX, tables, &is_peer_cut);
	if (is_through_copy(tables)) {
		sp_lane_give(lane);
		return 1;
	}
	assert_int_equal(is_peer_cut, is_cut);
	assert_int_equal(peer->n, tables->n);
	assert_memory_equal(peer->pcs + peer->first,
			    tables->pcs + tables->first,
			    tables->n * sizeof(void *));
	assert_memory_equal(&peer->hashes[peer->first],
			    &tables->hashes[tables->first],
			    sizeof(struct sp_walk_hash));
	n_peers += peer != tables;
	sp_lane_give(lane);
	return 1;
}

static int NOINLINE descend(unsigned int depth, int (*last)(void))
{
	volatile char pad[96];
	int ret;

	pad[depth % 96] = (char)depth;
	if (depth == 0)
		ret = last();
	else if (depth % 3 == 0)
		ret = descend(depth - 1, last) + pad[depth % 96];
	else
		ret = descend(depth - 1, last) - pad[depth % 96];
	return ret + pad[0];
}

TEST(same_as_tables)
{
	const unsigned int before = n_peers;

	for (unsigned int i = 0; i < 500; i++)
		descend(i, look);
	assert_int_equal(n_peers - before, 500);
}

static void handle(int number)
{
	(void)number;
	descend(3, look);
}

static int raise_here(void)
{
	return raise(SIGUSR1);
}

TEST(through_signals)
{
	const unsigned int before = n_peers;

	signal(SIGUSR1, handle);
	for (unsigned int i = 0; i < 50; i++)
		descend(i, raise_here);
	assert_int_equal(n_peers - before, 50);
}

static void check_alternate_stack(char *memory, size_t size)
{
	const stack_t stack = {.ss_sp = memory, .ss_size = size};
	const stack_t none = {.ss_flags = SS_DISABLE};
	const struct sigaction action = {.sa_handler = handle,
					 .sa_flags = SA_ONSTACK};
	const unsigned int before = n_peers;

	assert_int_equal(sigaltstack(&stack, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	descend(5, raise_here);
	assert_int_equal(n_peers, before);
	assert_int_equal(sigaltstack(&none, NULL), 0);
}

/* What runs there is left to the tables, also if that stack is in a frame of
 * the thread's own one. */
TEST(on_an_alternate_stack)
{
	static char memory[64 << 10];
	char within[sizeof(memory)];

	check_alternate_stack(memory, sizeof(memory));
	check_alternate_stack(within, sizeof(within));
}

static void *walk_much(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 300; i++)
		descend(i % 40, look);
	return NULL;
}

/* While a timer's handler walks, too. */
TEST(threads_and_timers)
{
	const struct itimerval often = {{0, 500}, {0, 500}},
			       never = {{0, 0}, {0, 0}};
	pthread_t threads[4];

	n_peers = 0;
	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, walk_much, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_true(n_peers >= 4 * 300);
}

/* A thread whose stack has little room: its walks may be either's. */
TEST(small_stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, 32 << 10), 0);
	assert_int_equal(pthread_create(&thread, &attributes, walk_much, NULL),
			 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
}

static int begin(void **state)
{
	const char *why;

	(void)state;
	sp_modules_init("/opt/program");
	sp_stack_bounds_init(environ, 0);
	why = sp_peer_init(SP_UNWIND_COPY, UINT64_MAX);
	if (why)
		fail_msg("%s %s", SP_UNWIND_COPY, why);
	return 0;
}

TEST_MAIN(begin, NULL)
