/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds the range of an address among many that overlap: the one that starts
 * last, then the one that ends first, then the higher rank, then the lower
 * value.
 *
 * A label is a range of unknown length.  It reaches to the next start of any
 * range, at most to its `end`, and is found only where no other range is.
 *
 * First add ranges, then seal the map (it is sorted and cut into disjoint
 * pieces in O(n log n)), then search it in O(log n).  A zeroed struct is an
 * empty map.
 */
struct sp_range {
	uint64_t start;
	uint64_t end; /* one past the last */
	uint32_t value;
	uint16_t rank;
	bool is_label;
};

struct sp_rangemap {
	struct sp_range *ranges;
	size_t count;
	size_t capacity;
};

/* More ranges than any real binary has: a limit for forged ones. */
#define SP_RANGEMAP_MAX ((size_t)1 << 23)

/* 0 (also for an empty range, which is ignored); -ENOMEM; -E2BIG beyond
 * SP_RANGEMAP_MAX. */
int sp_rangemap_add(struct sp_rangemap *map, struct sp_range range);

/* 0 or -ENOMEM; after a failure the map is empty. */
int sp_rangemap_seal(struct sp_rangemap *map);

/* The value at `address` in a sealed map; false if no range covers it. */
bool sp_rangemap_find(const struct sp_rangemap *map, uint64_t address,
		      uint32_t *ret_value);

/* The last range that begins before an address or at it, and the one behind
 * that; NULL: none. */
void sp_rangemap_around(const struct sp_rangemap *map, uint64_t address,
			const struct sp_range **ret_before,
			const struct sp_range **ret_behind);

void sp_rangemap_clear(struct sp_rangemap *map);
