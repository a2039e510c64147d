/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* Sums of untrusted numbers: they stop at UINT64_MAX and at 0. */

static inline void sp_sat_add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static inline uint64_t sp_sat_sub(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

static inline void sp_raise(uint64_t *most, uint64_t n)
{
	if (n > *most)
		*most = n;
}
