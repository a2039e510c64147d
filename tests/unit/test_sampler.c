/* SPDX-License-Identifier: MIT */
/* The integer logarithm beside long double, and the pass logic beside a walk
 * over every byte.  Whether the law is true is asked in tests/stat. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/sampler.h"
#include "support/golden.h"

#define K_END (1ull << 53)

static void test_golden(void **state)
{
	const json_t *rows = golden_rows(golden_root, "gap_from_u53");
	const json_t *row;
	size_t i;

	(void)state;
	json_array_foreach(rows, i, row)
	{
		uint64_t k = (uint64_t)json_integer_value(golden_get(row, "k"));
		uint64_t r = (uint64_t)json_integer_value(golden_get(row, "R"));
		uint64_t want =
			(uint64_t)json_integer_value(golden_get(row, "gap"));

		if (sp_sampler_gap(k, r) != want)
			fail_msg("k %llu, R %llu: %llu instead of %llu",
				 (unsigned long long)k, (unsigned long long)r,
				 (unsigned long long)sp_sampler_gap(k, r),
				 (unsigned long long)want);
	}
}

/*
 * floor(v) with v known to within e: the promise is 2^-56 for the logarithm,
 * and long double adds 2^-62 of the value.
 */
static void check_gap(uint64_t k, uint64_t period)
{
	long double v = -logl((long double)(2 * k + 1) * 0x1p-54L) * period;
	long double e = 0x1p-56L * period + v * 0x1p-62L;
	uint64_t low = v > e ? (uint64_t)floorl(v - e) : 0;
	uint64_t high = (uint64_t)floorl(v + e);
	uint64_t got = sp_sampler_gap(k, period);

	if (got < low || got > high)
		fail_msg("k %llu, R %llu: %llu, expected %llu..%llu",
			 (unsigned long long)k, (unsigned long long)period,
			 (unsigned long long)got, (unsigned long long)low,
			 (unsigned long long)high);
}

static void test_logarithm(void **state)
{
	static const uint64_t periods[] = {
		2,
		3,
		7,
		255,
		256,
		4096,
		102400,
		524287,
		524288,
		1ull << 30,
		1000003,
		1ull << 39,
		(1ull << 40) - 1,
		1ull << 40,
	};
	enum { N = sizeof(periods) / sizeof(periods[0]) };
	struct sp_rng rng;

	(void)state;
	sp_rng_init(&rng, 6, 1);
	for (int i = 0; i < 1000000; i++)
		check_gap(sp_rng_next(&rng) >> 11, periods[i % N]);
	/* Every magnitude of k, where few random ones fall. */
	for (int i = 0; i < 100000; i++)
		check_gap(sp_rng_next(&rng) >> (11 + i % 53), periods[i % N]);
	for (size_t i = 0; i < N; i++) {
		for (uint64_t k = 0; k < 1000; k++) {
			check_gap(k, periods[i]);
			check_gap(K_END - 1 - k, periods[i]);
			/* Where the series changes its argument. */
			check_gap(6369051672525772u - 500 + k, periods[i]);
			check_gap(6369051672525772u / 2 - 500 + k, periods[i]);
			check_gap(K_END / 2 - 500 + k, periods[i]);
		}
	}
}

/* A greater uniform is a shorter gap. */
static void test_monotonic(void **state)
{
	struct sp_rng rng;

	(void)state;
	sp_rng_init(&rng, 6, 2);
	for (int i = 0; i < 200000; i++) {
		uint64_t k = sp_rng_next(&rng) >> (11 + i % 53);
		uint64_t step = 1 + (sp_rng_next(&rng) >> (12 + i % 52));

		if (k + step < K_END)
			assert_true(sp_sampler_gap(k + step, 1ull << 40) <=
				    sp_sampler_gap(k, 1ull << 40));
	}
}

/* The draw is the gap of the upper 53 bits, one number of the generator. */
static void test_draw(void **state)
{
	struct sp_rng rng, copy;

	(void)state;
	sp_rng_init(&rng, 6, 3);
	copy = rng;
	for (int i = 0; i < 1000; i++)
		assert_true(sp_sampler_draw(&rng, 4096) ==
			    sp_sampler_gap(sp_rng_next(&copy) >> 11, 4096));
}

