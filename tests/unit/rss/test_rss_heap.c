/* SPDX-License-Identifier: MIT */
/* The rows of the heap: they add up whatever the figures say, contain their
 * values, and are what they have to be where all is known. */
#include "base/rng.h"
#include "rss/heap.h"
#include "support/test.h"

#define MIB (1ull << 20)

static struct sp_interval point(double v)
{
	return (struct sp_interval){v, v, v};
}

static void expect(const struct sp_rss_row *rows, enum sp_rss_row_name name,
		   uint64_t value)
{
	assert_true(rows[name].is_there);
	assert_int_equal((uint64_t)rows[name].bytes.value, value);
}

/* 100 MiB of heap, of which 10 are not resident; a large object. */
TEST(glibc)
{
	struct sp_rss_parts parts = {.n = 0};
	struct sp_rss_row rows[SP_RSS_ROWS] = {{.swap = 0}};
	const struct sp_control_memory memory = {.allocator =
							 SP_ALLOCATOR_GLIBC,
						 .free_bytes = 60 * MIB,
						 .system_bytes = 100 * MIB,
						 .large_bytes = 50 * MIB};
	struct sp_rss_objects objects = {.is_known = true,
					 .live = point(85 * MIB),
					 .untouched = point(45 * MIB)};

	parts.rss[SP_RSS_HEAP] = 90 * MIB;
	parts.rss[SP_RSS_LARGE] = 5 * MIB;
	parts.rss[SP_RSS_OTHER] = 7 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_KEPT, 50 * MIB);
	expect(rows, SP_RSS_ROW_ALIVE, 40 * MIB);
	expect(rows, SP_RSS_ROW_REST, 5 * MIB);
	expect(rows, SP_RSS_ROW_ANONYMOUS, 7 * MIB);
	/* Of the small objects 4 MiB were never touched: so much less of what
	 * is free is absent. */
	objects.untouched_small = point(4 * MIB);
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_KEPT, 54 * MIB);
	/* Zero in huge pages is not resident. */
	parts.zero[SP_RSS_HEAP] = 2 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_KEPT, 52 * MIB);
	expect(rows, SP_RSS_ROW_ALIVE, 40 * MIB);
	expect(rows, SP_RSS_ROW_REST, 1 * MIB);
}

/* Of 100 MiB, 60 are kept: 40 for what is alive and its rounding. */
TEST(rounding)
{
	struct sp_rss_parts parts = {.n = 0};
	struct sp_rss_row rows[SP_RSS_ROWS] = {{.swap = 0}};
	const struct sp_control_memory memory = {.allocator =
							 SP_ALLOCATOR_GLIBC,
						 .free_bytes = 60 * MIB,
						 .system_bytes = 100 * MIB};
	struct sp_rss_objects objects = {
		.is_known = true,
		.live = {30.0 * MIB, 24.0 * MIB, 36.0 * MIB},
		.has_rounding = true,
		.rounding = {6.0 * MIB, 4.0 * MIB, 9.0 * MIB}};

	parts.rss[SP_RSS_HEAP] = 100 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_ALIVE, 30 * MIB);
	expect(rows, SP_RSS_ROW_ROUNDING, 6 * MIB);
	expect(rows, SP_RSS_ROW_REST, 4 * MIB);
	assert_true(rows[SP_RSS_ROW_ROUNDING].bytes.lo == 4.0 * MIB);
	assert_true(rows[SP_RSS_ROW_ROUNDING].bytes.hi == 9.0 * MIB);
	assert_true(rows[SP_RSS_ROW_REST].bytes.lo == 0);
	assert_true(rows[SP_RSS_ROW_REST].bytes.hi == 12.0 * MIB);
	/* Twice as much does not fit: both lose alike, and the limits stay as
	 * far as there is room. */
	objects.live = (struct sp_interval){60.0 * MIB, 24.0 * MIB, 72.0 * MIB};
	objects.rounding =
		(struct sp_interval){20.0 * MIB, 4.0 * MIB, 30.0 * MIB};
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_ALIVE, 30 * MIB);
	expect(rows, SP_RSS_ROW_ROUNDING, 10 * MIB);
	expect(rows, SP_RSS_ROW_REST, 0);
	assert_true(rows[SP_RSS_ROW_ROUNDING].bytes.lo == 4.0 * MIB);
	assert_true(rows[SP_RSS_ROW_ROUNDING].bytes.hi == 16.0 * MIB);
	/* The rule is not known. */
	objects.has_rounding = false;
	objects.rounding = point(0);
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	assert_false(rows[SP_RSS_ROW_ROUNDING].is_there);
	expect(rows, SP_RSS_ROW_ALIVE, 40 * MIB);
}

