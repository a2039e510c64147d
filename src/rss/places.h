/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Free memory that cannot go back to the kernel because a live object is in the
 * same place (page or slab).  It is found from the addresses of all live
 * objects, for any allocator.
 */

/* The extent of an object, with what its allocator adds. */
struct sp_rss_taken {
	uint64_t start, end;
};

/* Memory that goes back to the kernel as a whole, or not at all. */
struct sp_rss_place {
	uint64_t start, end;
	double free_bytes;
	size_t first,
		n; /* its objects, each with an equal share of the free bytes */
	double share; /* bytes of each */
};

struct sp_rss_places {
	struct sp_rss_place *list; /* by ascending addresses */
	size_t n, room;
};

/* Zero-initialise, and free in any case. */
void sp_rss_places_free(struct sp_rss_places *places);

/* 0 or -ENOMEM. */
int sp_rss_places_add(struct sp_rss_places *places,
		      const struct sp_rss_place *place);

/* The pages with at least one object and free bytes.  `taken` is sorted by
 * addresses; overlaps count once. 0 or -ENOMEM. */
int sp_rss_places_of_pages(const struct sp_rss_taken *taken, size_t n,
			   uint64_t page_bytes, struct sp_rss_places *ret);

/*
 * The slabs of jemalloc.  A slab is the least number of whole pages that
 * objects of one length fill exactly, so the address of an object determines
 * its slab.  `taken` is sorted by addresses.  Objects of more than 14 KiB have
 * pages of their own, and no slab. *ret_others: the number of objects that
 * cannot be in a slab. 0 or -ENOMEM.
 */
#define SP_RSS_SLAB_OBJECT_MAX 14336u
int sp_rss_places_of_slabs(const struct sp_rss_taken *taken, size_t n,
			   uint64_t page_bytes, struct sp_rss_places *ret,
			   size_t *ret_others);

/* The slab of an object; false: no slab can have an object of that length at
 * that address. */
bool sp_rss_places_slab(const struct sp_rss_taken *taken, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end);

/* The sizes of jemalloc's objects in slabs, ascending.  Returns their number.
 */
#define SP_RSS_SLAB_CLASSES 64u
size_t sp_rss_places_classes(uint32_t ret[SP_RSS_SLAB_CLASSES]);