/*
 * The model walks over the bytes one by one, with the gap as a countdown.
 * `used` bytes belong to objects that passed; if the hit byte was among them,
 * as after a signal handler, the object's first byte takes the hit.
 */
static bool model_pass(struct sp_rng *rng, uint64_t *countdown, uint64_t period,
		       uint64_t used, uint64_t size, uint64_t *ret_offset)
{
	bool hit = false;

	for (uint64_t byte = 0; byte < used + size; byte++) {
		if (*countdown > 0) {
			(*countdown)--;
			continue;
		}
		hit = true;
		*ret_offset = byte < used ? 0 : byte - used;
		break;
	}
	if (hit)
		*countdown = sp_sampler_gap(sp_rng_next(rng) >> 11, period);
	return hit;
}

static void check_pass(uint64_t period, uint64_t sizes, bool beyond)
{
	struct sp_rng rng, copy, random;
	uint64_t gap, countdown;
	struct sp_sampler sampler = {&rng, &gap, period};
	unsigned int hits = 0;

	sp_rng_init(&random, 6, period);
	sp_rng_init(&rng, 7, period);
	gap = sp_sampler_draw(&rng, period);
	countdown = gap;
	copy = rng;
	for (int i = 0; i < 20000; i++) {
		uint64_t size = 1 + sp_rng_next(&random) % sizes;
		uint64_t used = sp_rng_next(&random) % (2 * sizes);
		uint64_t got = 999999, want = 999999;
		bool hit, model;

		if (used > gap && !beyond)
			used = gap;
		hit = sp_sampler_pass(&sampler, used, size, &got);
		model = model_pass(&copy, &countdown, period, used, size,
				   &want);
		assert_int_equal(hit, model);
		assert_true(got == want);
		assert_true(gap == countdown);
		hits += hit;
	}
	assert_true(hits > 100);
}

static void test_pass(void **state)
{
	(void)state;
	check_pass(2, 4, false);
	check_pass(64, 16, false);
	check_pass(64, 300, false);
	check_pass(512, 100, false);
	check_pass(4096, 2000, false);
	check_pass(64, 16, true);
	check_pass(512, 100, true);
}

/* Period 1 records every object at its first byte and draws nothing. */
static void test_period_one(void **state)
{
	struct sp_rng rng, before;
	uint64_t gap, offset = 5;
	struct sp_sampler sampler = {&rng, &gap, 1};

	(void)state;
	sp_rng_init(&rng, 6, 4);
	before = rng;
	assert_true(sp_sampler_gap(0, 1) == 0);
	assert_true(sp_sampler_gap(K_END - 1, 1) == 0);
	gap = sp_sampler_draw(&rng, 1);
	for (uint64_t size = 1; size < 1000; size++) {
		assert_true(gap == 0);
		assert_true(sp_sampler_pass(&sampler, 0, size, &offset));
		assert_true(offset == 0);
	}
	assert_memory_equal(&rng, &before, sizeof(rng));
}

/* Sizes near the end of the range. */
static void test_huge(void **state)
{
	struct sp_rng rng;
	uint64_t gap = 1000, offset = 5;
	struct sp_sampler sampler = {&rng, &gap, 512};

	(void)state;
	sp_rng_init(&rng, 6, 5);
	assert_true(sp_sampler_pass(&sampler, 10, UINT64_MAX, &offset));
	assert_true(offset == 990);
	gap = UINT64_MAX;
	assert_false(sp_sampler_pass(&sampler, 0, UINT64_MAX, &offset));
	assert_true(gap == 0);
	gap = 7;
	assert_false(sp_sampler_pass(&sampler, 3, 4, &offset));
	assert_true(gap == 0);
	assert_true(sp_sampler_pass(&sampler, 0, 1, &offset));
	assert_true(offset == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_logarithm),
		cmocka_unit_test(test_monotonic),
		cmocka_unit_test(test_draw),
		cmocka_unit_test(test_pass),
		cmocka_unit_test(test_period_one),
		cmocka_unit_test(test_huge),
	};

	return cmocka_run_group_tests(tests, golden_load, golden_drop);
}
