/* SPDX-License-Identifier: MIT */
/* E26 against Kaplan and Meier's formula in fractions, and a published table.
 */

#include "base/rng.h"
#include "stats/lifetime.h"
#include "support/close.h"
#include "support/live_profile.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define END      1000u

static uint64_t below(struct sp_rng *rng, uint64_t limit)
{
	return sp_rng_next(rng) % limit;
}

static struct sp_lifetime lifetime_of(const struct sp_profile *profile)
{
	const uint32_t row_of_stack[] = {0};
	struct sp_selection selection;
	struct sp_lifetime row;

	sp_selection_init(&selection);
	assert_int_equal(
		sp_lifetimes(profile, &selection, row_of_stack, &row, 1, NULL),
		0);
	return row;
}

/* An object that lived that long; if it is alive, born that long before the
 * end. */
static struct sp_sample *add_life(struct live_profile *live, uint64_t ns,
				  bool freed)
{
	if (freed)
		return live_profile_add(live, 0, ns, 16);
	return live_profile_add(live, END - ns, SP_NEVER, 16);
}

/* Of the objects that lived at least that long: how many, and how many of them
 * were freed then. */
static void count_lives(const struct sp_profile *profile, uint64_t ns,
			uint64_t *at_risk, uint64_t *freed)
{
	*at_risk = 0;
	*freed = 0;
	for (size_t k = 0; k < profile->n_samples; k++) {
		const struct sp_sample *s = &profile->samples[k];
		const bool alive = s->freed_ns == SP_NEVER;
		const uint64_t lived =
			(alive ? profile->duration_ns : s->freed_ns) -
			s->born_ns;

		*at_risk += lived >= ns;
		*freed += lived == ns && !alive;
	}
}

/* The shortest time at which the product of (n - d) / n is at most 1 / share,
 * in whole numbers. */
static uint64_t exact_quantile(const struct sp_profile *profile, unsigned share)
{
	unsigned __int128 left = 1, all = 1;

	for (uint64_t ns = 0; ns <= END; ns++) {
		uint64_t at_risk, freed;

		count_lives(profile, ns, &at_risk, &freed);
		if (!freed)
			continue;
		left *= at_risk - freed;
		all *= at_risk;
		if (left * share <= all)
			return ns;
	}
	return SP_NEVER;
}

/* Few objects, so that the curve often meets a quantile exactly; many of them
 * lived equally long. */
TEST(exact_at_period_1)
{
	struct live_profile live;
	unsigned int censored = 0, never = 0;
	struct sp_rng rng;

	sp_rng_init(&rng, 1, 0);
	live_profile_init(&live, 1, END);
	for (unsigned int i = 0; i < 3000; i++) {
		const uint64_t n = 1 + below(&rng, 20);
		struct sp_lifetime row;

		live_profile_clear(&live);
		for (uint64_t k = 0; k < n; k++)
			add_life(&live, below(&rng, 12), below(&rng, 3));
		row = lifetime_of(&live.profile);
		assert_int_equal(row.samples, n);
		assert_true(row.median_ns == exact_quantile(&live.profile, 2));
		assert_true(row.p90_ns == exact_quantile(&live.profile, 10));
		assert_true(row.alive_share == (double)row.alive / (double)n);
		censored += row.alive > 0 && row.median_ns != SP_NEVER;
		never += row.median_ns == SP_NEVER;
	}
	assert_in_range(censored, 300, 2900);
	assert_in_range(never, 30, 2000);
	live_profile_free(&live);
}

/* 27/33 of the objects outlive 1 ns and 11/18 of those 3 ns, which is one half;
 * the product of the two rounded fractions is more. */
TEST(quantile_met_exactly)
{
	FREED_BY(live_profile_free) struct live_profile live;

	assert_true((27. / 33) * (11. / 18) > 0.5);
	live_profile_init(&live, 1, END);
	for (unsigned int i = 0; i < 33; i++)
		add_life(&live,
			 i < 6    ? 1
			 : i < 15 ? 2
			 : i < 22 ? 3
				  : 50,
			 i < 6 || i >= 15);
	assert_int_equal(lifetime_of(&live.profile).median_ns, 3);
	assert_int_equal(exact_quantile(&live.profile, 2), 3);
}

/* Remission of 21 patients under 6-mercaptopurine (Freireich 1963), the usual
 * example: the curve is 0.538 after 22 weeks, 0.448 after 23. */
TEST(published_table)
{
	static const struct {
		uint8_t weeks;
		bool ended;
	} lives[] = {
		{6, 1},  {6, 1},  {6, 1},  {6, 0},  {7, 1},  {9, 0},  {10, 1},
		{10, 0}, {11, 0}, {13, 1}, {16, 1}, {17, 0}, {19, 0}, {20, 0},
		{22, 1}, {23, 1}, {25, 0}, {32, 0}, {32, 0}, {34, 0}, {35, 0},
	};
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_lifetime row;

	live_profile_init(&live, 1, END);
	for (size_t i = 0; i < N(lives); i++)
		add_life(&live, lives[i].weeks, lives[i].ended);
	row = lifetime_of(&live.profile);
	assert_int_equal(row.samples, 21);
	assert_int_equal(row.alive, 12);
	assert_int_equal(row.median_ns, 23);
	assert_true(row.p90_ns == SP_NEVER);
}

