/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Free memory that cannot go back to the kernel because a live object lies
 * beside it, or in the same slab.
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

/*
 * The slab of an object of jemalloc; false: no slab can have an object of that
 * length at that address.  A slab is the least number of whole pages that
 * objects of one length fill exactly, so the address of an object determines
 * its slab.
 */
bool sp_rss_places_slab(const struct sp_rss_taken *taken, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end);
