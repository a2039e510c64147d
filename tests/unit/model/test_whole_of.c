/* SPDX-License-Identifier: MIT */
/*
 * What a profile lacks follows from what the file says, each kind by itself;
 * how many lost samples chance hides; and why live objects may be in no
 * sample.
 */
#include <math.h>

#include "model/whole.h"
#include "support/test.h"

static struct sp_profile profile_of(uint64_t samples, uint64_t period_bytes)
{
	return (struct sp_profile){.n_grouped = samples,
				   .period_bytes = period_bytes,
				   .has_frees = true,
				   .n_parts = 1};
}

TEST(whole)
{
	struct sp_profile p = profile_of(1000, 4096);
	struct sp_whole w = sp_whole_of(&p);

	assert_true(sp_whole_is_all(&w) && !sp_whole_peak_is_least(&w));
	assert_false(sp_whole_is_unknown_at(&w, SP_NEVER));
	assert_true(!w.is_full && !w.is_turned && !w.n_lacking);
	/* What was discarded is no lack of what is shown. */
	p.discarded_bytes = 1;
	w = sp_whole_of(&p);
	assert_true(sp_whole_is_all(&w) && sp_whole_peak_is_least(&w));
	assert_false(sp_whole_is_unknown_at(&w, SP_NEVER));
}

TEST(cut)
{
	struct sp_profile p = profile_of(1000, 4096);
	struct sp_whole w;

	p.end = SP_PROFILE_END_CLEAN;
	assert_true(sp_profile_is_exact(&p));
	p.is_cut = true;
	p.known_ns = 7;
	w = sp_whole_of(&p);
	assert_true(w.is_cut && w.is_damaged && !sp_whole_is_all(&w));
	assert_true(sp_whole_peak_is_least(&w));
	assert_false(sp_whole_is_unknown_at(&w, 7));
	assert_true(sp_whole_is_unknown_at(&w, 8));
	assert_true(sp_whole_is_unknown_at(&w, SP_NEVER));
	assert_false(sp_profile_is_exact(&p));
}

TEST(damaged)
{
	struct sp_profile p = profile_of(1000, 4096);
	struct sp_whole w;

	p.damaged_records = 1;
	w = sp_whole_of(&p);
	assert_true(w.is_damaged && !w.is_cut);
	assert_true(sp_whole_is_unknown_at(&w, 1));
	p.damaged_records = 0;
	p.ignored_bytes = 1;
	p.known_ns = 5;
	w = sp_whole_of(&p);
	assert_true(w.is_damaged && !sp_whole_is_all(&w));
	assert_int_equal(w.known_ns, 5);
}

/* The frees that are missing are those after it. */
TEST(full)
{
	struct sp_profile p = profile_of(1000, 1);
	struct sp_whole w;

	p.full_ns = 7;
	p.losses[SP_LOSS_FILE_FULL] = p.losses[SP_LOSS_FREE_DROPPED] = 9;
	w = sp_whole_of(&p);
	assert_true(w.is_full && w.is_starved && !sp_whole_is_all(&w));
	assert_int_equal(w.known_ns, 7);
	p.is_cut = true;
	p.known_ns = 3;
	w = sp_whole_of(&p);
	assert_int_equal(w.known_ns, 3);
	p.known_ns = 8;
	w = sp_whole_of(&p);
	assert_int_equal(w.known_ns, 7);
}

TEST(lost_frees)
{
	struct sp_profile p = profile_of(1000, 4096);
	struct sp_whole w;

	p.losses[SP_LOSS_LIVE_TABLE] = 4;
	w = sp_whole_of(&p);
	assert_true(w.lacks_frees && !w.is_starved && !sp_whole_is_all(&w));
	assert_int_equal(w.known_ns, 0);
	p.has_frees = false;
	w = sp_whole_of(&p);
	assert_true(sp_whole_is_all(&w));
}

/* Of each kind of loss: does it take samples, or frees? */
TEST(losses)
{
	static const bool is_sample[SP_LOSS_COUNT] = {
		[SP_LOSS_NO_LANE] = true,    [SP_LOSS_FILE_FULL] = true,
		[SP_LOSS_NO_FILE] = true,    [SP_LOSS_NESTED] = true,
		[SP_LOSS_UNRECORDED] = true,
	};
	static const bool is_free[SP_LOSS_COUNT] = {
		[SP_LOSS_LIVE_TABLE] = true,
		[SP_LOSS_FREE_DROPPED] = true,
		[SP_LOSS_UNRECORDED] = true,
	};

	for (int kind = 0; kind < SP_LOSS_COUNT; kind++) {
		struct sp_profile p = profile_of(1000, 1);
		struct sp_whole w;

		p.losses[kind] = 1;
		w = sp_whole_of(&p);
		assert_int_equal(sp_profile_lost_samples(&p), is_sample[kind]);
		assert_int_equal(w.is_starved, is_sample[kind]);
		assert_int_equal(w.lacks_frees, is_free[kind]);
		assert_int_equal(w.known_ns == 0, is_free[kind]);
		assert_int_equal(sp_whole_is_all(&w),
				 !is_sample[kind] && !is_free[kind]);
		assert_int_equal(sp_whole_peak_is_least(&w),
				 is_sample[kind] || is_free[kind]);
	}
}

