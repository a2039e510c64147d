/* SPDX-License-Identifier: MIT */
/* The methods by name, and which totals a subset is held against. */
#include <math.h>

#include "base/rng.h"
#include "stats/adjust.h"
#include "stats/estimate.h"
#include "stats/strata.h"
#include "support/close.h"
#include "support/only_part.h"
#include "support/test.h"

#define R0 65536u

/* A profile with samples of sizes that the test chooses. */
#define MAX_SAMPLES 4000

static struct sp_sample samples[MAX_SAMPLES];

static struct sp_profile profile_of(void)
{
	return (struct sp_profile){
		.period_bytes = R0,
		.has_classes = true,
		.law = {.always_large = true},
		.samples = samples,
		.parts = &only_part,
		.n_parts = 1,
	};
}

static void push(struct sp_profile *p, unsigned int n, uint64_t size_bytes)
{
	while (n--) {
		assert_true(p->n_samples < MAX_SAMPLES);
		samples[p->n_samples++] = (struct sp_sample){
			.freed_ns = SP_NEVER,
			.size_bytes = size_bytes,
			.period_bytes = R0,
		};
	}
}

static void total(struct sp_profile *p, uint64_t size_bytes, uint64_t objects)
{
	struct sp_class_total *t = &p->classes[sp_format_class(size_bytes)];

	t->objects += objects;
	t->bytes += objects * size_bytes;
	p->exact_alloc_bytes += objects * size_bytes;
	p->exact_alloc_objects += objects;
}

static struct sp_class_sums class_sums_of(const struct sp_profile *p,
					  unsigned int n, uint64_t size_bytes)
{
	struct sp_class_sums t;

	sp_class_sums_init(&t, p->period_bytes);
	while (n--)
		assert_int_equal(
			sp_class_sums_add(&t, &p->law, size_bytes, 0, R0), 0);
	return t;
}

static struct sp_population population_of(const struct sp_profile *p)
{
	struct sp_population population;

	assert_int_equal(sp_population_init(&population, p), 0);
	return population;
}

static void assert_same(struct sp_interval a, struct sp_interval b)
{
	assert_close(a.lo, b.lo, 1e-12);
	assert_close(a.value, b.value, 1e-12);
	assert_close(a.hi, b.hi, 1e-12);
}

TEST(names)
{
	enum sp_method method;

	for (unsigned int i = 0; i < SP_METHOD_COUNT; i++) {
		const enum sp_method m = (enum sp_method)i;

		assert_true(sp_method_parse(sp_method_name(m), &method));
		assert_int_equal(method, m);
		assert_true(strlen(sp_method_assumes(m)) > 20);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(
				sp_method_name(m),
				sp_method_name((enum sp_method)j));
	}
	assert_false(sp_method_parse("", &method));
	assert_false(sp_method_parse("P3", &method));
	assert_false(sp_method_parse("sum-then-unbias", &method));
}

/* Each name is the estimate that it says. */
TEST(dispatch)
{
	const struct sp_profile p = profile_of();
	FREED_BY(sp_class_sums_free)
	struct sp_class_sums t = class_sums_of(&p, 9, 100000);
	const struct sp_acc *a = &t.all;
	const struct sp_interval want[SP_METHOD_COUNT] = {
		[SP_METHOD_P3T] = sp_estimate_bytes_p3(a, 0.9),
		[SP_METHOD_P3] = sp_estimate_bytes_p3(a, 0.9),
	};

	for (unsigned int i = 0; i < SP_METHOD_COUNT; i++) {
		const struct sp_estimation how = {(enum sp_method)i, 0.9, NULL,
						  0};

		assert_same(sp_estimate_bytes(&how, &t), want[i]);
		assert_same(
			sp_estimate_objects(&how, &t),
			sp_estimate_objects_p3(a, SP_SMALLEST_UNKNOWN, 0.9));
		assert_true(sp_estimate_bytes_value(&how, &t) == want[i].value);
	}
}

