/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

uint64_t sp_hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = sp_hash_word(h, word);
	}
	if (n) {
		word = 0;
		memcpy(&word, p, n);
		h = sp_hash_word(h, word);
	}
	return h;
}
