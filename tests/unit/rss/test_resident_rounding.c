/* SPDX-License-Identifier: MIT */
/* What objects take of each allocator's memory: glibc's against the malloc of
 * this very process, the others' by their classes and behind them. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rss/rounding.h"
#include "support/sanitized.h"
#include "support/test.h"

static struct sp_rss_pages *own_pages(void)
{
	const struct sp_rss_maps maps = {.pid = (uint64_t)getpid()};
	struct sp_rss_pages *pages = sp_rss_pages_new(&maps);

	assert_non_null(pages);
	if (!sp_rss_pages_can_read(pages))
		skip();
	return pages;
}

/* malloc_usable_size is what is behind the header. */
TEST(glibc)
{
	struct sp_rss_rounding r = {.rule = SP_RSS_RULE_GLIBC};
	struct sp_rss_pages *pages;
	struct sp_rss_extent e;
	uint64_t n = 0;

	if (SP_SANITIZED) /* with a malloc of its own */
		skip();
	pages = own_pages();
	for (size_t bytes = 1; bytes < 1u << 20; bytes += bytes / 7 + 1, n++) {
		FREED unsigned char *p = malloc(bytes);

		assert_non_null(p);
		e = sp_rss_rounding_of(&r, pages, (uintptr_t)p, bytes);
		assert_true(e.start < (uintptr_t)p);
		assert_int_equal(e.end, (uintptr_t)p + malloc_usable_size(p));
	}
	assert_int_equal(r.objects, n);
	assert_int_equal(r.headers, n);
	assert_true(sp_rss_rounding_is_right(&r));
	sp_rss_pages_free(pages);
}

/* A guess is taken back where the headers are none. */
TEST(not_glibc)
{
	static uint64_t other[512];
	struct sp_rss_rounding r = {.rule = SP_RSS_RULE_GLIBC};
	struct sp_rss_pages *pages = own_pages();

	/* All of its pages are there. */
	memset(other, 0, sizeof(other));
	for (size_t i = 2; i < 512; i += 2)
		sp_rss_rounding_of(&r, pages, (uintptr_t)&other[i], 16);
	assert_int_equal(r.objects, 255);
	assert_int_equal(r.headers, 0);
	assert_false(sp_rss_rounding_is_right(&r));
	sp_rss_pages_free(pages);
}

static uint64_t taken(struct sp_rss_rounding *r, uint64_t bytes)
{
	const struct sp_rss_extent e =
		sp_rss_rounding_of(r, NULL, 1 << 20, bytes);

	assert_int_equal(e.start, 1 << 20);
	return e.end - e.start;
}

TEST(classes)
{
	static const uint32_t classes[] = {8,  16,  32,  48,  64, 80,
					   96, 112, 128, 160, 192};
	struct sp_rss_rounding r = {
		.rule = SP_RSS_RULE_DOUBLING, .classes = classes, .n = 11};

	assert_true(sp_rss_rounding_is_right(&r));
	assert_int_equal(taken(&r, 1), 8);
	assert_int_equal(taken(&r, 8), 8);
	assert_int_equal(taken(&r, 9), 16);
	assert_int_equal(taken(&r, 129), 160);
	assert_int_equal(taken(&r, 192), 192);
	/* 224, 256, 320, ... */
	assert_int_equal(taken(&r, 193), 224);
	assert_int_equal(taken(&r, 256), 256);
	assert_int_equal(taken(&r, 257), 320);
	assert_int_equal(taken(&r, (5 << 20) + 1), 6 << 20);
	r.rule = SP_RSS_RULE_PAGES;
	assert_int_equal(taken(&r, 192), 192);
	assert_int_equal(taken(&r, 193), 224);
	assert_int_equal(taken(&r, 257), 288);
}

/* A process may call anything its classes that is ascending. */
TEST(tiny_classes)
{
	static const uint32_t classes[] = {0, 1};
	struct sp_rss_rounding r = {
		.rule = SP_RSS_RULE_DOUBLING, .classes = classes, .n = 2};

	for (uint64_t bytes = 2; bytes <= 8; bytes++)
		assert_int_equal(taken(&r, bytes), bytes);
	assert_int_equal(taken(&r, 9), 10);
}

TEST(unknown)
{
	struct sp_rss_rounding r = {.rule = SP_RSS_RULE_NONE};

	assert_int_equal(sp_rss_rounding_of(&r, NULL, 1 << 20, 9).end, 0);
	assert_false(sp_rss_rounding_is_right(&r));
}

TEST_MAIN(NULL, NULL)
