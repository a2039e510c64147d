/* SPDX-License-Identifier: MIT */
/*
 * Claims.  Under the sampling law (E1) the weighted estimates are unbiased (E3)
 * and the 95 % intervals contain the truth at least 95 % of the time: bytes
 * (E6, E8, E9), bytes of a known total (E10), shares (E12); objects at least
 * 94.5 % (E11).
 *
 * H0, for each workload: the coverage is p0 = 0.95 (objects 0.945) or more; the
 * mean of the estimate is the truth.
 *
 * Statistics, from n = 20000 replicates of a simulated program with fixed
 * seeds: the number of intervals that contain the truth, binomial(n, p0) at
 * worst; z = (mean estimate - truth) / its exact standard error, normal
 * (skewness at 6 sigma changes its tail by less than half).
 *
 * alpha: a count below 18817 (objects 18709) has probability 3.4e-9 (3.5e-9),
 * |z| > 6 has 2e-9; the 34 statistics make 9.9e-8, within the budget of 1e-7.
 *
 * Power: a true coverage of 0.93 (objects 0.925) is rejected with probability
 * 1 - 4e-10 (1 - 6e-9); a bias of 6 % of one replicate's standard deviation
 * (8.5 standard errors) with 0.99.
 *
 * Negative controls: each mutant below must be rejected by the statistic that
 * is there for it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <cmocka.h>

#include "base/rng.h"
#include "profile/estimator.h"
#include "profile/negbinom.h"

#define REPLICATES  20000
#define COVERED_MIN 18817 /* binomial(n, 0.95) */
#define OBJECTS_MIN 18709 /* binomial(n, 0.945) */
#define Z_MAX       6.0

enum mutant {
	HONEST,
	SUM_THEN_UNBIAS, /* one inclusion probability for the mean size */
	UPPER_WITH_S,    /* as if the program ended on a sample */
	NO_LATTICE,      /* P3 as if the unseen bytes were continuous */
	GAP_PLUS_ONE,    /* the hit byte counted as a failure */
	ONE_PERIOD,      /* the gap of the old period goes on in the new one */
};

/* Groups of equal objects, allocated in turns; every object of one phase has
 * the same period. */
struct workload {
	const char *name;
	struct {
		unsigned int count;
		uint64_t size_bytes;
	} group[3];
	uint64_t period_bytes[2];
	unsigned int phase_objects; /* 0: only the first period */
};

static const struct workload workloads[] = {
	{"16-byte objects", {{92, 16}}, {256}, 0},
	{"few of 4 periods", {{2, 1024}}, {256}, 0},
	{"mixture", {{112, 16}, {4, 1024}, {6, 100}}, {256}, 0},
	{"many of 5 periods", {{250, 1280}}, {256}, 0},
	{"short period", {{20, 8}}, {16}, 0},
	{"two periods", {{60, 16}, {20, 64}}, {512, 128}, 16},
};

enum { SMALL, FEW_LARGE, MIXTURE, MANY_LARGE, SHORT_PERIOD, TWO_PERIODS };

#define MAX_OBJECTS 256

struct object {
	uint64_t size_bytes;
	uint64_t period_bytes;
	bool in_rest; /* not of the first group */
};

/* A workload's objects in order of allocation, and what is true of them. */
struct program {
	struct object object[MAX_OBJECTS];
	unsigned int n;
	double bytes;
	double rest_bytes;
	double var_bytes; /* exact variance of est_bytes */
	double var_count;
};

struct result {
	unsigned int bytes; /* replicates covered */
	unsigned int p3;
	unsigned int objects;
	unsigned int of_total;
	unsigned int share;
	double z_bytes;
	double z_count;
};

static void push_object(struct program *p, const struct workload *w,
			unsigned int group)
{
	const bool second = w->phase_objects && p->n / w->phase_objects % 2;
	const uint64_t r = w->period_bytes[second];
	const double z = (double)w->group[group].size_bytes;
	const double x = z / (double)r, odds = 1 / expm1(x);

	assert_true(p->n < MAX_OBJECTS);
	p->object[p->n++] =
		(struct object){w->group[group].size_bytes, r, group > 0};
	p->bytes += z;
	p->rest_bytes += group ? z : 0;
	p->var_bytes += z * z * odds;
	p->var_count += odds;
}

static void program_init(struct program *p, const struct workload *w)
{
	bool more = true;

	*p = (struct program){.n = 0};
	for (unsigned int turn = 0; more; turn++) {
		more = false;
		for (unsigned int g = 0; g < 3; g++) {
			if (turn >= w->group[g].count)
				continue;
			more = true;
			push_object(p, w, g);
		}
	}
}

/* (E1) from a uniform with 53 bits. */
static uint64_t draw_gap(struct sp_rng *rng, uint64_t period_bytes,
			 enum mutant mutant)
{
	const double u = ((double)(sp_rng_next(rng) >> 11) + 0.5) * 0x1p-53;

	return (uint64_t)(-log(u) * (double)period_bytes) +
	       (mutant == GAP_PLUS_ONE);
}

/* One run of the program: the samples of the first group and of the rest. */
static void simulate(const struct program *p, struct sp_rng *rng,
		     enum mutant mutant, struct sp_acc *first,
		     struct sp_acc *rest)
{
	uint64_t period = p->object[0].period_bytes;
	uint64_t gap = draw_gap(rng, period, mutant);

	sp_acc_init(first, period);
	sp_acc_init(rest, period);
	for (unsigned int i = 0; i < p->n; i++) {
		const struct object *o = &p->object[i];
		if (o->period_bytes != period) {
			period = o->period_bytes;
			gap = draw_gap(rng, period, mutant);
		}
		if (gap >= o->size_bytes) {
			gap -= o->size_bytes;
			continue;
		}
		sp_acc_add(o->in_rest ? rest : first, o->size_bytes, gap,
			   mutant == ONE_PERIOD ? first->period_bytes : period);
		gap = draw_gap(rng, period, mutant);
	}
}

