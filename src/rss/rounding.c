/* SPDX-License-Identifier: MIT */
/*
 * glibc rounds an object with its header of 8 bytes up to a multiple of 16, at
 * least 32.  What a free piece would have left over stays with the object, so
 * its header says up to 32 bytes more.  A header that says anything else is
 * none: the object is gone meanwhile, or it is not glibc's.
 */
#include "rss/rounding.h"

#include "base/bisect.h"

#define HEADER_BYTES 8u /* of its own; the one before it only if mapped */
#define LEAST_BYTES  32u
#define STEP_BYTES   16u
#define LEFT_BYTES   32u
#define FLAGS        7u
#define IS_MAPPED    2u

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

/* ---- glibc ---- */

static uint64_t least_chunk(uint64_t bytes)
{
	const uint64_t chunk = round_up(bytes + HEADER_BYTES, STEP_BYTES);

	return chunk < LEAST_BYTES ? LEAST_BYTES : chunk;
}

static bool is_mapped_chunk(uint64_t chunk, uint64_t bytes, uint64_t page)
{
	const uint64_t least = bytes + 2 * HEADER_BYTES;

	return chunk % page == 0 && chunk >= least && chunk < least + 2 * page;
}

static struct sp_rss_extent glibc_extent(struct sp_rss_rounding *r,
					 struct sp_rss_pages *pages,
					 uint64_t address, uint64_t bytes)
{
	const uint64_t least = least_chunk(bytes);
	const uint64_t start = address - HEADER_BYTES;
	uint64_t header, chunk;

	if (!sp_rss_pages_read(pages, start, &header, sizeof(header)))
		return (struct sp_rss_extent){start, start + least};
	r->objects++;
	chunk = header & ~(uint64_t)FLAGS;
	if (header & IS_MAPPED &&
	    is_mapped_chunk(chunk, bytes, sp_rss_pages_size(pages))) {
		r->headers++;
		return (struct sp_rss_extent){start - HEADER_BYTES,
					      start - HEADER_BYTES + chunk};
	}
	if (!(header & IS_MAPPED) && chunk >= least &&
	    chunk <= least + LEFT_BYTES) {
		r->headers++;
		return (struct sp_rss_extent){start, start + chunk};
	}
	return (struct sp_rss_extent){start, start + least};
}

/* ---- classes ---- */

static uint64_t of_classes(const struct sp_rss_rounding *r, uint64_t bytes)
{
	size_t at;

	SP_LOWER_BOUND(at, r->n, r->classes[at] < bytes);
	return r->classes[at];
}

static uint64_t behind_classes(const struct sp_rss_rounding *r, uint64_t bytes)
{
	uint64_t doubling = 8; /* the classes may be smaller */

	if (r->rule == SP_RSS_RULE_PAGES)
		return round_up(bytes,
				r->classes[r->n - 1] - r->classes[r->n - 2]);
	while (doubling < bytes && doubling < 1ull << 62)
		doubling *= 2;
	return round_up(bytes, doubling / 8);
}

static struct sp_rss_extent class_extent(const struct sp_rss_rounding *r,
					 uint64_t address, uint64_t bytes)
{
	if (r->n < 2)
		return (struct sp_rss_extent){0, 0};
	return (struct sp_rss_extent){
		address, address + (bytes <= r->classes[r->n - 1]
					    ? of_classes(r, bytes)
					    : behind_classes(r, bytes))};
}

struct sp_rss_extent sp_rss_rounding_of(struct sp_rss_rounding *r,
					struct sp_rss_pages *pages,
					uint64_t address, uint64_t bytes)
{
	if (r->rule == SP_RSS_RULE_NONE || address < 2 * HEADER_BYTES)
		return (struct sp_rss_extent){0, 0};
	return r->rule == SP_RSS_RULE_GLIBC
		       ? glibc_extent(r, pages, address, bytes)
		       : class_extent(r, address, bytes);
}

/* Few of the objects go while they are looked at. */
bool sp_rss_rounding_is_right(const struct sp_rss_rounding *r)
{
	if (r->rule == SP_RSS_RULE_GLIBC)
		return r->headers >= r->objects - r->objects / 4;
	return r->rule != SP_RSS_RULE_NONE && r->n >= 2;
}
