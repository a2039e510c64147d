/* SPDX-License-Identifier: MIT */
/*
 * A thread that leaves a record in the middle leaves no damage and blocks no
 * other thread.
 */
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/file/chunks.h"
#include "agent/thread/lease.h"
#include "agent/unwind/lane.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/test.h"

#define TIMES 300u /* more than there are tails */

static sigjmp_buf out;
static const char *unreadable;

static void jump(int signal_number)
{
	(void)signal_number;
	siglongjmp(out, 1);
}

static int begin(void **state)
{
	unreadable =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(unreadable != MAP_FAILED);
	return agent_fixture_begin(state);
}

static bool append_thread(struct sp_lane *lane, uint32_t index,
			  const char *name)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};

	r.u.thread = (struct sp_record_thread){index, 1, 1, name, 5};
	return sp_chunks_append(lane, &r);
}

/* The name cannot be read, so that a signal handler leaves the library in the
 * middle of the record. */
static void leave_thread(struct sp_lane *lane, uint32_t index)
{
	struct sigaction action = {.sa_handler = jump}, before;

	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	if (sigsetjmp(out, 1) == 0) {
		append_thread(lane, index, unreadable);
		fail();
	}
	sigaction(SIGSEGV, &before, NULL);
}

static void check_threads(const char *path, size_t n)
{
	struct sp_profile *p = load_whole_profile(path);
	size_t named = 0;

	for (size_t i = 0; i < p->n_thread_infos; i++)
		named += strcmp(p->thread_infos[i].name, "right") == 0;
	assert_int_equal(named, n);
}

/* For good: a thread goes on with the lane, or another takes it. */
static void leave_and_go_on(bool gives_lane)
{
	const char *path = agent_fixture_open(64 << 20);
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);

	for (uint32_t i = 1; i <= TIMES; i++) {
		leave_thread(lane, i);
		if (gives_lane) {
			sp_lane_give(lane);
			lane = sp_lane_take(&hint);
		}
		assert_true(append_thread(lane, i, "right"));
	}
	check_threads(path, TIMES);
}

TEST_BETWEEN(permanent, NULL, agent_fixture_teardown)
{
	leave_and_go_on(false);
}

TEST_BETWEEN(permanent_of_another, NULL, agent_fixture_teardown)
{
	leave_and_go_on(true);
}

/* Those of later threads are in the ring, where the lane has a chunk. */
TEST_BETWEEN(ring, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(64 << 20);
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);

	for (uint32_t i = 5001; i <= 5000 + TIMES; i++) {
		leave_thread(lane, i);
		/* As if he had left when the record was whole, and had not been
		 * passed yet. */
		lane->tail.state.hash++;
		lane->tail.is_writing = true;
		assert_true(append_thread(lane, i, "right"));
	}
	check_threads(path, TIMES);
}

/* A lease is one's own for its time, and then another's; who had it cannot
 * give that back. */
TEST(lease)
{
	const struct timespec ms = {0, 1000000};
	_Atomic uint64_t lease = 0;
	uint64_t first, second;

	first = sp_lease_take(&lease, UINT64_MAX);
	assert_true(first != 0);
	assert_true(sp_lease_take(&lease, UINT64_MAX) == 0);
	nanosleep(&ms, NULL);
	/* The two clocks need not run alike. */
	second = sp_lease_take(&lease, 500000);
	assert_true(second > first);
	sp_lease_give(&lease, first);
	assert_true(sp_lease_take(&lease, UINT64_MAX) == 0);
	sp_lease_give(&lease, second);
	assert_true(sp_lease_take(&lease, UINT64_MAX) != 0);
}

TEST_MAIN(begin, agent_fixture_end)