static struct sp_interval p3t(const struct sp_population *x,
			      const struct sp_class_sums *t)
{
	const struct sp_estimation how = {SP_METHOD_P3T, 0.95, x, 0};

	return sp_estimate_bytes(&how, t);
}

/* Totals are used if they cover what was sampled, and if not it is said why. */
TEST(when_totals_are_used)
{
	struct sp_profile p = profile_of();
	struct sp_population x;

	push(&p, 1000, 64);
	total(&p, 64, 1000 * R0 / 64);
	p.losses[SP_LOSS_NO_LANE] = 1;
	x = population_of(&p);
	assert_true(x.has_totals && !x.why_without);
	assert_int_equal(x.all.all.samples, 1000);
	sp_population_free(&x);
	/* A tenth of the square root of 1000, which chance hides. */
	p.losses[SP_LOSS_NO_FILE] = 2;
	x = population_of(&p);
	assert_true(x.has_totals && x.gap_bytes == 0);
	sp_population_free(&x);
	p.losses[SP_LOSS_NESTED] = 1;
	x = population_of(&p);
	assert_true(!x.has_totals && strstr(x.why_without, "lost"));
	assert_true(x.gap_bytes > 0);
	sp_population_free(&x);
	p.losses[SP_LOSS_NESTED] = UINT64_MAX;
	x = population_of(&p);
	assert_false(x.has_totals);
	sp_population_free(&x);
	p.losses[SP_LOSS_NESTED] = 0;

	p.damaged_records = 1;
	x = population_of(&p);
	assert_true(!x.has_totals && strstr(x.why_without, "damaged"));
	sp_population_free(&x);
	p.damaged_records = 0;

	p.losses[SP_LOSS_FORK_RESET] = p.exact_alloc_bytes / 999;
	x = population_of(&p);
	assert_true(!x.has_totals && strstr(x.why_without, "parent"));
	sp_population_free(&x);
	p.losses[SP_LOSS_FORK_RESET] = 0;

	/* A tenth of sqrt(T R), of which T is 400 R. */
	p.exact_alloc_bytes = 400 * R0;
	p.class_slack_bytes = 2 * R0;
	x = population_of(&p);
	assert_true(x.has_totals);
	sp_population_free(&x);
	p.class_slack_bytes++;
	x = population_of(&p);
	assert_true(!x.has_totals && strstr(x.why_without, "threads went on"));
	sp_population_free(&x);
	p.end = SP_PROFILE_END_KILLED;
	x = population_of(&p);
	assert_true(!x.has_totals && strstr(x.why_without, "orderly"));
	sp_population_free(&x);
	p.end = SP_PROFILE_END_CLEAN;
	p.class_slack_bytes = 0;
	p.has_classes = false;
	x = population_of(&p);
	assert_true(!x.has_totals && strstr(x.why_without, "no totals"));
	sp_population_free(&x);
}

/* Nothing is left to estimate, whatever the totals lack. */
TEST(everything_recorded)
{
	struct sp_profile p = profile_of();
	FREED_BY(sp_population_free) struct sp_population x;
	struct sp_interval i;
	FREED_BY(sp_class_sums_free) struct sp_class_sums t;

	p.period_bytes = 1;
	p.class_slack_bytes = 100000;
	x = population_of(&p);
	assert_true(x.has_totals);
	sp_class_sums_init(&t, 1);
	i = p3t(&x, &t);
	assert_true(i.lo == 0 && i.hi == 0);
	assert_int_equal(sp_class_sums_add(&t, &p.law, 24, 0, 1), 0);
	i = p3t(&x, &t);
	assert_true(i.lo == 24 && i.value == 24 && i.hi == 24);
}

/* (E61) Of a file that was full each row may have all that is missing, and of
 * one that is cut nobody knows; what was alive after that is not known at all.
 */
