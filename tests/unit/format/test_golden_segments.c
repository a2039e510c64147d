/* SPDX-License-Identifier: MIT */
/*
 * The same as unit.golden for tests/format/golden/v1-segments: samples written
 * again, segments discarded, exact totals around the window.
 */
#include "stats/sums.h"
#include "support/golden_maker.h"
#include "support/load_profile.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1-segments/"

static struct sp_profile *load(const char *path)
{
	struct sp_profile *p = load_whole_profile(path);

	assert_int_equal(p->unfinished_records, 0);
	assert_int_equal(p->unmatched_frees, 0);
	return p;
}

static uint64_t count(const struct sp_profile *p, enum sp_view view,
		      uint64_t at_ns)
{
	struct sp_selection s;
	uint64_t n = 0;

	sp_selection_init(&s);
	s.view = view;
	s.at_ns = at_ns;
	for (size_t i = 0; i < p->n_samples; i++)
		n += sp_selection_has(&s, p, &p->samples[i]);
	return n;
}

TEST(samples)
{
	static const struct {
		uint64_t id, born_ns, freed_ns;
	} want[] = {
		{5, 2000, 6000},
		{7, 4500, SP_NEVER},
		{8, 5500, 7000},
		{9, 8500, 8600},
	};
	struct sp_profile *p = load(GOLDEN "bounded.sprof");

	assert_int_equal(p->n_samples, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(p->samples[i].id, want[i].id);
		assert_int_equal(p->samples[i].born_ns, want[i].born_ns);
		assert_true(p->samples[i].freed_ns == want[i].freed_ns);
	}
	/* 8 and 9 are of what was allocated since. */
	assert_int_equal(count(p, SP_VIEW_ALLOC, SP_NEVER), 2);
	assert_int_equal(count(p, SP_VIEW_LIVE, SP_NEVER), 1);
	assert_int_equal(count(p, SP_VIEW_LIVE, 5000), 2);
}

TEST(totals)
{
	static const struct sp_stretch want[] = {
		{0, 0, 4000, "", 4096, 40000, 400, 40000, 400, 39000, 0, 0},
		{4000, 4000, 5000, "serve", 4096, 20000, 200, 20000, 200, 20000,
		 5, 0},
		{5000, 5000, 8000, "serve", 4096, 20000, 200, 0, 0, 0, 5, 0},
		{8000, 8000, SP_NEVER, "late", 4096, 20000, 200, 0, 0, 0, 0, 0},
	};
	struct sp_profile *p = load(GOLDEN "bounded.sprof");

	assert_int_equal(p->window_ns, 5000);
	assert_int_equal(p->exact_alloc_bytes, 100000);
	assert_int_equal(p->unsampled_bytes, 60000);
	assert_int_equal(p->unsampled_objects, 600);
	/* The rest was unsampled by itself. */
	assert_int_equal(p->discarded_bytes, 59000);
	assert_int_equal(p->discarded_objects, 590);
	golden_check_stretches(p, want, 4);
}

TEST(whole)
{
	const struct sp_plan plan = {.confidence = 0.95};
	struct sp_profile *p = load(GOLDEN "whole.sprof");
	struct sp_error err;

	assert_int_equal(p->window_ns, 0);
	assert_int_equal(p->discarded_bytes, 0);
	assert_int_equal(p->n_samples, 1);
	assert_int_equal(p->samples[0].id, 1);
	assert_int_equal(p->samples[0].freed_ns, 2000);
	assert_int_equal(read_profile(GOLDEN "whole.sprof", &plan, &p, &err),
			 0);
	assert_int_equal(sp_profile_samples(p), 1);
	sp_profile_free(p);
}

TEST(encoder)
{
	static const char *const names[] = {"bounded.sprof", "whole.sprof"};

	golden_check_maker(SP_MAKER, GOLDEN, names, 2);
}

TEST_MAIN(NULL, NULL)
