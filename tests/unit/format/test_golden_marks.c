/* SPDX-License-Identifier: MIT */
/*
 * The same as unit.golden for tests/format/golden/v1-marks: phases, snapshots
 * and changes of the sampling, out of order, killed in between.
 */
#include "support/golden_maker.h"
#include "support/load_profile.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1-marks/"

TEST(killed)
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
	struct sp_profile *p = load_profile(GOLDEN "killed.sprof");

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
}

TEST(encoder)
{
	static const char *const names[] = {"killed.sprof"};

	golden_check_maker(SP_MAKER, GOLDEN, names, 1);
}

TEST_MAIN(NULL, NULL)
