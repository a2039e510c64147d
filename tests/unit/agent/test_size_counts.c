/* SPDX-License-Identifier: MIT */
/* Totals by size, compared with a list of everything that was counted. */
#include <pthread.h>

#include "agent/thread/size_counts.h"
#include "base/rng.h"
#include "format/record.h"
#include "support/test.h"

#define FILE_ID 0x1234567890abcdefull

/* Upper ends of the classes as the words say: every 16 bytes up to 1 KiB, then
 * four to the doubling; the last has none. */
static uint64_t upper[SP_FORMAT_CLASSES];

static int make_upper(void **state)
{
	unsigned int at = 0;

	(void)state;
	for (uint64_t size = 16; size <= 1024; size += 16)
		upper[at++] = size;
	for (uint64_t low = 1024; at < SP_FORMAT_CLASSES; low *= 2)
		for (uint64_t i = 1; i <= 4 && at < SP_FORMAT_CLASSES; i++)
			upper[at++] = low + low / 4 * i;
	upper[SP_FORMAT_CLASSES - 1] = UINT64_MAX;
	return 0;
}

struct model {
	struct sp_class_total totals[SP_FORMAT_CLASSES];
};

static void model_count(struct model *m, uint64_t n)
{
	uint64_t size = n ? n : 1;
	unsigned int c = 0;

	while (size > upper[c])
		c++;
	m->totals[c].bytes += size;
	m->totals[c].objects++;
}

static void check_sum(const struct sp_size_counts *classes,
		      const struct model *m)
{
	struct sp_class_total got[SP_FORMAT_CLASSES];

	const struct sp_class_total all = sp_size_counts_sum(classes, got);
	struct sp_class_total want = {0};

	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		assert_true(got[c].bytes == m->totals[c].bytes);
		assert_true(got[c].objects == m->totals[c].objects);
		want.bytes += m->totals[c].bytes;
		want.objects += m->totals[c].objects;
	}
	assert_true(all.bytes == want.bytes && all.objects == want.objects);
}

static struct sp_size_counts *fresh(void)
{
	struct sp_size_counts *classes = calloc(1, sizeof(*classes));

	assert_non_null(classes);
	return classes;
}

static void count(struct sp_size_counts *classes, struct model *m, uint64_t n)
{
	sp_size_counts_count(classes, n);
	model_count(m, n);
}

/* Every small size, and both sides of every boundary. */
TEST(sizes)
{
	FREED struct sp_size_counts *classes = fresh();
	struct model m = {0};

	for (uint64_t n = 0; n <= 3000; n++) {
		count(classes, &m, n);
		check_sum(classes, &m);
	}
	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		count(classes, &m, upper[c] - 1);
		count(classes, &m, upper[c]);
		if (upper[c] != UINT64_MAX)
			count(classes, &m, upper[c] + 1);
		check_sum(classes, &m);
	}
}

TEST(random)
{
	FREED struct sp_size_counts *classes = fresh();
	struct model m = {0};
	struct sp_rng rng;

	sp_rng_init(&rng, 31, 1);
	for (unsigned int i = 0; i < 200000; i++) {
		uint64_t v = sp_rng_next(&rng);

		count(classes, &m, v >> 16 >> (v & 47));
	}
	check_sum(classes, &m);
}

static void *void_of_thread(void *arg)
{
	static _Thread_local int own;

	(void)arg;
	return sp_size_counts_void(&own);
}

/* Threads do not all get the same, and get nothing else. */
TEST(voids)
{
	enum { THREADS = 64 };
	pthread_t threads[THREADS];
	bool used[SP_SIZE_COUNTS_VOIDS] = {false};
	unsigned int distinct = 0;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, void_of_thread, NULL),
			0);
	for (int i = 0; i < THREADS; i++) {
		void *got;
		ptrdiff_t at;

		pthread_join(threads[i], &got);
		at = (struct sp_size_counts *)got - sp_size_counts_voids;
		assert_in_range(at, 0, SP_SIZE_COUNTS_VOIDS - 1);
		used[at] = true;
	}
	for (unsigned int i = 0; i < SP_SIZE_COUNTS_VOIDS; i++)
		distinct += used[i];
	/* Stacks may be used again as threads end: not all are distinct. */
	assert_true(distinct >= 2);
	distinct = 0;
	memset(used, 0, sizeof(used));
	for (uintptr_t i = 0; i < 64; i++)
		used[sp_size_counts_void((void *)(i << 23 | 0x6c0)) -
		     sp_size_counts_voids] = true;
	for (unsigned int i = 0; i < SP_SIZE_COUNTS_VOIDS; i++)
		distinct += used[i];
	assert_true(distinct >= SP_SIZE_COUNTS_VOIDS / 2);
}

static bool is_whole(const struct sp_class_page *page)
{
	const size_t head = offsetof(struct sp_class_page, classes);
	uint64_t bytes = 0, objects = 0;

	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		bytes += page->classes[c].bytes;
		objects += page->classes[c].objects;
	}
	return page->check ==
		       sp_format_check(FILE_ID, SP_CHECK_CLASSES, page, head) &&
	       page->alloc_bytes == bytes && page->alloc_objects == objects;
}

/* Two copies in turn: while one is written the other is whole. */
TEST(write)
{
	static _Alignas(8) uint8_t pair[2][SP_FORMAT_PAGE_BYTES];
	static uint8_t before[SP_FORMAT_PAGE_BYTES];
	FREED struct sp_size_counts *classes = fresh();
	struct model m = {0};

	for (uint64_t seq = 1; seq <= 8; seq++) {
		const struct sp_class_page *page =
			(const struct sp_class_page *)pair[seq & 1];

		for (uint64_t n = 1; n < 5000000; n = n * 2 + seq)
			count(classes, &m, n);
		memcpy(before, pair[~seq & 1], sizeof(before));
		sp_size_counts_write(classes, FILE_ID, 17, seq, pair[0]);
		assert_memory_equal(before, pair[~seq & 1], sizeof(before));
		assert_true(is_whole(page));
		assert_true(page->seq == seq && page->slot == 17);
		assert_memory_equal(page->classes, m.totals, sizeof(m.totals));
	}
}

/* A copy in which some counters are newer than the sums does not look whole. */
TEST(torn)
{
	static _Alignas(8) uint8_t old[2][SP_FORMAT_PAGE_BYTES];
	static _Alignas(8) uint8_t new[2][SP_FORMAT_PAGE_BYTES];
	FREED struct sp_size_counts *classes = fresh();
	struct model m = {0};

	for (uint64_t n = 0; n < 100000; n += 7)
		count(classes, &m, n);
	sp_size_counts_write(classes, FILE_ID, 1, 2, old[0]);
	for (uint64_t n = 0; n < 100000; n += 5)
		count(classes, &m, n);
	sp_size_counts_write(classes, FILE_ID, 1, 4, new[0]);
	/* The body is written from its beginning, then the head. */
	for (size_t at = offsetof(struct sp_class_page, classes) + 8;
	     at <= sizeof(struct sp_class_page); at += 8) {
		memcpy(old[0] + at - 8, new[0] + at - 8, 8);
		/* Beyond the largest object nothing changes. */
		assert_false(is_whole((const struct sp_class_page *)old[0]));
	}
	for (size_t at = 8; at <= offsetof(struct sp_class_page, classes);
	     at += 8) {
		assert_false(is_whole((const struct sp_class_page *)old[0]));
		memcpy(old[0] + at - 8, new[0] + at - 8, 8);
	}
	assert_true(is_whole((const struct sp_class_page *)old[0]));
}

TEST_MAIN(make_upper, NULL)