TEST(what_is_missing)
{
	struct sp_profile p = profile_of();
	struct sp_population x;
	FREED_BY(sp_class_sums_free) struct sp_class_sums t;
	struct sp_interval i;

	push(&p, 3, 100);
	p.period_bytes = 1;
	p.samples[0].period_bytes = p.samples[1].period_bytes =
		p.samples[2].period_bytes = 1;
	total(&p, 100, 10);
	p.unsampled_bytes = 50;
	p.missing_bytes_max = p.class_slack_bytes = 7;
	p.full_ns = 9;
	x = population_of(&p);
	sp_class_sums_init(&t, 1);
	assert_int_equal(sp_class_sums_add(&t, &p.law, 100, 0, 1), 0);
	i = p3t(&x, &t);
	assert_true(i.lo == 100 && i.value == 100);
	assert_true(x.gap_bytes == 1000 + 7 - 50 - 300);
	assert_true(i.hi == 100 + x.gap_bytes && i.hi < x.most_bytes);
	t.is_unknown = true;
	i = p3t(&x, &t);
	assert_true(i.lo == 0 && i.value == 100 && i.hi == x.most_bytes);
	t.is_unknown = false;
	sp_population_free(&x);

	/* Nobody knows how much was allocated. */
	p.missing_bytes_max = p.class_slack_bytes = UINT64_MAX;
	x = population_of(&p);
	i = p3t(&x, &t);
	assert_true(i.lo == 100 && isinf(i.hi) && !x.has_totals);
	sp_population_free(&x);
	p.full_ns = p.unsampled_bytes = 0;
	p.missing_bytes_max = 7; /* threads went on */
	x = population_of(&p);
	i = p3t(&x, &t);
	assert_true(i.lo == 100 && i.hi == 107);
	sp_population_free(&x);
	p.missing_bytes_max = UINT64_MAX;
	x = population_of(&p);
	i = p3t(&x, &t);
	assert_true(i.lo == 100 && isinf(i.hi) && isinf(x.most_bytes));
	assert_false(x.has_totals);
	sp_population_free(&x);

	p.is_cut = true;
	x = population_of(&p);
	i = p3t(&x, &t);
	assert_true(i.lo == 100 && isinf(i.hi));
	sp_population_free(&x);
}

/* A subset in one large class is held against that class and no other. */
TEST(class_alone)
{
	struct sp_profile p = profile_of();
	struct sp_class_sums t = class_sums_of(&p, 40, 64),
			     rest = class_sums_of(&p, 60, 64);
	struct sp_stratum s[2] = {{.smallest.bytes = 49}};
	FREED_BY(sp_population_free) struct sp_population x;
	struct sp_estimation how;

	push(&p, 100, 64);
	push(&p, 300, 4096);
	total(&p, 64, 100 * R0 / 64);
	total(&p, 4096, 300 * R0 / 4096);
	x = population_of(&p);
	how = (struct sp_estimation){SP_METHOD_P3T, 0.95, &x, 0};
	s[0].part = t.all;
	s[0].rest = rest.all;
	s[0].total_bytes = 100. * R0;
	s[0].total_objects = 100. * R0 / 64;
	/* and one for the other class, in which it was not seen */
	sp_class_sums_free(&rest);
	rest = class_sums_of(&p, 300, 4096);
	sp_acc_init(&s[1].part, R0);
	s[1].rest = rest.all;
	s[1].total_bytes = 300. * R0;
	s[1].total_objects = 300. * R0 / 4096;
	s[1].smallest.bytes = 3585;
	assert_same(p3t(&x, &t), sp_strata_bytes(s, 2, 0, 0.95));
	assert_same(sp_estimate_objects(&how, &t),
		    sp_strata_objects(s, 2, 0, 0.95));
	sp_class_sums_free(&t);
	sp_class_sums_free(&rest);
}

