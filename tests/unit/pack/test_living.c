/* SPDX-License-Identifier: MIT */
/* The table of living samples beside a plain list. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "pack/living.h"

#define MODEL 3000

static struct sp_living_sample model[MODEL];
static size_t n_model;
static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

static size_t model_find(uint64_t id)
{
	size_t i = 0;

	while (i < n_model && model[i].id != id)
		i++;
	return i;
}

static void check_all(const struct sp_living *l)
{
	size_t n = 0;

	assert_int_equal(l->n, n_model);
	for (size_t i = 0; i < l->n_cells; i++)
		n += l->cells[i].group != 0;
	assert_int_equal(n, n_model);
	for (size_t i = 0; i < n_model; i++) {
		const struct sp_living_sample *s =
			sp_living_find(l, model[i].id);

		assert_non_null(s);
		assert_memory_equal(s, &model[i], sizeof(*s));
	}
}

/* Add and drop by turns, more of the one for a while, then of the other. */
static void check(uint64_t (*draw)(void))
{
	struct sp_living l = {.key = 0x1234567};

	n_model = 0;
	sp_rng_init(&rng, 7, 0);
	assert_null(sp_living_find(&l, 0));
	for (unsigned int i = 0; i < 20000; i++) {
		const uint64_t id = draw();
		const size_t known = model_find(id);
		const struct sp_living_sample sample = {.id = id,
							.born_ns = i,
							.offset_bytes = i % 7,
							.group = 1 + i,
							.object = i % 3};

		if (known < n_model && below(3) > i / 5000 % 2) {
			assert_int_equal(sp_living_add(&l, &sample), -EEXIST);
		} else if (known < n_model) {
			sp_living_drop(&l, sp_living_find(&l, id));
			model[known] = model[--n_model];
		} else if (n_model < MODEL) {
			assert_null(sp_living_find(&l, id));
			assert_int_equal(sp_living_add(&l, &sample), 0);
			model[n_model++] = sample;
		}
		if (i % 512 == 0)
			check_all(&l);
	}
	check_all(&l);
	while (n_model) {
		sp_living_drop(&l, sp_living_find(&l, model[--n_model].id));
		assert_null(sp_living_find(&l, model[n_model].id));
	}
	check_all(&l);
	sp_living_done(&l);
}

static uint64_t draw_near(void)
{
	return 1000000 + below(2000);
}

/* Of eight neighbours always the same one, up to the largest id. */
static uint64_t draw_far(void)
{
	return UINT64_MAX - (below(2000) << 3);
}

static void test_near(void **state)
{
	(void)state;
	check(draw_near);
}

static void test_far(void **state)
{
	(void)state;
	check(draw_far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
