/* SPDX-License-Identifier: MIT */
/*
 * Orders from outside: impossible ones, everything twice, many at once, a stop
 * while the period changes, orders that were begun and left. Each has its
 * answer, and none is carried out twice.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/event/look.h"
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/event/remote.h"
#include "agent/file/writer.h"
#include "agent/process/period.h"
#include "agent/sys/next.h"
#include "agent/thread/thread.h"
#include "agent/unwind/lane.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/test.h"

static struct sp_process process = {.generation = 1};

static uint64_t ask(uint64_t command, uint64_t period_bytes,
		    uint64_t name_bytes, const char *name)
{
	struct sp_control *block = sp_writer_control();

	assert_non_null(block);
	block->command = command;
	block->period_bytes = period_bytes;
	block->name_bytes = name_bytes;
	memset(block->name, 'x', sizeof(block->name));
	memcpy(block->name, name, strlen(name));
	block->request++;
	sp_remote_poll(&sp_thread);
	assert_true(block->done == block->request);
	return block->result;
}

static const char *open_all(void)
{
	const char *path = agent_fixture_open(1 << 20);

	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, FIXTURE_PERIOD);
	sp_period_init(&process.law, SP_LAW_EXPONENTIAL, true, 0);
	sp_recorder_init(&process, sp_marks_complete);
	sp_marks_reset();
	sp_remote_reset();
	return path;
}

TEST_BETWEEN(hostile, NULL, agent_fixture_teardown)
{
	open_all();
	assert_int_equal(ask(0, 0, 0, ""), ENOSYS);
	assert_int_equal(ask(UINT64_MAX, 0, 0, ""), ENOSYS);
	assert_int_equal(ask(SP_CONTROL_PERIOD, 0, 0, ""), EINVAL);
	assert_int_equal(ask(SP_CONTROL_PERIOD, (1ull << 40) + 1, 0, ""),
			 EINVAL);
	assert_int_equal(ask(SP_CONTROL_PERIOD, UINT64_MAX, 0, ""), EINVAL);
	assert_int_equal(ask(SP_CONTROL_MARK, 0, 65, ""), EINVAL);
	assert_int_equal(ask(SP_CONTROL_MARK, 0, UINT64_MAX, ""), EINVAL);
	/* This malloc has no slabs. */
	assert_true(sp_next_resolve());
	assert_int_equal(ask(SP_CONTROL_SLABS, 0, 0, ""), EOPNOTSUPP);
	assert_ptr_equal(sp_period_law(), &process.law);
}

TEST_BETWEEN(remote, NULL, agent_fixture_teardown)
{
	struct sp_profile *p;
	const char *path = open_all();
	struct sp_control *block = sp_writer_control();

	/* Without an order nothing happens. */
	sp_remote_poll(&sp_thread);
	assert_int_equal(block->done, 0);
	assert_int_equal(ask(SP_CONTROL_STOP, 0, 0, ""), 0);
	assert_ptr_equal(sp_period_law(), &sp_period_off);
	assert_int_equal(ask(SP_CONTROL_PERIOD, 65536, 0, ""), 0);
	assert_ptr_equal(sp_period_law(), &sp_period_off);
	assert_int_equal(ask(SP_CONTROL_START, 0, 0, ""), 0);
	assert_int_equal(sp_period_law()->period_bytes, 65536);
	assert_int_equal(ask(SP_CONTROL_START, 0, 0, ""), 0);
	assert_int_equal(ask(SP_CONTROL_PERIOD, FIXTURE_PERIOD, 0, ""), 0);
	/* One law for each period. */
	assert_ptr_equal(sp_period_law(), &process.law);
	assert_int_equal(ask(SP_CONTROL_MARK, 0, 4, "load"), 0);
	assert_int_equal(ask(SP_CONTROL_SNAPSHOT, 0, 64, ""), 0);
	sp_remote_poll(&sp_thread);
	p = load_profile(path);
	/* Period 4096, off, 65536, 4096, and then "load". */
	assert_int_equal(p->n_stretches, 5);
	assert_int_equal(p->stretches[1].period_bytes, 0);
	assert_int_equal(p->stretches[2].period_bytes, 65536);
	assert_string_equal(p->stretches[4].phase, "load");
	assert_int_equal(p->n_snapshots, 1);
	assert_int_equal(strlen(p->snapshots[0].name), 64);
	assert_true(agent_fixture_losses() == 0);
}

