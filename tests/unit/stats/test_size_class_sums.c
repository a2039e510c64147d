/* SPDX-License-Identifier: MIT */
/* Sums by size class, compared with one plain accumulator for each class. */
#include <math.h>

#include "base/rng.h"
#include "stats/estimate.h"
#include "stats/size_class_sums.h"
#include "support/acc.h"
#include "support/close.h"
#include "support/test.h"

#define R0 524288u

static const struct sp_law_used law = {.always_large = true};

struct model {
	struct sp_acc all;
	struct sp_acc classes[SP_FORMAT_CLASSES];
};

static void model_init(struct model *m)
{
	sp_acc_init(&m->all, R0);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++)
		sp_acc_init(&m->classes[i], R0);
}

static void assert_is(const struct sp_class_sums *sums, const struct model *m)
{
	uint32_t at = 0;

	assert_same_acc(&sums->all, &m->all);
	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++) {
		if (!m->classes[i].samples)
			continue;
		assert_true(at < sums->n_classes);
		assert_int_equal(sums->classes[at].class, i);
		assert_same_acc(&sums->classes[at].acc, &m->classes[i]);
		at++;
	}
	assert_int_equal(at, sums->n_classes);
}

static uint64_t random_size(struct sp_rng *rng)
{
	return 1 + sp_rng_next(rng) % (1ull << sp_rng_next(rng) % 44);
}

static void add(struct sp_class_sums *sums, struct model *m, struct sp_rng *rng)
{
	const uint64_t z = random_size(rng), offset = sp_rng_next(rng) % z;
	const uint64_t r = sp_rng_next(rng) % 8 ? R0 : 4096;

	assert_int_equal(sp_class_sums_add(sums, &law, z, offset, r), 0);
	sp_acc_add(&m->all, &law, z, offset, r);
	sp_acc_add(&m->classes[sp_format_class(z)], &law, z, offset, r);
}

TEST(add)
{
	FREED_BY(sp_class_sums_free) struct sp_class_sums sums;
	struct model m;
	struct sp_rng rng;

	sp_rng_init(&rng, 4, 0);
	sp_class_sums_init(&sums, R0);
	model_init(&m);
	assert_is(&sums, &m);
	for (int i = 0; i < 2000; i++) {
		add(&sums, &m, &rng);
		if (i % 50 == 0)
			assert_is(&sums, &m);
	}
	assert_is(&sums, &m);
}

/* Of any number of classes each, few and many in common. */
TEST(merge)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 0);
	for (int round = 0; round < 500; round++) {
		struct sp_class_sums sum, other;
		struct model m;
		uint64_t n;

		sp_class_sums_init(&sum, R0);
		sp_class_sums_init(&other, R0);
		model_init(&m);
		for (n = sp_rng_next(&rng) % 40; n; n--)
			add(&sum, &m, &rng);
		for (n = sp_rng_next(&rng) % 40; n; n--)
			add(&other, &m, &rng);
		assert_int_equal(sp_class_sums_merge(&sum, &other), 0);
		assert_is(&sum, &m);
		sp_class_sums_free(&sum);
		sp_class_sums_free(&other);
	}
}

/* Zeroed sums are empty, and so are those that were freed. */
TEST(empty)
{
	struct sp_class_sums zero = {0}, sums;

	sp_class_sums_init(&sums, R0);
	assert_int_equal(sp_class_sums_merge(&zero, &sums), 0);
	assert_int_equal(zero.n_classes, 0);
	assert_int_equal(zero.all.period_bytes, R0);
	assert_int_equal(sp_class_sums_add(&sums, &law, 48, 0, R0), 0);
	assert_int_equal(sp_class_sums_merge(&zero, &sums), 0);
	assert_int_equal(zero.n_classes, 1);
	sp_class_sums_free(&zero);
	sp_class_sums_free(&zero);
	sp_class_sums_free(&sums);
}

/* Who chose and who measures is as well known. */
TEST(everything_at_the_peak)
{
	struct sp_estimation how = {.method = SP_METHOD_P3T, .confidence = 0.9};
	FREED_BY(sp_class_sums_free) struct sp_class_sums t;
	struct sp_interval i;

	sp_class_sums_init(&t, 1);
	t.is_measured = true;
	sp_acc_add_measured(&t.all, &law, 24, 3, 72, 1, true);
	sp_acc_add_measured(&t.all, &law, 24, 7, 168, 1, false);
	i = sp_estimate_bytes(&how, &t);
	assert_true(i.lo == 240 && i.value == 240 && i.hi == 240);
	i = sp_estimate_objects(&how, &t);
	assert_true(i.lo == 10 && i.value == 10 && i.hi == 10);
}

TEST_MAIN(NULL, NULL)
