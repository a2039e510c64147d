/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Room for one more element of `size` bytes in an array that doubles: *array
 * has `used` elements and room for *room.  0, or -ENOMEM with nothing changed.
 */
int sp_array_reserve(void **array, size_t *room, size_t used, size_t size);

/* The order of two uint64_t, for qsort() and bsearch(). */
static inline int sp_array_compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}