/* It takes mappings like anybody else: up to 4 MiB for itself. */
/* A worker of a process that had allocated 50 MiB before the fork: what the
 * allocator has alive beyond the worker's own is that, and not its tables. */
TEST(before)
{
	struct sp_rss_parts parts = {.n = 0};
	struct sp_rss_row rows[SP_RSS_ROWS] = {{.swap = 0}};
	const struct sp_control_memory memory = {.allocator =
							 SP_ALLOCATOR_GLIBC,
						 .alive_bytes = 55 * MIB,
						 .free_bytes = 10 * MIB,
						 .system_bytes = 65 * MIB};
	struct sp_rss_objects objects = {
		.is_known = true,
		.live = {5.0 * MIB, 4.0 * MIB, 6.0 * MIB},
		.has_rounding = true,
		.rounding = point(0)};

	parts.rss[SP_RSS_HEAP] = 65 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	assert_false(rows[SP_RSS_ROW_BEFORE].is_there);
	expect(rows, SP_RSS_ROW_REST, 50 * MIB);
	for (objects.before = SP_UNSEEN_FORK; objects.before <= SP_UNSEEN_OFF;
	     objects.before++) {
		sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
		expect(rows, SP_RSS_ROW_ALIVE, 5 * MIB);
		expect(rows, SP_RSS_ROW_KEPT, 10 * MIB);
		expect(rows, SP_RSS_ROW_BEFORE, 50 * MIB);
		expect(rows, SP_RSS_ROW_REST, 0);
		assert_true(rows[SP_RSS_ROW_BEFORE].bytes.lo ==
			    49.0 * MIB - 240128);
		assert_true(rows[SP_RSS_ROW_BEFORE].bytes.hi == 51.0 * MIB);
		assert_true(rows[SP_RSS_ROW_REST].bytes.hi == 240128);
	}
	/* what a thread's cache may hold is not claimed */
	objects.live = point(55 * MIB - 240128);
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	assert_false(rows[SP_RSS_ROW_BEFORE].is_there);
	sp_rss_heap_fill(&parts, &memory, &objects, 0, rows);
	expect(rows, SP_RSS_ROW_BEFORE, 240128);
}

TEST(jemalloc)
{
	struct sp_rss_parts parts = {.n = 0};
	struct sp_rss_row rows[SP_RSS_ROWS] = {{.swap = 0}};
	const struct sp_control_memory memory = {.allocator =
							 SP_ALLOCATOR_JEMALLOC,
						 .free_bytes = 60 * MIB,
						 .system_bytes = 104 * MIB,
						 .own_bytes = 4 * MIB};
	struct sp_rss_objects objects = {.is_known = true,
					 .live = point(35 * MIB),
					 .around_bytes = 101 * MIB};

	parts.rss[SP_RSS_OTHER] = 150 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_KEPT, 60 * MIB);
	expect(rows, SP_RSS_ROW_ALIVE, 35 * MIB);
	expect(rows, SP_RSS_ROW_REST, 6 * MIB);
	expect(rows, SP_RSS_ROW_ANONYMOUS, 49 * MIB);
	assert_true(rows[SP_RSS_ROW_ANONYMOUS].bytes.lo == 46.0 * MIB);
	assert_true(rows[SP_RSS_ROW_ANONYMOUS].bytes.hi == 50.0 * MIB);
	/* Its mappings have others beside them. */
	objects.around_bytes = 140 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_ANONYMOUS, 46 * MIB);
	/* 2 MiB less than it counts at the least: it may be that they are of
	 * what is free, and were never written to. */
	objects.around_bytes = 98 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_ANONYMOUS, 50 * MIB);
	assert_true(rows[SP_RSS_ROW_ANONYMOUS].bytes.lo == 46.0 * MIB);
	assert_true(rows[SP_RSS_ROW_ANONYMOUS].bytes.hi == 52.0 * MIB);
	/* No more than that is free. */
	objects.around_bytes = 0;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	assert_true(rows[SP_RSS_ROW_ANONYMOUS].bytes.hi == 110.0 * MIB);
	/* Nothing is sampled: then by what it says. */
	objects = (struct sp_rss_objects){.is_known = false};
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_HEAP, 100 * MIB);
}

