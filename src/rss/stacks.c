/* SPDX-License-Identifier: MIT */
/*
 * Stacks of threads.  Below the stack of a thread is memory that cannot be
 * touched.  Above it the kernel may have joined it with whatever was mapped
 * before, so where it ends has to be found: the C library keeps, at the top of
 * the stack itself, where the block with the guard begins and how long it is,
 * one behind the other, glibc and musl alike.
 */
#include "rss/parts.h"

/* Of what is resident. */
#define SEARCHED_BYTES (16ull << 20)
#define STACK_MAX      (8ull << 30)
/* A guard that is larger is something else. */
#define GUARD_MAX (64ull << 20)
#define PAGE_MAX  65536u

static bool is_length(uint64_t bytes, uint64_t at, const struct sp_rss_map *m,
		      uint64_t base)
{
	return bytes % 4096 == 0 && bytes <= STACK_MAX && base + bytes > at &&
	       base + bytes <= m->end;
}

/* The end of the block that begins at `base` if the page says so; else 0. */
static uint64_t end_in_page(const uint64_t *page, size_t words, uint64_t at,
			    const struct sp_rss_map *m, uint64_t base)
{
	for (size_t i = 0; i + 1 < words; i++)
		if (page[i] == base && is_length(page[i + 1], at, m, base))
			return base + page[i + 1];
	return 0;
}

static uint64_t find_end(const struct sp_rss_map *m, uint64_t base,
			 struct sp_rss_pages *pages)
{
	static uint64_t page[PAGE_MAX / sizeof(uint64_t)];
	const uint64_t size = sp_rss_pages_size(pages);
	uint64_t read = 0, found = 0;

	for (uint64_t at = sp_rss_pages_next(pages, m->start, m->end);
	     at < m->end && !found && read < SEARCHED_BYTES;
	     at = sp_rss_pages_next(pages, at + size, m->end)) {
		read += size;
		if (size <= PAGE_MAX &&
		    sp_rss_pages_read(pages, at, page, size))
			found = end_in_page(page, size / sizeof(*page), at, m,
					    base);
	}
	return found;
}

static bool is_guard(const struct sp_rss_map *m)
{
	return !m->can_read && !m->can_write && !m->can_execute && !m->inode &&
	       m->end - m->start <= GUARD_MAX;
}

int sp_rss_stacks_find(const struct sp_rss_maps *maps, size_t i,
		       struct sp_rss_pages *pages, bool is_32_bit,
		       struct sp_rss_parts *parts)
{
	const struct sp_rss_map *m = &maps->list[i];
	const struct sp_rss_map *guard = i ? m - 1 : NULL;
	uint64_t end;
	int r;

	if (is_32_bit || !guard || guard->end != m->start || !is_guard(guard))
		return 0;
	end = find_end(m, guard->start, pages);
	if (!end)
		return 0;
	r = sp_rss_parts_add(parts, m->start, end, SP_RSS_THREADS);
	parts->stacks += r == 0;
	return r;
}
