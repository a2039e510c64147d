/* SPDX-License-Identifier: MIT */
/* Orders from outside, also from somebody who means no good: each has its
 * answer, and none is carried out twice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/marks.h"
#include "agent/orders.h"
#include "agent/rate.h"
#include "agent/recorder.h"
#include "agent/thread.h"
#include "agent/writer.h"
#include "profile/profile.h"
#include "support/agent_fixture.h"

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
	sp_orders_poll(&sp_thread);
	assert_true(block->done == block->request);
	return block->result;
}

static const char *open_all(void)
{
	const char *path = agent_fixture_open(1 << 20);

	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, FIXTURE_PERIOD);
	sp_rate_init(&process.law, SP_LAW_EXPONENTIAL, true, 0);
	sp_recorder_init(&process);
	sp_marks_reset();
	sp_orders_reset();
	return path;
}

static void test_hostile(void **state)
{
	(void)state;
	open_all();
	assert_int_equal(ask(0, 0, 0, ""), ENOSYS);
	assert_int_equal(ask(UINT64_MAX, 0, 0, ""), ENOSYS);
	assert_int_equal(ask(SP_CONTROL_PERIOD, 0, 0, ""), EINVAL);
	assert_int_equal(ask(SP_CONTROL_PERIOD, (1ull << 40) + 1, 0, ""),
			 EINVAL);
	assert_int_equal(ask(SP_CONTROL_PERIOD, UINT64_MAX, 0, ""), EINVAL);
	assert_int_equal(ask(SP_CONTROL_MARK, 0, 65, ""), EINVAL);
	assert_int_equal(ask(SP_CONTROL_MARK, 0, UINT64_MAX, ""), EINVAL);
	assert_ptr_equal(sp_rate_law(), &process.law);
}

static void test_orders(void **state)
{
	struct sp_profile *p;
	struct sp_error err;
	const char *path = open_all();
	struct sp_control *block = sp_writer_control();

	(void)state;
	/* Without an order nothing happens. */
	sp_orders_poll(&sp_thread);
	assert_int_equal(block->done, 0);
	assert_int_equal(ask(SP_CONTROL_STOP, 0, 0, ""), 0);
	assert_ptr_equal(sp_rate_law(), &sp_rate_off);
	assert_int_equal(ask(SP_CONTROL_PERIOD, 65536, 0, ""), 0);
	assert_ptr_equal(sp_rate_law(), &sp_rate_off);
	assert_int_equal(ask(SP_CONTROL_START, 0, 0, ""), 0);
	assert_int_equal(sp_rate_law()->period_bytes, 65536);
	assert_int_equal(ask(SP_CONTROL_START, 0, 0, ""), 0);
	assert_int_equal(ask(SP_CONTROL_PERIOD, FIXTURE_PERIOD, 0, ""), 0);
	/* One law for each period. */
	assert_ptr_equal(sp_rate_law(), &process.law);
	assert_int_equal(ask(SP_CONTROL_MARK, 0, 4, "load"), 0);
	assert_int_equal(ask(SP_CONTROL_SNAPSHOT, 0, 64, ""), 0);
	sp_orders_poll(&sp_thread);
	assert_int_equal(sp_profile_load(path, NULL, NULL, &p, &err), 0);
	/* Period 4096, off, 65536, 4096, and then "load". */
	assert_int_equal(p->n_stretches, 5);
	assert_int_equal(p->stretches[1].period_bytes, 0);
	assert_int_equal(p->stretches[2].period_bytes, 65536);
	assert_string_equal(p->stretches[4].phase, "load");
	assert_int_equal(p->n_snapshots, 1);
	assert_int_equal(strlen(p->snapshots[0].name), 64);
	sp_profile_free(p);
	assert_true(agent_fixture_losses() == 0);
}

#define TEST(f) cmocka_unit_test_teardown(f, agent_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hostile),
		TEST(test_orders),
	};

	return cmocka_run_group_tests(tests, agent_fixture_begin,
				      agent_fixture_end);
}
