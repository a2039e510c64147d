/* SPDX-License-Identifier: MIT */
/* E21 against sums that are made for each point by itself. */
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "stats/estimate.h"
#include "stats/timeline.h"
#include "support/acc.h"
#include "support/close.h"
#include "support/live_profile.h"
#include "support/sanitized.h"
#include "support/test.h"

#define N(array)   (sizeof(array) / sizeof((array)[0]))
#define R0         4096u
#define POINTS_MAX 130

static const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL, 0};

static uint64_t below(struct sp_rng *rng, uint64_t limit)
{
	return sp_rng_next(rng) % limit;
}

/* Few different moments, so that births, frees and points coincide. */
static void add_random(struct live_profile *live, struct sp_rng *rng,
		       unsigned int n, uint64_t max_bytes)
{
	const uint64_t last = live->profile.duration_ns;

	while (n--) {
		const uint64_t born = below(rng, last + 1);
		const uint64_t freed = born + below(rng, last - born + 1);

		live_profile_add(live, born, below(rng, 4) ? freed : SP_NEVER,
				 1 + below(rng, max_bytes));
	}
}

static bool is_alive(const struct sp_sample *s, uint64_t time_ns)
{
	return s->born_ns <= time_ns && time_ns < s->freed_ns;
}

static void everything(struct sp_selection *selection)
{
	sp_selection_init(selection);
	assert_int_equal(selection->from_ns, 0);
	assert_true(selection->to_ns == SP_NEVER);
}

/* With period 1 every number is the truth, in integers. */
TEST(exact_at_period_1)
{
	static const size_t points[] = {2, 3, 7, 16, 33, 64, POINTS_MAX};
	struct sp_timeline_point out[POINTS_MAX];
	struct sp_selection selection;
	struct live_profile live;
	struct sp_rng rng;
	uint64_t alive = 0;

	everything(&selection);
	sp_rng_init(&rng, 1, 0);
	for (size_t i = 0; i < N(points); i++) {
		live_profile_init(&live, 1, 100);
		add_random(&live, &rng, 500, 1ull << 40);
		assert_int_equal(sp_timeline(&live.profile, &selection, &p3,
					     out, points[i], NULL),
				 0);
		for (size_t p = 0; p < points[i]; p++) {
			uint64_t bytes = 0, objects = 0;

			assert_int_equal(out[p].time_ns,
					 p * 100 / (points[i] - 1));
			for (size_t k = 0; k < live.profile.n_samples; k++) {
				const struct sp_sample *s =
					&live.profile.samples[k];

				if (!is_alive(s, out[p].time_ns))
					continue;
				bytes += s->size_bytes;
				objects++;
			}
			alive += objects;
			assert_int_equal(out[p].samples, objects);
			assert_true(out[p].live_bytes.value == (double)bytes);
			assert_true(out[p].live_bytes.lo == (double)bytes);
			assert_true(out[p].live_bytes.hi == (double)bytes);
			assert_true(out[p].live_objects.value ==
				    (double)objects);
			assert_true(out[p].live_objects.lo == (double)objects);
			assert_true(out[p].live_objects.hi == (double)objects);
		}
		live_profile_free(&live);
	}
	assert_true(alive > 10000);
}

/* As a row is estimated that has its samples (E41). */
static struct sp_interval bytes_of(const struct sp_acc *acc, double confidence)
{
	const struct sp_estimation how = {SP_METHOD_P3, confidence, NULL, 0};

	return sp_estimate_bytes(&how, &(struct sp_class_sums){.all = *acc});
}

static struct sp_interval objects_of(const struct sp_acc *acc,
				     double confidence)
{
	const struct sp_estimation how = {SP_METHOD_P3, confidence, NULL, 0};

	return sp_estimate_objects(&how, &(struct sp_class_sums){.all = *acc});
}

static void assert_same_interval(struct sp_interval a, struct sp_interval b,
				 double relative)
{
	assert_close(a.value, b.value, relative);
	assert_close(a.lo, b.lo, relative);
	assert_close(a.hi, b.hi, relative);
}

/* Sizes on both sides of the period, periods that change, and either law. */
TEST(estimates)
{
	static const double confidences[] = {0.9, 0.95, 0.999};
	struct sp_timeline_point out[POINTS_MAX];
	struct sp_selection selection;
	struct live_profile live;
	struct sp_rng rng;

	everything(&selection);
	sp_rng_init(&rng, 2, 0);
	for (unsigned int i = 0; i < 6; i++) {
		const double confidence = confidences[i / 2];
		const struct sp_estimation how = {SP_METHOD_P3, confidence,
						  NULL, 0};

		live_profile_init(&live, R0, 1000);
		live.profile.law.always_large = i % 2;
		add_random(&live, &rng, 300, 6 * R0);
		for (size_t k = 0; k < live.profile.n_samples; k += 3)
			live.profile.samples[k].period_bytes = 256;
		assert_int_equal(sp_timeline(&live.profile, &selection, &how,
					     out, 97, NULL),
				 0);
		for (size_t p = 0; p < 97; p++) {
			const struct sp_acc acc =
				acc_at(&live.profile, out[p].time_ns);

			assert_int_equal(out[p].samples, acc.samples);
			assert_same_interval(out[p].live_bytes,
					     bytes_of(&acc, confidence), 1e-9);
			assert_same_interval(out[p].live_objects,
					     objects_of(&acc, confidence),
					     1e-9);
		}
		live_profile_free(&live);
	}
}

/* What is gone leaves no trace, however large it was: a running sum that terms
 * are taken out of again would not know the small one any more. */
