/* SPDX-License-Identifier: MIT */
/* Deltas of push: their sum is the exact total, whatever happens to the
 * estimates of the stacks; what was not committed is part of the next. */
#include "base/rng.h"
#include "serve/deltas.h"
#include "support/test.h"

#define STACKS 40u
#define ROUNDS 200u

static struct sp_frame frames[STACKS];
static struct sp_stack stacks[STACKS];
static struct sp_profile profile = {.stacks = stacks, .n_stacks = STACKS};

static void set_up(void)
{
	for (uint32_t i = 0; i < STACKS; i++) {
		frames[i] = (struct sp_frame){1, i};
		stacks[i] =
			(struct sp_stack){.frames = &frames[i], .n_frames = 1};
	}
}

static struct sp_row row(uint32_t stack, double bytes, double objects)
{
	struct sp_row r = {.stack = stack};

	r.alloc.est_bytes = bytes;
	r.alloc.est_count = objects;
	return r;
}

static uint64_t sum_of(const struct sp_row *rows, size_t n, bool of_objects)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const double v = of_objects ? rows[i].alloc.est_count
					    : rows[i].alloc.est_bytes;

		assert_true(v >= 0 && v == (double)(uint64_t)v);
		sum += (uint64_t)v;
	}
	return sum;
}

TEST(adds_up)
{
	struct sp_deltas *d = sp_deltas_new();
	struct sp_row rows[STACKS];
	double bytes[STACKS] = {0};
	uint64_t sent = 0, sent_objects = 0;
	struct sp_rng rng;

	set_up();
	sp_rng_init(&rng, 3, 0);
	profile.exact_alloc_bytes = profile.exact_alloc_objects = 0;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		size_t n = 0;

		/* Estimates go up, and sometimes down. */
		for (uint32_t k = 0; k < STACKS; k++) {
			bytes[k] += (double)(sp_rng_next(&rng) % 1000);
			if (sp_rng_next(&rng) % 8 == 0)
				bytes[k] *= 0.7;
			if (bytes[k] > 0)
				rows[n++] = row(k, bytes[k], bytes[k] / 3);
		}
		profile.exact_alloc_bytes += 12345 + i;
		profile.exact_alloc_objects += 4321;
		n = sp_deltas_take(d, &profile, rows, n);
		assert_in_range(n, 1, STACKS);
		assert_int_equal(sent + sum_of(rows, n, false),
				 profile.exact_alloc_bytes);
		assert_int_equal(sent_objects + sum_of(rows, n, true),
				 profile.exact_alloc_objects);
		assert_int_equal(sp_deltas_bytes(d), sum_of(rows, n, false));
		/* Every third was not taken. */
		if (i % 3 == 2)
			continue;
		sent += sum_of(rows, n, false);
		sent_objects += sum_of(rows, n, true);
		sp_deltas_commit(d);
		assert_int_equal(sp_deltas_missing(d, &profile), 0);
	}
	sp_deltas_free(d);
}

/* What grows gets it; what does not gets nothing, and goes. */
TEST(follows)
{
	struct sp_deltas *d = sp_deltas_new();
	struct sp_row rows[3] = {row(0, 100, 1), row(1, 300, 3)};

	set_up();
	profile.exact_alloc_bytes = 400;
	profile.exact_alloc_objects = 4;
	assert_int_equal(sp_deltas_take(d, &profile, rows, 2), 2);
	assert_int_equal((int)rows[0].alloc.est_bytes, 100);
	assert_int_equal((int)rows[1].alloc.est_bytes, 300);
	sp_deltas_commit(d);
	rows[0] = row(0, 90, 1);
	rows[1] = row(1, 300, 3);
	rows[2] = row(2, 80, 2);
	rows[1].inuse.est_bytes = 5;
	profile.exact_alloc_bytes = 470;
	profile.exact_alloc_objects = 6;
	assert_int_equal(sp_deltas_take(d, &profile, rows, 3), 2);
	assert_int_equal(rows[0].stack, 1);
	assert_int_equal((int)rows[0].alloc.est_bytes, 0);
	assert_int_equal((int)rows[0].inuse.est_bytes, 5);
	assert_int_equal(rows[1].stack, 2);
	assert_int_equal((int)rows[1].alloc.est_bytes, 70);
	assert_int_equal((int)rows[1].alloc.est_count, 2);
	sp_deltas_free(d);
}

/* Without a sample nothing can be sent; an earlier state sends nothing. */
TEST(nothing)
{
	struct sp_deltas *d = sp_deltas_new();
	struct sp_row one[1] = {row(0, 50, 1)};

	set_up();
	profile.exact_alloc_bytes = 70;
	profile.exact_alloc_objects = 2;
	assert_int_equal(sp_deltas_take(d, &profile, NULL, 0), 0);
	sp_deltas_commit(d);
	assert_int_equal(sp_deltas_missing(d, &profile), 70);
	assert_int_equal(sp_deltas_take(d, &profile, one, 1), 1);
	assert_int_equal((int)one[0].alloc.est_bytes, 70);
	sp_deltas_commit(d);
	profile.exact_alloc_bytes = 60;
	profile.exact_alloc_objects = 1;
	one[0] = row(0, 90, 1);
	assert_int_equal(sp_deltas_take(d, &profile, one, 1), 0);
	assert_int_equal(sp_deltas_missing(d, &profile), 0);
	sp_deltas_free(d);
}

TEST_MAIN(NULL, NULL)
