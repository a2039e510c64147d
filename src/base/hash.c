/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

uint64_t sp_hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	const size_t rest = n & 7;
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = sp_hash_word(h, word);
	}
	if (!rest)
		return h;
	/* Without a loop over bytes where there is a word to read: records are
	 * short, and this is most of what it costs to check them. */
	if (p != data) {
		memcpy(&word, p + rest - 8, 8);
		word >>= 64 - 8 * rest;
	} else {
		word = 0;
		memcpy(&word, p, rest);
	}
	return sp_hash_word(h, word);
}
