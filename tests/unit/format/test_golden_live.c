/* SPDX-License-Identifier: MIT */
/*
 * The same as unit.golden for tests/format/golden/v1-live: frees in any order,
 * totals by size class, resident memory.
 */

#include "model/profile.h"
#include "support/golden_maker.h"
#include "support/one_file.h"
#include "support/sums_of.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1-live/"
#define LENGTH (1u << 20) /* max_file_bytes in both headers */

TEST(exit)
{
	struct sp_profile *p = one_file_load(GOLDEN "exit.sprof", LENGTH);

	assert_int_equal(p->end, SP_PROFILE_END_CLEAN);
	assert_string_equal(p->damage, "");
	assert_string_equal(p->command, "app live");
	assert_true(p->law.always_large);
	assert_false(p->law.is_dotnet);
	assert_true(p->has_frees);
	assert_int_equal(p->unmatched_frees, 2);
	assert_int_equal(p->duration_ns, 1ull << 62);
	assert_int_equal(p->n_thread_infos, 2);
}

TEST(samples)
{
	static const struct sp_sample want[] = {
		/* id, born, freed, size, offset, period, age, stack, thread,
		 * freed by, part, entry, missed, half,
		 * temporary */
		{1, 1001000, 1009000, 100, 99, 4096, 0, 1, 0, 0, 0, 0, false, 0,
		 false},
		{2, 1002000, 1004500, 200, 199, 4096, 700, 0, 0, 0, 0, 0, false,
		 0, false},
		{3, 1003000, 1ull << 62, 300, 299, 4096, SP_UNKNOWN, 1, 0, 1, 0,
		 0, false, 0, false},
		{4, 1004000, 1004000, 400, 399, 4096, SP_UNKNOWN, 0, 0, 1, 0, 0,
		 false, 0, false},
		{5, 1005000, SP_NEVER, 500, 499, 4096, SP_UNKNOWN, 1, 0,
		 UINT32_MAX, 0, 0, false, 0, false},
		{6, 1006000, SP_NEVER, 600, 599, 4096, SP_UNKNOWN, 0, 0,
		 UINT32_MAX, 0, 0, false, 0, false},
		{10, 2000000, 2600000, 5000, 4999, 4096, SP_UNKNOWN, 0, 1,
		 UINT32_MAX, 0, 0, true, 0, false},
		{11, 2500000, SP_NEVER, 1ull << 40, (1ull << 40) - 1, 4096,
		 SP_UNKNOWN, 1, 1, UINT32_MAX, 0, 0, false, 0, false},
		{12, 4000000, 5000000, 18863, 18862, 4096, SP_UNKNOWN, 0, 1, 0,
		 0, 0, false, 0, false},
	};
	struct sp_profile *p = one_file_load(GOLDEN "exit.sprof", LENGTH);

	assert_int_equal(p->n_samples, 9);
	assert_int_equal(p->stacks[0].id, 1);
	assert_int_equal(p->thread_infos[0].index, 1);
	for (size_t i = 0; i < 9; i++) {
		const struct sp_sample *s = &p->samples[i];

		assert_int_equal(s->id, want[i].id);
		assert_int_equal(s->born_ns, want[i].born_ns);
		assert_int_equal(s->freed_ns, want[i].freed_ns);
		assert_int_equal(s->size_bytes, want[i].size_bytes);
		assert_int_equal(s->offset_bytes, want[i].offset_bytes);
		assert_int_equal(s->period_bytes, want[i].period_bytes);
		assert_int_equal(s->age_bytes, want[i].age_bytes);
		assert_int_equal(s->stack, want[i].stack);
		assert_int_equal(s->thread, want[i].thread);
		assert_int_equal(s->freed_by, want[i].freed_by);
		assert_int_equal(s->free_missed, want[i].free_missed);
	}
}

TEST(size_counts)
{
	struct sp_profile *p = one_file_load(GOLDEN "exit.sprof", LENGTH);

	assert_true(p->has_classes);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		uint64_t bytes = 16 * (i + 1), objects = 1;

		if (i == 0) {
			bytes += 2000;
			objects += 200;
		} else if (i == 63) {
			bytes += 10240;
			objects += 10;
		} else if (i == 251) {
			bytes += 1ull << 60;
			objects++;
		}
		assert_int_equal(p->classes[i].bytes, bytes);
		assert_int_equal(p->classes[i].objects, objects);
	}
	assert_int_equal(p->exact_alloc_bytes, 111 + 2000 + 10240 +
						       (1ull << 60) +
						       16 * 252 * 253 / 2);
	/* What slot 0 has is in no class. */
	assert_int_equal(p->class_slack_bytes, 111);
}

TEST(rss)
{
	struct sp_profile *p = one_file_load(GOLDEN "exit.sprof", LENGTH);

	assert_int_equal(p->n_rss, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(p->rss[i].time_ns, 1000000 * (i + 1));
	assert_int_equal(p->rss[0].rss_bytes, 10 << 20);
	assert_int_equal(p->rss[1].rss_bytes, 1ull << 50);
	assert_int_equal(p->rss[2].rss_bytes, 12 << 20);
}

/* The law is that of the flags: at 18863 bytes a sample is certain. */
TEST(law)
{
	struct sp_profile *p = one_file_load(GOLDEN "exit.sprof", LENGTH);
	struct sp_sums *sums = sums_of(p);

	assert_int_equal(sums->all.all.samples, 9);
	assert_int_equal(sums->all.all.sure_samples, 2);
	assert_int_equal(sums->all.all.sure_bytes, 18863 + (1ull << 40));
	sp_sums_free(sums, p);
	p = one_file_load(GOLDEN "killed.sprof", LENGTH);
	sums = sums_of(p);
	assert_int_equal(sums->all.all.samples, 2);
	assert_int_equal(sums->all.all.dotnet_samples, 2);
	assert_int_equal(sums->all.all.sure_samples, 0);
	sp_sums_free(sums, p);
}

TEST(killed)
{
	struct sp_profile *p = one_file_load(GOLDEN "killed.sprof", LENGTH);

	assert_int_equal(p->end, SP_PROFILE_END_KILLED);
	assert_true(p->law.is_dotnet);
	assert_false(p->law.always_large);
	assert_int_equal(p->unfinished_records, 2);
	assert_int_equal(p->damaged_records, 0);
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0].freed_ns, 6500000);
	assert_int_equal(p->samples[0].age_bytes, 60000);
	assert_int_equal(p->samples[1].freed_ns, SP_NEVER);
	assert_int_equal(p->unmatched_frees, 0);
	assert_true(p->has_classes);
	assert_int_equal(p->classes[5].bytes, 6000);
	assert_int_equal(p->classes[5].objects, 30);
	/* Its samples add up to that: more than it has published, and more
	 * than it may have held back. */
	assert_int_equal(p->exact_alloc_bytes, 65000);
	assert_int_equal(p->missing_bytes_max, 0);
	assert_int_equal(p->class_slack_bytes, 65000 - 6000);
}

TEST(encoder)
{
	static const char *const names[] = {"exit.sprof", "killed.sprof"};

	golden_check_maker(SP_MAKER, GOLDEN, names, 2);
}

TEST_MAIN(one_file_open, one_file_close)
