/* SPDX-License-Identifier: MIT */
#include "rss/chunks.h"

#define FLAGS       7u
#define PREV_IN_USE 1u
#define IS_MAPPED   2u
#define NOT_MAIN    4u

#define HEAD_BYTES  16u
#define LEAST_BYTES 32u
/* What a piece would have left over that is too small for a chunk. */
#define LEFT_BYTES 32u
/* A free chunk's links, which malloc_trim leaves alone. */
#define LINK_BYTES 48u
#define HEAP_ALIGN (64ull << 20)

/* The length of a free chunk before it, and its own with flags. */
struct head {
	uint64_t prev_bytes;
	uint64_t word;
};

struct look {
	sp_rss_read_fn *read;
	void *arg;
};

static bool read_head(const struct look *l, uint64_t at, struct head *ret)
{
	return l->read(l->arg, at, ret, sizeof(*ret));
}

static uint64_t bytes_of(const struct head *h)
{
	return h->word & ~(uint64_t)FLAGS;
}

static bool is_chunk(uint64_t bytes)
{
	return bytes >= LEAST_BYTES && bytes % HEAD_BYTES == 0 &&
	       bytes < 1ull << 47;
}

static uint64_t least_chunk(uint64_t bytes)
{
	const uint64_t chunk = (bytes + 8 + 15) / 16 * 16;

	return chunk < LEAST_BYTES ? LEAST_BYTES : chunk;
}

/* The one before says the same, and that it is between two that are in use. */
static bool look_before(const struct look *l, const struct head *own,
			struct sp_rss_beside *b)
{
	struct head h;

	if (own->word & PREV_IN_USE)
		return true;
	if (!is_chunk(own->prev_bytes) || own->prev_bytes > b->start ||
	    !read_head(l, b->start - own->prev_bytes, &h) ||
	    bytes_of(&h) != own->prev_bytes ||
	    (h.word & (PREV_IN_USE | IS_MAPPED)) != PREV_IN_USE)
		return false;
	b->before_bytes = own->prev_bytes;
	return true;
}

/* The end of the heap that it is in, of an arena but the main one. */
static uint64_t end_of_heap(const struct look *l, uint64_t at)
{
	uint64_t info[4]; /* arena, heap before, length, what is mapped */

	if (!l->read(l->arg, at / HEAP_ALIGN * HEAP_ALIGN, info, sizeof(info)))
		return 0;
	return at / HEAP_ALIGN * HEAP_ALIGN + info[2];
}

static bool look_behind(const struct look *l, const struct head *own,
			struct sp_rss_beside *b)
{
	struct head next, after;
	uint64_t bytes;

	/* Behind the last of all there is always something: the top. */
	if (!read_head(l, b->end, &next) || !(next.word & PREV_IN_USE) ||
	    next.word & IS_MAPPED)
		return false;
	bytes = bytes_of(&next);
	if (bytes < LEAST_BYTES) { /* a fence at the end of a heap */
		b->is_last = true;
		return true;
	}
	if (!is_chunk(bytes))
		return false;
	if ((own->word & NOT_MAIN &&
	     b->end + bytes == end_of_heap(l, b->end)) ||
	    !read_head(l, b->end + bytes, &after)) {
		b->is_last = true;
		b->last_bytes = bytes;
		return true;
	}
	if (after.word & PREV_IN_USE)
		return true;
	if (after.prev_bytes != bytes)
		return false;
	b->behind_bytes = bytes;
	return true;
}

struct sp_rss_beside sp_rss_chunks_look(sp_rss_read_fn *read, void *arg,
					uint64_t address, uint64_t bytes)
{
	const struct look l = {read, arg};
	struct sp_rss_beside b = {.state = SP_RSS_BESIDE_TORN};
	const uint64_t least = least_chunk(bytes);
	struct head own;
	uint64_t chunk;

	if (address % HEAD_BYTES || address < HEAD_BYTES ||
	    !read_head(&l, address - HEAD_BYTES, &own)) {
		b.state = SP_RSS_BESIDE_GONE;
		return b;
	}
	chunk = bytes_of(&own);
	b.start = address - HEAD_BYTES;
	b.end = b.start + chunk;
	if (own.word & IS_MAPPED) {
		b.state = chunk > bytes ? SP_RSS_BESIDE_LARGE
					: SP_RSS_BESIDE_GONE;
		return b;
	}
	if (chunk < least || chunk > least + LEFT_BYTES || !is_chunk(chunk)) {
		b.state = SP_RSS_BESIDE_GONE;
		return b;
	}
	if (look_before(&l, &own, &b) && look_behind(&l, &own, &b))
		b.state = SP_RSS_BESIDE_KNOWN;
	return b;
}

void sp_rss_chunks_trim(uint64_t start, uint64_t bytes, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end)
{
	const uint64_t end = start + bytes;
	const uint64_t first =
		(start + LINK_BYTES + page_bytes - 1) / page_bytes * page_bytes;

	*ret_start = first;
	*ret_end = first;
	if (bytes < page_bytes + LINK_BYTES || end <= first)
		return;
	*ret_end = first + (end - first) / page_bytes * page_bytes;
}
