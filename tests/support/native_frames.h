/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "support/test.h"

/* What is in the frames of ClickHouse's compression, all of zstd; to be freed,
 * *ret_n bytes. */
static inline void *native_unpack(const unsigned char *from, size_t n,
				  size_t *ret_n)
{
	unsigned char *all = NULL;

	*ret_n = 0;
	while (n) {
		uint32_t sizes[2];
		size_t got;

		assert_true(n > 25 && from[16] == 0x90);
		memcpy(sizes, from + 17, 8);
		assert_true(sizes[0] > 9 && sizes[0] + 16 <= n);
		all = realloc(all, *ret_n + sizes[1]);
		got = ZSTD_decompress(all + *ret_n, sizes[1], from + 25,
				      sizes[0] - 9);
		assert_int_equal(got, sizes[1]);
		*ret_n += got;
		from += sizes[0] + 16;
		n -= sizes[0] + 16;
	}
	return all;
}
