/* SPDX-License-Identifier: MIT */
/* The profiles in tests/format/golden/v1-addresses: as test_golden.c for frees
 * that have the address of their object. */
#include "model/profile.h"
#include "support/golden_maker.h"
#include "support/one_file.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1-addresses/"
#define LENGTH (1u << 20) /* max_file_bytes in both headers */
#define NOBODY UINT32_MAX
#define N      12u

struct end {
	uint64_t id, born_ns, freed_ns, age_bytes;
	uint32_t thread, freed_by;
	bool missed;
};

TEST(samples)
{
	static const struct end want[N] = {
		{1, 2000, 4000, 200, 0, 0, false},
		{2, 3000, 20000, SP_UNKNOWN, 0, NOBODY, false},
		{3, 5000, 5500, SP_UNKNOWN, 0, 1, false},
		{4, 6000, 7000, SP_UNKNOWN, 0, NOBODY, true},
		{5, 7000, 8000, 0, 0, 0, false},
		{6, 8000, SP_NEVER, SP_UNKNOWN, 0, NOBODY, false},
		{7, 9000, SP_NEVER, SP_UNKNOWN, 0, NOBODY, false},
		{8, 9500, 9600, SP_UNKNOWN, 1, 0, false},
		{10, 10000, 10500, 1100, 1, 1, false},
		{11, 10100, SP_NEVER, SP_UNKNOWN, 1, NOBODY, false},
		{12, 12000, 14000, SP_UNKNOWN, 1, 1, false},
		{13, 13000, SP_NEVER, SP_UNKNOWN, 1, NOBODY, false},
	};
	struct sp_profile *p = one_file_load(GOLDEN "exit.sprof", LENGTH);

	assert_string_equal(p->damage, "");
	assert_true(p->has_frees);
	/* A free of no sample is no loss here. */
	assert_int_equal(p->unmatched_frees, 0);
	assert_int_equal(p->n_samples, N);
	for (size_t i = 0; i < N; i++) {
		const struct sp_sample *s = &p->samples[i];

		assert_int_equal(s->id, want[i].id);
		assert_int_equal(s->born_ns, want[i].born_ns);
		assert_int_equal(s->freed_ns, want[i].freed_ns);
		assert_int_equal(s->size_bytes, 100 * want[i].id);
		assert_int_equal(s->age_bytes, want[i].age_bytes);
		assert_int_equal(s->thread, want[i].thread);
		assert_int_equal(s->freed_by, want[i].freed_by);
		assert_int_equal(s->free_missed, want[i].missed);
		assert_int_equal(s->period_bytes, s->id < 12 ? 1 : 4096);
	}
}

TEST(killed)
{
	struct sp_profile *p = one_file_load(GOLDEN "killed.sprof", LENGTH);

	assert_int_equal(p->end, SP_PROFILE_END_KILLED);
	assert_int_equal(p->unfinished_records, 1);
	assert_int_equal(p->damaged_records, 0);
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0].freed_ns, 4000);
	assert_int_equal(p->samples[0].age_bytes, 200);
	assert_int_equal(p->samples[1].freed_ns, SP_NEVER);
}

TEST(encoder)
{
	static const char *const names[] = {"exit.sprof", "killed.sprof"};

	golden_check_maker(SP_MAKER, GOLDEN, names, 2);
}

TEST_MAIN(one_file_open, one_file_close)
