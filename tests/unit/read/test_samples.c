/* SPDX-License-Identifier: MIT */
/* Samples and their frees in any order, beside a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "read/samples.h"

static struct sp_samples samples;

static void add(uint64_t id, uint64_t born_ns)
{
	struct sp_sample s = {
		.id = id,
		.born_ns = born_ns,
		.size_bytes = 1 + id % 1000,
		.period_bytes = 4096,
		.thread = 7,
		/* What is said here of the end means nothing. */
		.freed_ns = 5,
		.age_bytes = 5,
		.freed_by = 5,
		.free_missed = true,
	};

	assert_int_equal(sp_samples_add(&samples, &s), 0);
}

static void add_free(uint64_t id, uint64_t time_ns, uint64_t age_bytes)
{
	struct sp_samples_free event = {
		.id = id,
		.time_ns = time_ns,
		.age_bytes = age_bytes,
		.thread = 9,
	};

	assert_int_equal(sp_samples_add_free(&samples, &event), 0);
}

static struct sp_sample *join(size_t want_n, uint64_t want_unmatched)
{
	struct sp_sample *all;
	uint64_t unmatched;
	size_t n;

	sp_samples_join(&samples, &all, &n, &unmatched);
	sp_samples_done(&samples);
	assert_int_equal(n, want_n);
	assert_int_equal(unmatched, want_unmatched);
	return all;
}

static void is_alive(const struct sp_sample *s)
{
	assert_int_equal(s->freed_ns, SP_NEVER);
	assert_int_equal(s->age_bytes, SP_UNKNOWN);
	assert_int_equal(s->freed_by, UINT32_MAX);
	assert_false(s->free_missed);
}

static void test_none(void **state)
{
	(void)state;
	free(join(0, 0));
	add_free(1, 1, 1);
	free(join(0, 1));
}

static void test_one(void **state)
{
	struct sp_sample *all;

	(void)state;
	add_free(3, 50, 12);
	add(3, 40);
	all = join(1, 0);
	assert_int_equal(all[0].freed_ns, 50);
	assert_int_equal(all[0].age_bytes, 12);
	assert_int_equal(all[0].freed_by, 9);
	assert_int_equal(all[0].thread, 7);
	assert_int_equal(all[0].size_bytes, 4);
	assert_false(all[0].free_missed);
	free(all);

	add(3, 40);
	all = join(1, 0);
	is_alive(all);
	free(all);
}

/* Ids between, before and behind those that are there. */
static void test_holes(void **state)
{
	static const uint64_t ids[] = {5, 6, 9, 1ull << 60, UINT64_MAX};
	static const uint64_t none[] = {0,
					1,
					4,
					7,
					8,
					10,
					1ull << 59,
					(1ull << 60) + 1,
					UINT64_MAX - 1};
	struct sp_sample *all;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		add(ids[4 - i], 10);
	for (size_t i = 0; i < 9; i++)
		add_free(none[i], 20, 0);
	for (size_t i = 0; i < 5; i++)
		add_free(ids[i], 30 + i, 0);
	all = join(5, 9);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(all[i].id, ids[i]);
		assert_int_equal(all[i].freed_ns, 30 + i);
	}
	free(all);
}

/* What only a forged file has: an id twice, a free before the birth, a time
 * that means never. */
static void test_odd(void **state)
{
	struct sp_sample *all;

	(void)state;
	add(2, 100);
	add(1, 100);
	add(2, 90);
	add_free(1, 99, 0);
	add_free(2, SP_NEVER - 1, 0);
	all = join(2, 0);
	assert_int_equal(all[0].freed_ns, 100);
	assert_int_equal(all[1].born_ns, 90);
	assert_int_equal(all[1].freed_ns, SP_NEVER - 1);
	free(all);
}

/* Of two frees of one sample the earlier is meant, wherever it stands. */
static void test_twice(void **state)
{
	struct sp_sample *all;

	(void)state;
	for (uint64_t id = 1; id <= 2; id++) {
		add(id, 10);
		add_free(id, id == 1 ? 20 : 30, id);
		add_free(id, id == 1 ? 30 : 20, id + 2);
	}
	all = join(2, 2);
	assert_int_equal(all[0].freed_ns, 20);
	assert_int_equal(all[0].age_bytes, 1);
	assert_int_equal(all[1].freed_ns, 20);
	assert_int_equal(all[1].age_bytes, 4);
	free(all);
}

#define IDS 3000u

/* Random files: nearly ordered or not at all, with few or many holes. */
static void check_random(struct sp_rng *rng, unsigned int holes_percent,
			 bool shuffled)
{
	static uint64_t born[IDS + 1], freed[IDS + 1];
	uint64_t n = 0, unmatched = 0, at = 0;
	struct sp_sample *all;

	for (uint64_t i = 0; i < IDS; i++) {
		/* 1777 and 3000 have no common divisor. */
		uint64_t id = 1 + (shuffled ? i * 1777 % IDS : i);
		bool is_freed = sp_rng_next(rng) % 2;

		born[id] = 0;
		freed[id] =
			is_freed ? 1000 + sp_rng_next(rng) % 1000 : SP_NEVER;
		if (is_freed && i % 2)
			add_free(id, freed[id], id);
		if (sp_rng_next(rng) % 100 >= holes_percent) {
			born[id] = 1 + sp_rng_next(rng) % 999;
			add(id, born[id]);
			n++;
		} else {
			unmatched += is_freed;
		}
		if (is_freed && i % 2 == 0)
			add_free(id, freed[id], id);
	}
	all = join(n, unmatched);
	for (uint64_t id = 1; id <= IDS; id++) {
		if (!born[id])
			continue;
		assert_int_equal(all[at].id, id);
		assert_int_equal(all[at].born_ns, born[id]);
		assert_int_equal(all[at].freed_ns, freed[id]);
		if (freed[id] == SP_NEVER)
			is_alive(&all[at]);
		else
			assert_int_equal(all[at].age_bytes, id);
		at++;
	}
	free(all);
}

static void test_random(void **state)
{
	struct sp_rng rng;

	(void)state;
	sp_rng_init(&rng, 12, 1);
	for (unsigned int holes = 0; holes < 100; holes += 9) {
		check_random(&rng, holes, false);
		check_random(&rng, holes, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),  cmocka_unit_test(test_one),
		cmocka_unit_test(test_holes), cmocka_unit_test(test_odd),
		cmocka_unit_test(test_twice), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