/*
 * Classes that expect fewer than 16 samples stand together, whatever was
 * sampled; and if even together they expect fewer, their total is a bound.
 */
TEST(small_classes)
{
	struct sp_profile p = profile_of();
	FREED_BY(sp_class_sums_free) struct sp_class_sums t;
	struct sp_population x;

	push(&p, 15, 64);
	push(&p, 5, 1024);
	push(&p, 16, 4096);
	total(&p, 64, 15 * R0 / 64);
	total(&p, 1024, 5 * R0 / 1024);
	total(&p, 4096, 16 * R0 / 4096);
	x = population_of(&p);
	assert_int_equal(x.stratum[sp_format_class(64)], 0);
	assert_int_equal(x.stratum[sp_format_class(1024)], 0);
	assert_int_equal(x.stratum[sp_format_class(4096)], 1);
	t = class_sums_of(&p, 15, 64);
	/* 15 of 20 samples of 20 periods */
	assert_between(13.5 * R0, p3t(&x, &t).value, 16.5 * R0);
	assert_true(p3t(&x, &t).hi < sp_estimate_bytes_p3(&t.all, 0.95).hi);
	sp_population_free(&x);

	p.n_samples = 15;
	memset(p.classes, 0, sizeof(p.classes));
	total(&p, 64, 15 * R0 / 64);
	x = population_of(&p);
	assert_close(p3t(&x, &t).lo, sp_estimate_bytes_p3(&t.all, 0.95).lo,
		     1e-12);
	assert_close(p3t(&x, &t).hi, 15. * R0, 1e-12);
	sp_population_free(&x);
}

/* Counts of 1 to 16 bytes are held against their total only if all have 16. */
TEST(tiny_objects)
{
	struct sp_profile p = profile_of();
	FREED_BY(sp_class_sums_free)
	struct sp_class_sums t = class_sums_of(&p, 50, 16);
	struct sp_interval n;
	struct sp_population x;
	struct sp_estimation how = {SP_METHOD_P3T, 0.95, &x, 0};

	push(&p, 100, 16);
	total(&p, 16, 100 * R0 / 16);
	x = population_of(&p);
	n = sp_estimate_objects(&how, &t);
	assert_true(
		n.hi <
		sp_estimate_objects_p3(&t.all, SP_SMALLEST_UNKNOWN, 0.95).hi *
			0.95);
	sp_population_free(&x);
	total(&p, 1, 1);
	x = population_of(&p);
	n = sp_estimate_objects(&how, &t);
	assert_close(
		n.lo,
		sp_estimate_objects_p3(&t.all, SP_SMALLEST_UNKNOWN, 0.95).lo,
		1e-12);
	/* and allow for the object of one byte */
	assert_close(n.hi,
		     sp_estimate_objects_p3(
			     &t.all, (struct sp_smallest){16, 15. / 16}, 0.95)
			     .hi,
		     1e-12);
	sp_population_free(&x);
}

/* (E48) What was not seen of B bytes: as many objects as the sizes of all that
 * was allocated allow. */
TEST(smallest)
{
	struct sp_profile p = profile_of();
	struct sp_class_sums t;
	struct sp_population x;
	struct sp_interval n;

	/* few small objects: 1000 of 40 bytes, and what else can be is of 1009
	 */
	total(&p, 40, 1000);
	total(&p, 1024, 100 * R0 / 1024);
	push(&p, 100, 1024);
	x = population_of(&p);
	assert_int_equal(x.smallest.bytes, 1009);
	assert_close(x.smallest.more, 1000 - 40000. / 1009, 1e-12);
	t = class_sums_of(&p, 50, 1024);
	n = sp_estimate_objects(
		&(struct sp_estimation){SP_METHOD_P3T, 0.999, &x, 0}, &t);
	assert_true(n.hi < 2 * 50 * R0 / 1024. + 1000);
	sp_class_sums_free(&t);
	sp_population_free(&x);

	/* many objects of one byte: any number of them may be unseen */
	total(&p, 1, 500000);
	x = population_of(&p);
	assert_int_equal(x.smallest.bytes, 1);
	assert_close(x.smallest.more, 0, 1e-12);
	sp_class_sums_init(&t, R0);
	n = sp_estimate_objects(
		&(struct sp_estimation){SP_METHOD_P3, 0.999, &x, 0}, &t);
	assert_true(n.hi > 7 * R0);
	sp_class_sums_free(&t);
	sp_population_free(&x);
	/* of ten of them no more than ten */
	p.classes[0] = (struct sp_class_total){10, 10};
	x = population_of(&p);
	assert_true(x.smallest.bytes > 1);
	sp_population_free(&x);
}

