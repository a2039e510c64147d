/* SPDX-License-Identifier: MIT */
/* The table of mappings: numbers, room by the length of the file, parts that
 * are cut out, a lock that a signal handler finds taken by its own thread, and
 * one that was left. */
#include <errno.h>

#include "agent/file/livemaps.h"
#include "agent/sys/diag.h"
#include "agent/thread/thread.h"
#include "format/layout.h"
#include "support/test.h"

#define STEP 0x100000u

static struct sp_span make_span(uint64_t i)
{
	return (struct sp_span){.start = (1 + i) * STEP,
				.end = (1 + i) * STEP + STEP / 2,
				.number = sp_livemaps_number()};
}

static uint64_t losses(void)
{
	uint64_t all[SP_FORMAT_LOSSES];

	sp_diag_read(all);
	return all[SP_LOSS_MAP];
}

static int empty_table(void **state)
{
	(void)state;
	sp_livemaps_reset();
	sp_livemaps_begin(1ull << 30);
	return 0;
}

static size_t fill_table(size_t most)
{
	size_t n = 0;

	while (n < most) {
		const struct sp_span s = make_span(n);

		if (!sp_livemaps_put(&s))
			break;
		n++;
	}
	return n;
}

TEST_BETWEEN(room, empty_table, NULL)
{
	const struct sp_span again = {
		.start = STEP, .end = STEP + STEP / 2, .number = UINT64_MAX};

	assert_int_equal(fill_table(SIZE_MAX), SP_LIVEMAPS_MAX);
	/* One in the place of another needs none. */
	assert_true(sp_livemaps_put(&again));
	sp_livemaps_reset();
	/* 1 MiB has 16 chunks. */
	sp_livemaps_begin(1 << 20);
	assert_int_equal(fill_table(SIZE_MAX), 512);
	/* The lower half of the one that falls in two stays. */
	assert_int_equal(sp_livemaps_cut(STEP + 0x10000, STEP + 0x20000,
					 UINT64_MAX, NULL, NULL),
			 -ENOSPC);
	assert_int_equal(sp_livemaps_cut(0, UINT64_MAX, UINT64_MAX, NULL, NULL),
			 512);
	assert_false(sp_livemaps_any());
}

TEST_BETWEEN(numbers, empty_table, NULL)
{
	struct sp_span first, second;
	uint64_t before;

	assert_false(sp_livemaps_any());
	first = make_span(0);
	assert_int_equal(first.number, 1);
	assert_true(sp_livemaps_put(&first));
	assert_true(sp_livemaps_any());
	/* Unmapped, and mapped again by another thread before this one said
	 * so. */
	before = sp_livemaps_number();
	second = make_span(0);
	assert_true(sp_livemaps_put(&second));
	assert_int_equal(
		sp_livemaps_cut(first.start, first.end, before, NULL, NULL), 0);
	assert_true(sp_livemaps_any());
	assert_int_equal(sp_livemaps_cut(first.start, first.end,
					 sp_livemaps_number(), NULL, NULL),
			 1);
	assert_false(sp_livemaps_any());
}

/* What a signal handler would find. */
static void use_nested(void *arg, const struct sp_span *piece)
{
	const struct sp_span other = make_span(7);
	int *told = arg;

	(void)piece;
	++*told;
	assert_false(sp_livemaps_put(&other));
	assert_int_equal(sp_livemaps_cut(0, 1, 99, NULL, NULL), -EBUSY);
}

TEST_BETWEEN(nested, empty_table, NULL)
{
	int told = 0;

	assert_int_equal(fill_table(1), 1);
	assert_int_equal(
		sp_livemaps_cut(STEP, STEP + 0x10000, 99, use_nested, &told),
		1);
	assert_int_equal(told, 1);
	assert_true(sp_livemaps_any());
}

static jmp_buf out;

static void leave(void *arg, const struct sp_span *piece)
{
	(void)arg;
	(void)piece;
	longjmp(out, 1);
}

TEST_BETWEEN(left, empty_table, NULL)
{
	const uint64_t before = losses();

	assert_int_equal(fill_table(3), 3);
	/* Nobody has left. */
	sp_livemaps_give_left();
	assert_true(sp_livemaps_any());
	if (!setjmp(out))
		sp_livemaps_cut(0, UINT64_MAX, 99, leave, NULL);
	assert_int_equal(sp_livemaps_cut(0, 1, 99, NULL, NULL), -EBUSY);
	sp_livemaps_give_left();
	assert_false(sp_livemaps_any());
	assert_int_equal(losses(), before + 4);
	assert_int_equal(fill_table(3), 3);
}

TEST_MAIN(NULL, NULL)
