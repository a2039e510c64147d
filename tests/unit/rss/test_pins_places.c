/* SPDX-License-Identifier: MIT */
/* Places that have something alive: pages and slabs, against a map of every
 * byte and of every slab. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "rss/places.h"
#include "support/test.h"

#define PAGE  4096u
#define PAGES 64u
#define BASE  (1ull << 32)

static struct sp_rss_taken taken[PAGES * PAGE / 16];
static size_t n_taken;

static void make_objects(uint64_t seed)
{
	uint64_t at = BASE + 8;
	struct sp_rng rng;

	sp_rng_init(&rng, seed, 0);
	n_taken = 0;
	for (;;) {
		const uint64_t bytes = 32 + sp_rng_next(&rng) % 16 * 16 +
				       (sp_rng_next(&rng) % 50 ? 0 : 9000);

		at += sp_rng_next(&rng) % 4 ? 0 : sp_rng_next(&rng) % 6000;
		at = at / 16 * 16 + 8;
		if (at + bytes > BASE + PAGES * PAGE)
			return;
		taken[n_taken++] = (struct sp_rss_taken){at, at + bytes};
		at += bytes;
	}
}

static void check_pages(const struct sp_rss_places *places)
{
	static bool used[PAGES * PAGE];
	size_t next = 0;

	memset(used, 0, sizeof(used));
	for (size_t i = 0; i < n_taken; i++)
		memset(used + (taken[i].start - BASE), true,
		       taken[i].end - taken[i].start);
	for (uint64_t page = 0; page < PAGES; page++) {
		const uint64_t start = BASE + page * PAGE, end = start + PAGE;
		size_t bytes = 0, n = 0, first = 0;

		for (size_t i = 0; i < PAGE; i++)
			bytes += used[page * PAGE + i];
		for (size_t i = 0; i < n_taken; i++)
			if (taken[i].start < end && taken[i].end > start) {
				first = n++ ? first : i;
			}
		if (!bytes || bytes == PAGE)
			continue;
		assert_true(next < places->n);
		assert_int_equal(places->list[next].start, start);
		assert_int_equal(places->list[next].end, end);
		assert_true(places->list[next].free_bytes ==
			    (double)(PAGE - bytes));
		assert_int_equal(places->list[next].first, first);
		assert_int_equal(places->list[next].n, n);
		next++;
	}
	assert_int_equal(next, places->n);
}

TEST(pages)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct sp_rss_places places = {0};

		make_objects(seed);
		assert_int_equal(
			sp_rss_places_of_pages(taken, n_taken, PAGE, &places),
			0);
		check_pages(&places);
		sp_rss_places_free(&places);
	}
}

/* Slabs of every class, side by side, some full, some empty; large objects
 * between them, and one where no slab has one. */
TEST(slabs)
{
	uint32_t classes[SP_RSS_SLAB_CLASSES];
	const size_t n_classes = sp_rss_places_classes(classes);
	struct sp_rss_places places = {0};
	double want[SP_RSS_SLAB_CLASSES];
	uint64_t starts[SP_RSS_SLAB_CLASSES];
	uint64_t at = BASE;
	struct sp_rng rng;
	size_t odd, n = 0;

	sp_rng_init(&rng, 5, 0);
	n_taken = 0;
	for (size_t c = 0; c < n_classes; c++) {
		uint64_t slab = PAGE, alive = 0;

		while (slab % classes[c])
			slab += PAGE;
		for (uint64_t k = 0; k < slab / classes[c]; k++) {
			if (sp_rng_next(&rng) % 4 && k)
				continue;
			alive++;
			taken[n_taken++] = (struct sp_rss_taken){
				at + k * classes[c], at + (k + 1) * classes[c]};
		}
		if (slab > alive * classes[c]) {
			starts[n] = at;
			want[n++] = (double)(slab - alive * classes[c]);
		}
		at += slab;
		taken[n_taken++] = (struct sp_rss_taken){at, at + 5 * PAGE};
		at += 5 * PAGE;
	}
	taken[n_taken++] = (struct sp_rss_taken){at + 16, at + 16 + 48};
	taken[n_taken++] =
		(struct sp_rss_taken){at + PAGE + 7, at + PAGE + 7 + 64};
	assert_int_equal(
		sp_rss_places_of_slabs(taken, n_taken, PAGE, &places, &odd), 0);
	assert_true(n > 20 && odd >= 1 && odd <= 2);
	assert_true(places.n >= n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(places.list[i].start, starts[i]);
		assert_true(places.list[i].free_bytes == want[i]);
		assert_true(places.list[i].share * (double)places.list[i].n ==
			    1);
	}
	sp_rss_places_free(&places);
}

TEST(classes)
{
	uint32_t classes[SP_RSS_SLAB_CLASSES];
	const size_t n = sp_rss_places_classes(classes);

	assert_int_equal(n, 36); /* as jemalloc says of 64 bits, 4 KiB */
	assert_int_equal(classes[0], 8);
	assert_int_equal(classes[n - 1], 14336);
	for (size_t i = 1; i < n; i++)
		assert_true(classes[i - 1] < classes[i]);
}

TEST_MAIN(NULL, NULL)