static struct sp_interval estimate_bytes(const struct sp_acc *acc,
					 enum mutant mutant)
{
	struct sp_interval i = sp_estimate_bytes(acc, 0.95);
	const uint64_t r = acc->period_bytes;

	if (mutant == SUM_THEN_UNBIAS && acc->samples)
		i.value = (double)acc->size_bytes /
			  sp_inclusion_probability(
				  acc->size_bytes / acc->samples, r);
	if (mutant == UPPER_WITH_S) {
		i.hi = (double)acc->tail_bytes;
		if (acc->samples)
			i.hi += 1 + sp_negbinom_below(
					    (double)acc->samples,
					    sp_inclusion_probability(1, r),
					    0.975);
	}
	return i;
}

static struct sp_interval estimate_p3(const struct sp_acc *acc,
				      enum mutant mutant)
{
	struct sp_interval i = sp_estimate_bytes_p3(acc, 0.95);
	const double r = (double)acc->period_bytes;

	if (mutant == NO_LATTICE && acc->samples) {
		const double step = acc->kz / acc->k2, h = step / (2 * r);

		i.lo += step / 2;
		i.hi -= r * (h / tanh(h) - 1) * acc->k2 / (acc->k2 + r * r);
	}
	return i;
}

static bool covers(struct sp_interval i, double truth)
{
	return i.lo <= truth && truth <= i.hi;
}

static void report(const char *name, enum mutant mutant, const struct result *r)
{
	const double n = REPLICATES;

	print_message("%-18s mutant %d: z %+.2f %+.2f; covered: bytes %.4f, "
		      "p3 %.4f, objects %.4f",
		      name, (int)mutant, r->z_bytes, r->z_count, r->bytes / n,
		      r->p3 / n, r->objects / n);
	if (r->share)
		print_message(", of total %.4f, share %.4f", r->of_total / n,
			      r->share / n);
	print_message("\n");
}

static struct result run(unsigned int which, enum mutant mutant)
{
	struct program p;
	struct result r = {0};
	struct sp_rng rng;
	double bytes = 0, count = 0;

	program_init(&p, &workloads[which]);
	sp_rng_init(&rng, 20240229, which);
	for (unsigned int i = 0; i < REPLICATES; i++) {
		struct sp_acc all, first, rest;
		struct sp_interval b;

		simulate(&p, &rng, mutant, &first, &rest);
		all = first;
		sp_acc_merge(&all, &rest);
		b = estimate_bytes(&all, mutant);
		bytes += b.value;
		count += all.est_count;
		r.bytes += covers(b, p.bytes);
		r.p3 += covers(estimate_p3(&all, mutant), p.bytes);
		r.objects += covers(sp_estimate_objects(&all, 0.95), p.n);
		if (!p.rest_bytes)
			continue;
		r.of_total +=
			covers(sp_estimate_bytes_of_total(
				       &first, &rest, (uint64_t)p.bytes, 0.95),
			       p.bytes - p.rest_bytes);
		r.share += covers(sp_estimate_share(&first, &rest, 0.95),
				  1 - p.rest_bytes / p.bytes);
	}
	r.z_bytes =
		(bytes - REPLICATES * p.bytes) / sqrt(REPLICATES * p.var_bytes);
	r.z_count = (count - (double)REPLICATES * p.n) /
		    sqrt(REPLICATES * p.var_count);
	report(workloads[which].name, mutant, &r);
	return r;
}

static void test_claims(void **state)
{
	(void)state;
	for (unsigned int w = SMALL; w <= TWO_PERIODS; w++) {
		const struct result r = run(w, HONEST);

		assert_true(r.bytes >= COVERED_MIN);
		assert_true(r.p3 >= COVERED_MIN);
		assert_true(r.objects >= OBJECTS_MIN);
		assert_true(fabs(r.z_bytes) <= Z_MAX);
		assert_true(fabs(r.z_count) <= Z_MAX);
		if (!workloads[w].group[1].count)
			continue;
		assert_true(r.of_total >= COVERED_MIN);
		assert_true(r.share >= COVERED_MIN);
	}
}

static void test_rejects_sum_then_unbias(void **state)
{
	(void)state;
	assert_true(fabs(run(MIXTURE, SUM_THEN_UNBIAS).z_bytes) > Z_MAX);
}

static void test_rejects_upper_with_s(void **state)
{
	(void)state;
	assert_true(run(SMALL, UPPER_WITH_S).bytes < COVERED_MIN);
	assert_true(run(FEW_LARGE, UPPER_WITH_S).bytes < COVERED_MIN);
}

static void test_rejects_no_lattice(void **state)
{
	(void)state;
	assert_true(run(MANY_LARGE, NO_LATTICE).p3 < COVERED_MIN);
}

static void test_rejects_gap_plus_one(void **state)
{
	const struct result r = run(SHORT_PERIOD, GAP_PLUS_ONE);

	(void)state;
	assert_true(fabs(r.z_bytes) > Z_MAX);
	assert_true(fabs(r.z_count) > Z_MAX);
}

static void test_rejects_one_period(void **state)
{
	(void)state;
	assert_true(fabs(run(TWO_PERIODS, ONE_PERIOD).z_bytes) > Z_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_rejects_sum_then_unbias),
		cmocka_unit_test(test_rejects_upper_with_s),
		cmocka_unit_test(test_rejects_no_lattice),
		cmocka_unit_test(test_rejects_gap_plus_one),
		cmocka_unit_test(test_rejects_one_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
