/* SPDX-License-Identifier: MIT */
/* The table of open samples compared with a plain list. */
#include <errno.h>

#include "base/rng.h"
#include "pack/open_samples.h"
#include "support/test.h"

#define MODEL 3000

static struct sp_open_sample model[MODEL];
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

static void check_all(const struct sp_open_samples *l)
{
	size_t n = 0;

	assert_int_equal(l->n, n_model);
	for (size_t i = 0; i < l->n_cells; i++)
		n += sp_open_samples_cell(l, i)->group != 0;
	assert_int_equal(n, n_model);
	for (size_t i = 0; i < n_model; i++) {
		const struct sp_open_sample *s =
			sp_open_samples_find(l, model[i].id);

		assert_non_null(s);
		assert_memory_equal(s, &model[i],
				    l->is_brief ? offsetof(typeof(*s), born_ns)
						: sizeof(*s));
	}
}

/* Add and drop by turns, more of the one for a while, then of the other. */
static void check_cells(uint64_t (*draw)(void), bool is_brief)
{
	FREED_BY(sp_open_samples_done)
	struct sp_open_samples l = {.key = 0x1234567, .is_brief = is_brief};

	n_model = 0;
	sp_rng_init(&rng, 7, 0);
	assert_null(sp_open_samples_find(&l, 0));
	for (unsigned int i = 0; i < 20000; i++) {
		const uint64_t id = draw();
		const size_t known = model_find(id);
		const struct sp_open_sample sample = {.id = id,
						      .born_ns = i,
						      .offset_bytes = i % 7,
						      .group = 1 + i,
						      .object = i % 3};

		if (known < n_model && below(3) > i / 5000 % 2) {
			assert_int_equal(sp_open_samples_add(&l, &sample),
					 -EEXIST);
		} else if (known < n_model) {
			sp_open_samples_drop(&l, sp_open_samples_find(&l, id));
			model[known] = model[--n_model];
		} else if (n_model < MODEL) {
			assert_null(sp_open_samples_find(&l, id));
			assert_int_equal(sp_open_samples_add(&l, &sample), 0);
			model[n_model++] = sample;
		}
		if (i % 512 == 0)
			check_all(&l);
	}
	check_all(&l);
	while (n_model) {
		sp_open_samples_drop(
			&l, sp_open_samples_find(&l, model[--n_model].id));
		assert_null(sp_open_samples_find(&l, model[n_model].id));
	}
	check_all(&l);
}

static void check(uint64_t (*draw)(void))
{
	check_cells(draw, false);
	check_cells(draw, true);
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

TEST(near)
{
	check(draw_near);
}

TEST(far)
{
	check(draw_far);
}

TEST_MAIN(NULL, NULL)