/* Whatever the file says: ordered, finite, and bounded by what there is.  And
 * the value is the same where nobody asks for limits. */
/* (E41) What is shown has a sample, which the lower limit knows: one sample
 * says nothing more than itself, at any level; many say what they did. */
TEST(rows_that_are_shown)
{
	static const double levels[] = {0.9, 0.95, 0.99, 0.999, 0.9999};
	static const struct {
		uint64_t samples;
		double lo; /* at 95 %, in periods */
	} rows[] = {{2, 0.0508}, {3, 0.4088}, {10, 4.789}};
	const struct sp_profile p = profile_of();
	struct sp_estimation how = {SP_METHOD_P3, 0.95, NULL, 0};
	struct sp_class_sums t = class_sums_of(&p, 1, 16);

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		how.confidence = levels[i];
		assert_close(sp_estimate_bytes(&how, &t).lo, 16, 0);
		assert_close(sp_estimate_objects(&how, &t).lo, 1, 0);
	}
	how.confidence = 0.95;
	sp_class_sums_free(&t);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		t = class_sums_of(&p, rows[i].samples, 16);
		assert_between(rows[i].lo * 0.99,
			       sp_estimate_bytes(&how, &t).lo / R0,
			       rows[i].lo * 1.01);
		sp_class_sums_free(&t);
	}
}

/* (E19) Rows that hold all at once count with two samples: m = 2 in (E41). */
TEST(rows_of_two_samples)
{
	const struct sp_profile p = profile_of();
	const struct sp_estimation how = {SP_METHOD_P3, 0.9, NULL, 2};
	FREED_BY(sp_class_sums_free)
	struct sp_class_sums t = class_sums_of(&p, 5, 16);
	const double lo = sp_estimate_bytes(&how, &t).lo, x = lo / R0;

	assert_true(x > 1);
	assert_close(lo,
		     sp_lower_bytes_p3(&t.all, 0.05 * (1 - exp(-x) * (1 + x))),
		     1e-3);
}

/* (E44) What was allocated bounds estimates, also where totals are not used
 * otherwise; other methods, and damaged files, do without. */
TEST(no_more_than_was_allocated)
{
	struct sp_profile p = profile_of();
	FREED_BY(sp_class_sums_free)
	struct sp_class_sums t = class_sums_of(&p, 2, 100);
	struct sp_population x;
	struct sp_estimation how = {SP_METHOD_P3T, 0.95, &x, 0};

	total(&p, 100, 40);
	p.unsampled_bytes = 1000;
	x = population_of(&p);
	assert_false(x.has_totals);
	assert_true(sp_estimate_bytes(&how, &t).hi == 4000);
	assert_true(sp_estimate_bytes(&how, &t).value == 4000);
	assert_true(sp_estimate_bytes_value(&how, &t) == 4000);
	assert_true(sp_estimate_objects(&how, &t).hi == 40);
	how.method = SP_METHOD_P3;
	assert_true(sp_estimate_bytes(&how, &t).hi > R0);
	sp_population_free(&x);
	p.damaged_records = 1;
	x = population_of(&p);
	how.method = SP_METHOD_P3T;
	assert_true(sp_estimate_bytes(&how, &t).hi > R0);
	sp_population_free(&x);
}