TEST(large_objects_leave_no_trace)
{
	struct sp_timeline_point out[5];
	struct sp_selection selection;
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_acc alone;

	everything(&selection);
	live_profile_init(&live, R0, 4);
	live_profile_add(&live, 0, SP_NEVER, 24);
	live_profile_add(&live, 1, 2, 1ull << 62)->period_bytes = 1ull << 40;
	live_profile_add(&live, 1, 3, 1ull << 50)->period_bytes = 1ull << 40;
	assert_int_equal(
		sp_timeline(&live.profile, &selection, &p3, out, 5, NULL), 0);
	alone = acc_at(&live.profile, 0);
	assert_int_equal(alone.samples, 1);
	assert_int_equal(out[1].samples, 3);
	assert_int_equal(out[2].samples, 2);
	assert_same_interval(out[0].live_bytes, bytes_of(&alone, 0.95), 0);
	assert_same_interval(out[3].live_bytes, out[0].live_bytes, 0);
	assert_same_interval(out[4].live_objects, out[0].live_objects, 0);
}

TEST(moments)
{
	struct sp_timeline_point out[4];
	struct sp_selection selection;
	FREED_BY(live_profile_free) struct live_profile live;

	everything(&selection);
	live_profile_init(&live, 1, 30);
	live_profile_add(&live, 10, 20, 100);     /* from its birth on */
	live_profile_add(&live, 20, 20, 1000);    /* never */
	live_profile_add(&live, 30, SP_NEVER, 1); /* at the end */
	live_profile_add(&live, 5, 30, 10);       /* not at the end any more */
	assert_int_equal(
		sp_timeline(&live.profile, &selection, &p3, out, 4, NULL), 0);
	assert_true(out[0].live_bytes.value == 0);
	assert_true(out[1].live_bytes.value == 110);
	assert_true(out[2].live_bytes.value == 10);
	assert_true(out[3].live_bytes.value == 1);
}

/* A selection says when the points begin and end, and who takes part. */
TEST(selection)
{
	struct sp_timeline_point out[3];
	struct sp_selection selection;
	FREED_BY(live_profile_free) struct live_profile live;

	everything(&selection);
	live_profile_init(&live, 1, 100);
	live_profile_add(&live, 9, SP_NEVER, 1);
	live_profile_add(&live, 10, SP_NEVER, 10);
	live_profile_add(&live, 12, SP_NEVER, 100);
	live_profile_add(&live, 20, SP_NEVER, 1000);
	selection.from_ns = 10;
	selection.to_ns = 21;
	selection.max_size_bytes = 100;
	/* without effect on births */
	selection.view = SP_VIEW_LIVE;
	selection.at_ns = 0;
	assert_int_equal(
		sp_timeline(&live.profile, &selection, &p3, out, 3, NULL), 0);
	assert_int_equal(out[0].time_ns, 10);
	assert_int_equal(out[1].time_ns, 15);
	assert_int_equal(out[2].time_ns, 21);
	assert_true(out[0].live_bytes.value == 10);
	assert_true(out[1].live_bytes.value == 110);
	assert_true(out[2].live_bytes.value == 110);
	/* nothing there, and no way back */
	selection.from_ns = 200;
	assert_int_equal(
		sp_timeline(&live.profile, &selection, &p3, out, 3, NULL), 0);
	assert_int_equal(out[0].time_ns, 200);
	assert_int_equal(out[2].time_ns, 200);
	assert_int_equal(out[1].samples, 0);
}

/* Times of a damaged clock do not overflow. */
TEST(longest_run)
{
	struct sp_timeline_point out[POINTS_MAX];
	struct sp_selection selection;
	FREED_BY(live_profile_free) struct live_profile live;

	everything(&selection);
	live_profile_init(&live, 1, UINT64_MAX - 1);
	live_profile_add(&live, UINT64_MAX / 2, SP_NEVER, 7);
	assert_int_equal(sp_timeline(&live.profile, &selection, &p3, out,
				     POINTS_MAX, NULL),
			 0);
	for (size_t p = 1; p < POINTS_MAX; p++)
		assert_true(out[p].time_ns > out[p - 1].time_ns);
	assert_true(out[POINTS_MAX - 1].time_ns == UINT64_MAX - 1);
	assert_true(out[0].live_bytes.value == 0);
	assert_true(out[POINTS_MAX - 1].live_bytes.value == 7);
}

/* Nothing sampled is a statement. */
TEST(empty)
{
	struct sp_timeline_point out[2];
	struct sp_selection selection;
	FREED_BY(live_profile_free) struct live_profile live;

	everything(&selection);
	live_profile_init(&live, R0, 10);
	assert_int_equal(
		sp_timeline(&live.profile, &selection, &p3, out, 2, NULL), 0);
	assert_true(out[1].live_bytes.lo == 0 && out[1].live_bytes.value == 0);
	assert_close(out[1].live_bytes.hi, R0 * log(40), 1e-12);
}

/* More points than there is memory for.  Sanitizers stop the program there. */
TEST(no_memory)
{
#if !SP_SANITIZED
	struct sp_timeline_point out[1];
	struct sp_selection selection;
	struct live_profile live;
	struct sp_error err = {.message = ""};

	everything(&selection);
	live_profile_init(&live, R0, 10);
	assert_int_equal(sp_timeline(&live.profile, &selection, &p3, out,
				     SIZE_MAX / 4, &err),
			 -ENOMEM);
	assert_string_not_equal(err.message, "");
#else
	skip();
#endif
}

TEST_MAIN(NULL, NULL)
