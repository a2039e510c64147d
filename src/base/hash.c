/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

uint64_t sp_hash_bytes(uint64_t h, const void *data, size_t n)
{
	uint64_t word = 0;

	if (n == 0 || n >= 8)
		return sp_hash_bytes_inside(h, data, n);
	memcpy(&word, data, n);
	return sp_hash_word(h, word);
}
