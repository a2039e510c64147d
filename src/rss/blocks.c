/* SPDX-License-Identifier: MIT */
/*
 * What glibc's malloc has in anonymous mappings.  A large object has a mapping
 * of its own, which begins with its header: the bytes before it that are
 * unused, and the length of all with a bit that says how it came to be.  An
 * arena's heaps begin with theirs at a multiple of their largest size.
 */
#include "rss/parts.h"

#define IS_MAPPED 2u /* the only bit of such a header */
/* Pages that are looked at where nobody says how much is to be found. */
#define PAGES_MAX  262144u
#define HEAP_ALIGN (64ull << 20)

/* The length of the object whose header is there; 0: there is none. */
static uint64_t object_at(struct sp_rss_pages *pages, uint64_t at, uint64_t end)
{
	const uint64_t page = sp_rss_pages_size(pages);
	uint64_t header[2], bytes;

	if (!sp_rss_pages_read(pages, at, header, sizeof(header)) ||
	    (header[1] & 7) != IS_MAPPED || header[0] >= page)
		return 0;
	bytes = header[1] - IS_MAPPED;
	return bytes && bytes % page == 0 && bytes <= end - at ? bytes : 0;
}

int sp_rss_blocks_find(struct sp_rss_pages *pages, uint64_t start, uint64_t end,
		       uint64_t *left_bytes, struct sp_rss_parts *parts)
{
	const uint64_t page = sp_rss_pages_size(pages);
	uint64_t looks = 0, at = start, bytes;
	int r = 0;

	while (at < end && *left_bytes && r == 0 && looks++ < PAGES_MAX) {
		at = sp_rss_pages_next(pages, at, end);
		bytes = at < end ? object_at(pages, at, end) : 0;
		if (bytes && bytes <= *left_bytes) {
			r = sp_rss_parts_add(parts, at, at + bytes,
					     SP_RSS_LARGE);
			*left_bytes -= bytes;
			at += bytes;
		} else {
			at += page;
		}
	}
	return r;
}

/* Its arena, the heap before, and its length: what is mapped to be used. */
bool sp_rss_blocks_is_arena(const struct sp_rss_map *m,
			    struct sp_rss_pages *pages)
{
	uint64_t head[4];
	const uint64_t bytes = m->end - m->start;

	return m->no_reserve && m->start % HEAP_ALIGN == 0 &&
	       sp_rss_pages_read(pages, m->start, head, sizeof(head)) &&
	       head[0] && head[2] && head[2] <= head[3] && head[3] <= bytes;
}
