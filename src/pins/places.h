/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Free memory that cannot go back to the kernel since there is something alive
 * in the same place, found from the addresses of all objects that are alive,
 * whatever allocator has made them.
 */

/* What an object takes, with what its allocator adds. */
struct sp_rss_taken {
	uint64_t start, end;
};

/* Memory that is given back as a whole, or not at all. */
struct sp_rss_place {
	uint64_t start, end;
	double free_bytes;
	size_t first, n; /* its objects, which share what is free alike */
	double share;    /* of each */
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

/* The pages in which an object is and something is free.  `taken` by ascending
 * addresses; what overlaps the one before counts once.  0 or -ENOMEM. */
int sp_rss_places_of_pages(const struct sp_rss_taken *taken, size_t n,
			   uint64_t page_bytes, struct sp_rss_places *ret);

/*
 * The slabs of jemalloc: the least whole pages that objects of one length fill
 * without a rest, so that the address of an object tells where its slab is.
 * `taken` by ascending addresses; objects of more than 14 KiB have pages of
 * their own, and are in none.  *ret_others: objects that no slab can have.  0
 * or -ENOMEM.
 */
#define SP_RSS_SLAB_OBJECT_MAX 14336u
int sp_rss_places_of_slabs(const struct sp_rss_taken *taken, size_t n,
			   uint64_t page_bytes, struct sp_rss_places *ret,
			   size_t *ret_others);

/* Where the slab of an object is; false: no slab has one of that length there.
 */
bool sp_rss_places_slab(const struct sp_rss_taken *taken, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end);

/* The sizes of jemalloc's objects up to that, ascending: how many. */
#define SP_RSS_SLAB_CLASSES 64u
size_t sp_rss_places_classes(uint32_t ret[SP_RSS_SLAB_CLASSES]);