/* A leak whose few freed objects were freed at once: who drops the survivors
 * says 5 ns. */
TEST(survivors_count)
{
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_lifetime row;

	live_profile_init(&live, 1, END);
	for (unsigned int i = 0; i < 100; i++)
		add_life(&live, i < 10 ? 5 : 900, i < 10);
	row = lifetime_of(&live.profile);
	assert_true(row.median_ns == SP_NEVER);
	assert_true(row.p90_ns == SP_NEVER);
	assert_int_equal(row.alive, 90);
	assert_close(row.alive_share, 0.9, 1e-15);
}

/* And who takes survivors as freed at the end says 900 ns. */
TEST(survivors_are_not_freed)
{
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, END);
	for (unsigned int i = 0; i < 100; i++)
		add_life(&live, i < 45 ? 5 : 900, i < 45);
	add_life(&live, 950, true);
	assert_int_equal(lifetime_of(&live.profile).median_ns, 950);
}

/* A sampled object of 16 bytes stands for many, one of many periods for
 * itself. */
TEST(weights)
{
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_lifetime row;
	struct sp_acc acc;

	live_profile_init(&live, 4096, END);
	for (unsigned int i = 0; i < 9; i++)
		add_life(&live, 700, true)->size_bytes = 1 << 20;
	add_life(&live, 3, true);
	add_life(&live, 800, false)->size_bytes = 1 << 20;
	row = lifetime_of(&live.profile);
	assert_int_equal(row.median_ns, 3);
	assert_int_equal(row.p90_ns, 3);
	sp_acc_init(&acc, 4096);
	sp_acc_add(&acc, &live.profile.law, 16, 15, 4096);
	assert_close(row.alive_share, 1 / (10 + acc.est_count), 1e-12);
	/* with a period of its own it is one of many */
	live.profile.samples[9].period_bytes = 1;
	assert_int_equal(lifetime_of(&live.profile).median_ns, 700);
}

/* The weighted curve at a time by the formula, in floating point. */
static long double survival(const struct sp_profile *profile, uint64_t until)
{
	long double curve = 1;

	for (uint64_t ns = 0; ns <= until; ns++) {
		long double at_risk = 0, freed = 0;

		for (size_t k = 0; k < profile->n_samples; k++) {
			const struct sp_sample *s = &profile->samples[k];
			const bool alive = s->freed_ns == SP_NEVER;
			const long double weight =
				1 / (long double)sp_inclusion_probability(
					    s->size_bytes, s->period_bytes);
			const uint64_t lived =
				(alive ? profile->duration_ns : s->freed_ns) -
				s->born_ns;

			at_risk += lived >= ns ? weight : 0;
			freed += lived == ns && !alive ? weight : 0;
		}
		if (freed > 0)
			curve *= (at_risk - freed) / at_risk;
	}
	return curve;
}

static void assert_quantile(const struct sp_profile *profile, uint64_t ns,
			    long double left)
{
	if (ns == SP_NEVER) {
		assert_true(survival(profile, END) > left);
		return;
	}
	assert_true(survival(profile, ns) <= left + 1e-11L);
	assert_true(!ns || survival(profile, ns - 1) > left - 1e-11L);
}

TEST(weighted_against_formula)
{
	struct live_profile live;
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 0);
	live_profile_init(&live, 512, END);
	for (unsigned int i = 0; i < 60; i++) {
		struct sp_lifetime row;

		live_profile_clear(&live);
		for (unsigned int k = 0; k < 1 + i; k++) {
			struct sp_sample *s = add_life(&live, below(&rng, 60),
						       below(&rng, 4));

			s->size_bytes = 1 + below(&rng, 2048);
			s->offset_bytes = 0;
			s->period_bytes = 1ull << below(&rng, 12);
		}
		row = lifetime_of(&live.profile);
		assert_quantile(&live.profile, row.median_ns, 0.5L);
		assert_quantile(&live.profile, row.p90_ns, 0.1L);
	}
	live_profile_free(&live);
}

/* Stacks to rows, rows without samples, stacks without a row. */
TEST(rows)
{
	const uint32_t row_of_stack[] = {2, UINT32_MAX, 0, 2};
	struct sp_selection selection;
	struct sp_lifetime rows[3];
	struct sp_stack stacks[4] = {{.id = 1}};
	FREED_BY(live_profile_free) struct live_profile live;

	live_profile_init(&live, 1, END);
	live.profile.stacks = stacks;
	live.profile.n_stacks = 4;
	for (uint32_t i = 0; i < 40; i++)
		live_profile_add(&live, i, i + 10 + i % 4, 16)->stack = i % 4;
	sp_selection_init(&selection);
	selection.from_ns = 2;
	selection.to_ns = 38;
	assert_int_equal(sp_lifetimes(&live.profile, &selection, row_of_stack,
				      rows, 3, NULL),
			 0);
	assert_int_equal(rows[0].samples, 9);
	assert_int_equal(rows[0].median_ns, 12);
	assert_int_equal(rows[1].samples, 0);
	assert_true(rows[1].median_ns == SP_NEVER);
	assert_true(rows[1].p90_ns == SP_NEVER);
	assert_true(rows[1].alive_share == 0);
	assert_int_equal(rows[2].samples, 18);
	assert_int_equal(rows[2].median_ns, 10);
	assert_int_equal(rows[2].p90_ns, 13);
}

TEST_MAIN(NULL, NULL)
