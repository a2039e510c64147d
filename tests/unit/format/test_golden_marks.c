/* SPDX-License-Identifier: MIT */
/*
 * The same as unit.golden for tests/golden/v1-marks: phases, snapshots and
 * changes of the sampling, out of order, killed in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdlib.h>
#include <cmocka.h>

#include "model/profile.h"
#include "read/load.h"
#include "support/golden_maker.h"

#define GOLDEN SP_TESTS_DIR "/golden/v1-marks/"

static void test_killed(void **state)
{
	static const struct sp_stretch want[] = {
		{0, 0, 1000, "", 0, 15000, 150, 15000, 150, 0, 0, 0},
		{1000, 1000, 2000, "load", 0, 4000, 40, 4000, 40, 0, 0, 0},
		/* The thread that followed late. */
		{2000, 2000, 4000, "load", 2048, 51000, 510, 1000, 10, 0, 77,
		 0},
		{4000, 4000, SP_NEVER, "serve", 2048, 25000, 250, 0, 0, 0, 77,
		 0},
	};
	struct sp_profile *p = NULL;
	struct sp_error err;

	(void)state;
	if (sp_profile_load(GOLDEN "killed.sprof", NULL, NULL, &p, &err) != 0)
		fail_msg("%s", err.message);
	assert_int_equal(p->n_samples, 2);
	/* The header's period was never in force. */
	assert_int_equal(p->period_bytes, 2048);
	assert_int_equal(p->exact_alloc_bytes, 95000);
	assert_int_equal(p->exact_alloc_objects, 950);
	assert_int_equal(p->unsampled_bytes, 20000);
	assert_int_equal(p->unsampled_objects, 200);
	golden_check_stretches(p, want, 4);
	assert_int_equal(p->n_snapshots, 1);
	assert_string_equal(p->snapshots[0].name, "warm");
	assert_int_equal(p->snapshots[0].time_ns, 3000);
	assert_int_equal(p->snapshots[0].alloc_objects, 500);
	sp_profile_free(p);
}

static void test_encoder(void **state)
{
	static const char *const names[] = {"killed.sprof"};

	(void)state;
	golden_check_maker(SP_MAKER, GOLDEN, names, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_encoder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