/* What threads allocated after the end, or as they were killed, is in no sample
 * at period 1. */
TEST(uncounted)
{
	struct sp_profile p = profile_of(1000, 1);

	p.missing_bytes_max = 7;
	for (int end = 0; end <= SP_PROFILE_END_RUNNING; end++) {
		p.end = (enum sp_profile_end)end;
		assert_true(sp_whole_uncounted_bytes(&p) == 7);
	}
	p.missing_bytes_max = UINT64_MAX;
	assert_true(isinf(sp_whole_uncounted_bytes(&p)));
	p.period_bytes = 2;
	assert_true(sp_whole_uncounted_bytes(&p) == 0);
}

/* Each reason by itself is one. */
TEST(one_reason)
{
	for (int i = 0; i < 5; i++) {
		const struct sp_whole w = {.is_damaged = i == 1,
					   .is_full = i == 2,
					   .is_starved = i == 3,
					   .lacks_frees = i == 4};

		assert_int_equal(sp_whole_is_all(&w), !i);
		assert_int_equal(sp_whole_peak_is_least(&w), i > 0);
	}
}

/* Samples of live objects are kept as others are discarded: those that were
 * never taken are missing among them, and nothing tells how many. */
TEST(least)
{
	for (int i = 0; i < 8; i++) {
		const struct sp_whole w = {.is_turned = i & 1,
					   .is_starved = i & 2,
					   .known_ns = i & 4 ? 7 : SP_NEVER};

		assert_int_equal(sp_whole_is_least_at(&w, 7), (i & 3) == 3);
		assert_int_equal(sp_whole_is_least_at(&w, 8), i >= 3);
	}
}

/* Of several processes what is alive is that of those which are known. */
TEST(parts)
{
	struct sp_part parts[3] = {{.is_cut = true},
				   {.lost_ns = 7},
				   {.lost_ns = 9, .is_cut = true}};
	struct sp_profile p = profile_of(1000, 4096);
	struct sp_whole w;

	p.parts = parts;
	p.n_parts = 3;
	w = sp_whole_of(&p);
	assert_int_equal(w.n_parts, 3);
	assert_int_equal(w.n_lacking, 2);
	assert_int_equal(w.n_cut, 1);
	assert_true(w.has_rest);
	parts[0].lost_ns = 5;
	w = sp_whole_of(&p);
	assert_int_equal(w.n_lacking, 3);
	assert_int_equal(w.n_cut, 2);
	assert_false(w.has_rest);
	parts[0].lost_ns = parts[1].lost_ns = parts[2].lost_ns = 0;
	w = sp_whole_of(&p);
	assert_true(!w.n_lacking && !w.has_rest);
	/* One says it itself. */
	p.n_parts = 1;
	assert_int_equal(sp_whole_of(&p).n_lacking, 0);
	p.is_cut = true;
	w = sp_whole_of(&p);
	assert_true(w.n_lacking == 1 && !w.has_rest);
}

/* A thousandth, or a tenth of the square root, whichever is more. */
TEST(what_chance_hides)
{
	static const struct {
		uint64_t samples, most;
	} cases[] = {{0, 0},      {99, 0},
		     {100, 1},    {399, 1},
		     {400, 2},    {9999, 9},
		     {10000, 10}, {10999, 10},
		     {11000, 11}, {UINT64_MAX, UINT64_MAX / 1000}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sp_profile p = profile_of(cases[i].samples, 4096);

		assert_true(sp_whole_may_lack(&p, cases[i].most));
		assert_false(sp_whole_may_lack(&p, cases[i].most + 1));
		assert_false(sp_whole_may_lack(&p, UINT64_MAX));
		p.period_bytes = 1;
		assert_true(sp_whole_may_lack(&p, 0));
		assert_false(sp_whole_may_lack(&p, 1));
	}
}

TEST(unseen)
{
	struct sp_info infos[] = {{"forked", "1"}, {"attached.age_ms", "2"}};
	struct sp_part parts[2] = {{.unseen = SP_UNSEEN_NONE}};
	struct sp_profile p = profile_of(1000, 4096);

	assert_int_equal(sp_profile_unseen(&p), SP_UNSEEN_NONE);
	p.unsampled_bytes = p.discarded_bytes = 5;
	assert_int_equal(sp_profile_unseen(&p), SP_UNSEEN_NONE);
	p.unsampled_bytes = 6;
	assert_int_equal(sp_profile_unseen(&p), SP_UNSEEN_OFF);
	assert_int_equal(sp_profile_off_bytes(&p), 1);
	p.infos = &infos[1];
	p.n_infos = 1;
	assert_int_equal(sp_profile_unseen(&p), SP_UNSEEN_ATTACH);
	p.infos = infos;
	assert_int_equal(sp_profile_unseen(&p), SP_UNSEEN_FORK);
	/* Of several, one says it although not all do. */
	p.n_infos = 0;
	p.parts = parts;
	p.n_parts = 2;
	parts[1].unseen = SP_UNSEEN_ATTACH;
	assert_int_equal(sp_profile_unseen(&p), SP_UNSEEN_ATTACH);
}

TEST_MAIN(NULL, NULL)
