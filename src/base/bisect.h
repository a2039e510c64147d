/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * Sets `at`, a size_t, to the first of 0..n - 1 for which `is_before` is false;
 * n: there is none.  `is_before` is an expression of `at` without side effects,
 * true up to some place and false from there on:
 *
 *	SP_LOWER_BOUND(at, n, list[at].start <= address);
 *
 * Wherever the list is not in order, the result is in 0..n all the same.  A
 * macro, because the comparison has to be compiled into the loop.
 */
#define SP_LOWER_BOUND(at, n, is_before)                                       \
	do {                                                                   \
		size_t sp_low_ = 0, sp_high_ = (n);                            \
                                                                               \
		while (sp_low_ < sp_high_) {                                   \
			(at) = sp_low_ + (sp_high_ - sp_low_) / 2;             \
			if (is_before)                                         \
				sp_low_ = (at) + 1;                            \
			else                                                   \
				sp_high_ = (at);                               \
		}                                                              \
		(at) = sp_low_;                                                \
	} while (0)
