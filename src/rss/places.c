/* SPDX-License-Identifier: MIT */
#include "rss/places.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

void sp_rss_places_free(struct sp_rss_places *places)
{
	free(places->list);
}

int sp_rss_places_add(struct sp_rss_places *p, const struct sp_rss_place *place)
{
	if (sp_array_reserve((void **)&p->list, &p->room, p->n,
			     sizeof(*p->list)) < 0)
		return -ENOMEM;
	p->list[p->n++] = *place;
	return 0;
}

/* ---- pages ---- */

struct page {
	uint64_t number;
	uint64_t taken_bytes;
	size_t first, n;
};

static int end_page(const struct page *page, uint64_t page_bytes,
		    struct sp_rss_places *ret)
{
	const struct sp_rss_place place = {
		.start = page->number * page_bytes,
		.end = (page->number + 1) * page_bytes,
		.free_bytes = (double)(page_bytes - page->taken_bytes),
		.first = page->first,
		.n = page->n,
		.share = page->n ? 1 / (double)page->n : 0,
	};

	if (!page->n || page->taken_bytes == page_bytes)
		return 0;
	return sp_rss_places_add(ret, &place);
}

static void add_to_page(struct page *page, uint64_t bytes)
{
	page->taken_bytes += bytes;
	page->n++;
}

int sp_rss_places_of_pages(const struct sp_rss_taken *taken, size_t n,
			   uint64_t page_bytes, struct sp_rss_places *ret)
{
	struct page page = {.n = 0};
	uint64_t done = 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const uint64_t end = taken[i].end;
		const uint64_t start =
			taken[i].start > done ? taken[i].start : done;
		uint64_t first, last;

		if (end <= start)
			continue;
		first = start / page_bytes;
		last = (end - 1) / page_bytes;
		if (first != page.number || !page.n) {
			r = end_page(&page, page_bytes, ret);
			page = (struct page){.number = first, .first = i};
		}
		add_to_page(&page, last > first
					   ? (first + 1) * page_bytes - start
					   : end - start);
		if (last > first && r == 0) {
			r = end_page(&page, page_bytes, ret);
			page = (struct page){.number = last, .first = i};
			add_to_page(&page, end - last * page_bytes);
		}
		done = end;
	}
	return r ? r : end_page(&page, page_bytes, ret);
}

/* ---- slabs ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct slab {
	uint64_t start, end;
	uint64_t object_bytes;
};

/* False: no slab has an object of that length there. */
static bool find_slab(const struct sp_rss_taken *t, uint64_t page_bytes,
		      struct slab *ret)
{
	const uint64_t bytes = t->end - t->start;
	const uint64_t n = page_bytes / common_divisor(bytes, page_bytes);

	for (uint64_t k = 0; k < n && k * bytes <= t->start; k++) {
		const uint64_t start = t->start - k * bytes;

		if (start % page_bytes)
			continue;
		*ret = (struct slab){start, start + n * bytes, bytes};
		return true;
	}
	return false;
}

bool sp_rss_places_slab(const struct sp_rss_taken *taken, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end)
{
	struct slab slab;

	if (taken->end <= taken->start || !find_slab(taken, page_bytes, &slab))
		return false;
	*ret_start = slab.start;
	*ret_end = slab.end;
	return true;
}

static int end_slab(const struct slab *slab, size_t first, size_t n,
		    struct sp_rss_places *ret)
{
	const uint64_t all = slab->end - slab->start;
	const uint64_t taken = n * slab->object_bytes;
	const struct sp_rss_place place = {
		.start = slab->start,
		.end = slab->end,
		.free_bytes = (double)(all - (taken < all ? taken : all)),
		.first = first,
		.n = n,
		.share = n ? 1 / (double)n : 0,
	};

	return n && taken < all ? sp_rss_places_add(ret, &place) : 0;
}

int sp_rss_places_of_slabs(const struct sp_rss_taken *taken, size_t n,
			   uint64_t page_bytes, struct sp_rss_places *ret,
			   size_t *ret_others)
{
	struct slab slab = {0};
	size_t first = 0, many = 0;
	int r = 0;

	*ret_others = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (taken[i].end <= taken[i].start ||
		    taken[i].end - taken[i].start > SP_RSS_SLAB_OBJECT_MAX)
			continue;
		if (taken[i].start >= slab.start && taken[i].start < slab.end) {
			many++;
			continue;
		}
		r = end_slab(&slab, first, many, ret);
		first = i;
		many = find_slab(&taken[i], page_bytes, &slab);
		if (!many) {
			slab = (struct slab){0};
			++*ret_others;
		}
	}
	return r ? r : end_slab(&slab, first, many, ret);
}

size_t sp_rss_places_classes(uint32_t ret[SP_RSS_SLAB_CLASSES])
{
	size_t n = 0;

	ret[n++] = 8;
	for (uint32_t bytes = 16; bytes < 128; bytes += 16)
		ret[n++] = bytes;
	for (uint32_t base = 128; base < 16384; base *= 2)
		for (uint32_t i = 0; i < 4; i++)
			if (base + i * base / 4 <= SP_RSS_SLAB_OBJECT_MAX)
				ret[n++] = base + i * base / 4;
	return n;
}