/* Without any count: objects at least, their mappings at most. */
TEST(unknown)
{
	struct sp_rss_parts parts = {.n = 0};
	struct sp_rss_row rows[SP_RSS_ROWS] = {{.swap = 0}};
	const struct sp_control_memory memory = {.allocator = 0};
	const struct sp_rss_objects objects = {
		.is_known = true,
		.live = {20.0 * MIB, 15.0 * MIB, 25.0 * MIB},
		.elsewhere = {20.0 * MIB, 15.0 * MIB, 25.0 * MIB},
		.around_bytes = 30 * MIB};

	parts.rss[SP_RSS_OTHER] = 100 * MIB;
	sp_rss_heap_fill(&parts, &memory, &objects, 1, rows);
	expect(rows, SP_RSS_ROW_ALIVE, 20 * MIB);
	expect(rows, SP_RSS_ROW_REST, 10 * MIB);
	expect(rows, SP_RSS_ROW_ANONYMOUS, 70 * MIB);
	assert_false(rows[SP_RSS_ROW_KEPT].is_there);
	assert_true(rows[SP_RSS_ROW_ANONYMOUS].bytes.hi == 85.0 * MIB);
}

static struct sp_interval random_interval(struct sp_rng *rng)
{
	const double lo = (double)(sp_rng_next(rng) % (200 * MIB));
	const double value = lo + (double)(sp_rng_next(rng) % (50 * MIB));

	return (struct sp_interval){
		value, lo, value + (double)(sp_rng_next(rng) % (50 * MIB))};
}

/* Figures of different moments fit in no way. */
TEST(adds_up)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 7, 0);
	for (int i = 0; i < 20000; i++) {
		struct sp_rss_parts parts = {.n = 0};
		struct sp_rss_row rows[SP_RSS_ROWS] = {{.swap = 0}};
		const struct sp_control_memory memory = {
			.allocator = sp_rng_next(&rng) % 4,
			.alive_bytes = sp_rng_next(&rng) % (300 * MIB),
			.free_bytes = sp_rng_next(&rng) % (300 * MIB),
			.system_bytes = sp_rng_next(&rng) % (300 * MIB),
			.large_bytes = sp_rng_next(&rng) % (300 * MIB),
			.own_bytes = sp_rng_next(&rng) % (30 * MIB)};
		const struct sp_rss_objects objects = {
			.is_known = sp_rng_next(&rng) % 4,
			.live = random_interval(&rng),
			.untouched = random_interval(&rng),
			.untouched_small = random_interval(&rng),
			.rounding = random_interval(&rng),
			.has_rounding = sp_rng_next(&rng) % 2,
			.before = sp_rng_next(&rng) % 4,
			.elsewhere = random_interval(&rng),
			.around_bytes = sp_rng_next(&rng) % (300 * MIB)};
		double sum = 0, whole = 0;

		for (int k = SP_RSS_HEAP; k <= SP_RSS_OTHER; k++) {
			parts.rss[k] = sp_rng_next(&rng) % (100 * MIB);
			parts.zero[k] = parts.rss[k] / 3;
			whole += (double)(parts.rss[k] - parts.zero[k]);
		}
		sp_rss_heap_fill(&parts, &memory, &objects,
				 sp_rng_next(&rng) % 100, rows);
		for (int k = 0; k < SP_RSS_ROWS; k++) {
			const struct sp_interval *b = &rows[k].bytes;

			assert_true(b->lo >= 0 && b->lo <= b->value &&
				    b->value <= b->hi);
			assert_true(b->value == (double)(uint64_t)b->value);
			sum += b->value;
		}
		assert_true(sum == whole);
	}
}

TEST_MAIN(NULL, NULL)