/* ---- the queue ---- */

static void queue(uint64_t number, uint32_t command, const char *name)
{
	struct sp_control *block = sp_writer_control();
	struct sp_control_order *order =
		&block->queue[number % SP_FORMAT_ORDERS];

	*order = (struct sp_control_order){
		.number = number,
		.command = command,
		.name_bytes = (uint32_t)strlen(name),
		.result = 77,
	};
	memcpy(order->name, name, strlen(name));
	block->request = number;
}

/* What a process has slept through is carried out by its next event, each order
 * once and in turn; three times around. */
TEST_BETWEEN(queue, NULL, agent_fixture_teardown)
{
	const char *path = open_all();
	struct sp_control *block = sp_writer_control();
	uint64_t number = 0, time_ns = 0;
	struct sp_profile *p;

	assert_int_equal(block->orders, SP_FORMAT_ORDERS);
	for (int round = 0; round < 3; round++) {
		queue(++number, SP_CONTROL_STOP, "");
		queue(++number, SP_CONTROL_MARK, "load");
		queue(++number, 99, "");
		queue(++number, SP_CONTROL_SNAPSHOT, "here");
		queue(++number, SP_CONTROL_START, "");
		queue(++number, SP_CONTROL_MARK, "");
		assert_int_equal(block->done, number - 6);
		sp_remote_poll(&sp_thread);
		assert_int_equal(block->done, number);
		sp_remote_poll(&sp_thread);
		for (uint64_t n = number - 5; n <= number; n++) {
			const struct sp_control_order *order =
				&block->queue[n % SP_FORMAT_ORDERS];

			assert_int_equal(order->result,
					 n == number - 3 ? ENOSYS : 0);
			assert_true(order->time_ns >= time_ns);
			time_ns = order->time_ns;
		}
	}
	p = load_profile(path);
	assert_int_equal(p->n_snapshots, 3);
	assert_int_equal(p->n_stretches, 1 + 3 * 4);
	assert_string_equal(p->stretches[2].phase, "load");
	assert_int_equal(p->stretches[2].period_bytes, 0);
	assert_true(agent_fixture_losses() == 0);
}

/* A number that no controller gives: the last order alone, and not for ever. */
TEST_BETWEEN(number_far_away, NULL, agent_fixture_teardown)
{
	struct sp_control *block;

	open_all();
	block = sp_writer_control();
	queue(1, SP_CONTROL_STOP, "");
	queue(UINT64_MAX - 1, SP_CONTROL_START, "");
	sp_remote_poll(&sp_thread);
	assert_true(block->done == UINT64_MAX - 1);
	assert_ptr_equal(sp_period_law(), &process.law);
	/* Around the end of the numbers, too. */
	queue(UINT64_MAX, SP_CONTROL_STOP, "");
	queue(0, SP_CONTROL_MARK, "x");
	sp_remote_poll(&sp_thread);
	assert_int_equal(block->done, 0);
	assert_ptr_equal(sp_period_law(), &sp_period_off);
}

/* ---- looks at a peak ---- */

/* The socket of that name, which a thread listens on. */
static void *answer_one(void *fd)
{
	const int from = accept4(*(int *)fd, NULL, NULL, SOCK_CLOEXEC);

	return (void *)(intptr_t)(from >= 0 && close(from) == 0);
}

/* A look that fails does not count: it is tried again where memory is as
 * large, and there is no other before it grows by a twentieth. */
TEST_BETWEEN(peak_that_nobody_saw, NULL, agent_fixture_teardown)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int n = snprintf(process.config.run, sizeof(process.config.run),
			       "test-%d", getpid());
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pthread_t thread;
	void *was_asked;

	open_all();
	assert_true(sp_next_resolve());
	sp_look_reset();
	process.config.ledger = SP_CONFIG_LEDGER_PEAK;
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s%s",
		 SP_LOOK_PREFIX, process.config.run);
	sp_look_at_peak(&process, 100u << 20);
	assert_int_equal(
		bind(fd, (struct sockaddr *)&at,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				 sizeof(SP_LOOK_PREFIX) + (size_t)n)),
		0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer_one, &fd), 0);
	sp_look_at_peak(&process, 100u << 20);
	/* Whoever was not asked is not waited for. */
	shutdown(fd, SHUT_RDWR);
	pthread_join(thread, &was_asked);
	close(fd);
	assert_non_null(was_asked);
}