struct sums {
	double bytes;
	double objects;
};

/* Of n samples of that size, by themselves; and as a row. */
static void check_part(const struct sp_estimation *how,
		       const struct sp_profile *p, unsigned int n,
		       uint64_t size_bytes, struct sums *all)
{
	FREED_BY(sp_class_sums_free)
	struct sp_class_sums t = class_sums_of(p, n, size_bytes);
	const struct sp_acc part = sp_adjusted(how, &t);

	assert_close(part.est_bytes, sp_estimate_bytes_value(how, &t), 1e-12);
	assert_close(part.est_count, sp_estimate_objects_value(how, &t), 1e-12);
	all->bytes += part.est_bytes;
	all->objects += part.est_count;
}

/* (E46) A class with too few samples, one with too many, and large and small
 * objects that share a stratum. */
TEST(sums_over_samples)
{
	struct sp_profile p = profile_of();
	FREED_BY(sp_population_free) struct sp_population x;
	struct sp_estimation how = {SP_METHOD_P3T, 0.95, &x, 0};
	struct sums all = {0};

	push(&p, 40, 64);
	push(&p, 30, 256);
	push(&p, 9, 20);
	push(&p, 12, 90000);
	total(&p, 64, 50 * R0 / 64);
	total(&p, 256, 24 * R0 / 256);
	total(&p, 20, 15 * R0 / 20);
	total(&p, 90000, 11);
	x = population_of(&p);
	check_part(&how, &p, 1, 64, &all);
	check_part(&how, &p, 39, 64, &all);
	check_part(&how, &p, 30, 256, &all);
	check_part(&how, &p, 9, 20, &all);
	check_part(&how, &p, 5, 90000, &all);
	check_part(&how, &p, 7, 90000, &all);
	assert_close(all.bytes, (double)p.exact_alloc_bytes, 1e-12);
	how.method = SP_METHOD_P3;
	check_part(&how, &p, 30, 256, &all);
}

TEST(ordering)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 7, 0);
	for (int round = 0; round < 300; round++) {
		struct sp_profile p = profile_of();
		FREED_BY(sp_class_sums_free)
		struct sp_class_sums t = class_sums_of(&p, 0, 1);
		FREED_BY(sp_population_free) struct sp_population x;

		for (uint64_t n = sp_rng_next(&rng) % 60; n; n--) {
			const uint64_t z =
				1 + sp_rng_next(&rng) %
					    (1ull << sp_rng_next(&rng) % 50);

			push(&p, 1, z);
			if (sp_rng_next(&rng) % 2)
				assert_int_equal(
					sp_class_sums_add(&t, &p.law, z, 0, R0),
					0);
			if (sp_rng_next(&rng) % 8)
				total(&p, z, sp_rng_next(&rng) % 100);
		}
		p.class_slack_bytes = sp_rng_next(&rng) % 3 * R0;
		x = population_of(&p);
		for (unsigned int i = 0; i < SP_METHOD_COUNT; i++) {
			const struct sp_estimation how = {(enum sp_method)i,
							  0.99, &x, 0};
			const struct sp_interval b =
				sp_estimate_bytes(&how, &t);
			const struct sp_interval n =
				sp_estimate_objects(&how, &t);

			assert_true(isfinite(b.lo) && isfinite(b.hi));
			assert_true(0 <= b.lo && b.lo <= b.value);
			assert_true(b.value <= b.hi);
			assert_true(isfinite(n.lo) && isfinite(n.hi));
			assert_true(0 <= n.lo && n.lo <= n.value);
			assert_true(n.value <= n.hi);
			assert_true(sp_estimate_bytes_value(&how, &t) ==
				    b.value);
			assert_true(sp_estimate_objects_value(&how, &t) ==
				    n.value);
		}
	}
}

TEST_MAIN(NULL, NULL)