/* ---- stop beside a change of the period ---- */

enum { IDLE, STOPPING, CHANGING, LEAVING, LEFT };

static _Atomic int stage;
static sigjmp_buf outside;

bool __real_sp_recorder_mark(struct sp_thread *t,
			     const struct sp_record_mark *mark);
bool __wrap_sp_recorder_mark(struct sp_thread *t,
			     const struct sp_record_mark *mark);

/* While it is being stopped the other thread begins to change the period, and
 * has time to look at what is in force until now. */
bool __wrap_sp_recorder_mark(struct sp_thread *t,
			     const struct sp_record_mark *mark)
{
	const struct timespec moment = {0, 1000000};
	bool is_made;

	if (atomic_load(&stage) == STOPPING) {
		while (atomic_load(&stage) != CHANGING)
			sched_yield();
		nanosleep(&moment, NULL);
	}
	is_made = __real_sp_recorder_mark(t, mark);
	if (atomic_load(&stage) == LEAVING) {
		atomic_store(&stage, LEFT);
		siglongjmp(outside, 1);
	}
	return is_made;
}

/* A signal handler leaves the library after the mark was made, and before the
 * order was answered. */
static void leave_order(uint64_t number, uint32_t command, const char *name)
{
	queue(number, command, name);
	atomic_store(&stage, LEAVING);
	if (!sigsetjmp(outside, 0))
		sp_remote_poll(&sp_thread);
	assert_int_equal(atomic_exchange(&stage, IDLE), LEFT);
	sp_thread.writing = 0;
	sp_lane_give_left();
	sp_marks_give_left();
	sp_remote_give_left();
	sp_remote_poll(&sp_thread);
}

TEST_BETWEEN(left, NULL, agent_fixture_teardown)
{
	const char *path = open_all();
	const struct sp_control *block = sp_writer_control();
	struct sp_profile *p;

	leave_order(1, SP_CONTROL_MARK, "load");
	assert_int_equal(block->done, 1);
	assert_int_equal(block->queue[1].result, EINTR);
	leave_order(2, SP_CONTROL_STOP, "");
	assert_int_equal(block->done, 2);
	assert_int_equal(block->queue[2].result, 0);
	assert_ptr_equal(sp_period_law(), &sp_period_off);
	queue(3, SP_CONTROL_SNAPSHOT, "here");
	sp_remote_poll(&sp_thread);
	assert_int_equal(block->queue[3].result, 0);
	p = load_profile(path);
	assert_int_equal(p->n_stretches, 3);
	assert_string_equal(p->stretches[1].phase, "load");
	assert_int_equal(p->stretches[2].period_bytes, 0);
	assert_int_equal(p->n_snapshots, 1);
}

static void *change_period(void *arg)
{
	static _Thread_local struct sp_thread t;
	const uint64_t *period_bytes = arg;

	while (atomic_load(&stage) != STOPPING)
		sched_yield();
	atomic_store(&stage, CHANGING);
	sp_marks_sampling(&t, SP_MARKS_KEEP, *period_bytes);
	return NULL;
}

/* Whether it samples is for start and stop alone to say. */
TEST_BETWEEN(stop_is_kept, NULL, agent_fixture_teardown)
{
	open_all();
	for (uint64_t i = 1; i <= 20; i++) {
		uint64_t period_bytes = 1000 * i;
		pthread_t thread;

		sp_marks_sampling(&sp_thread, SP_MARKS_ON, 0);
		assert_int_equal(pthread_create(&thread, NULL, change_period,
						&period_bytes),
				 0);
		atomic_store(&stage, STOPPING);
		sp_marks_sampling(&sp_thread, SP_MARKS_OFF, 0);
		pthread_join(thread, NULL);
		atomic_store(&stage, IDLE);
		assert_ptr_equal(sp_period_law(), &sp_period_off);
	}
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
