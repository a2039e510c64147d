/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A running 64-bit check over bytes, to notice damage (not attacks).  One step
 * is h = (h ^ word) * SP_HASH_MULTIPLIER; h ^= h >> 29, which is a bijection of
 * h for a given word and of the word for a given h: two inputs that differ in
 * one word never meet again.  The last word is padded with zero bytes.
 */
#define SP_HASH_MULTIPLIER 0x9e3779b97f4a7c15ull

static inline uint64_t sp_hash_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * SP_HASH_MULTIPLIER;
	return h ^ (h >> 29);
}

uint64_t sp_hash_bytes(uint64_t h, const void *data, size_t n);

/* The same of bytes that have eight others before them, which may be read, or
 * are eight at least.  There is no loop over single bytes: records are short,
 * and that would be most of what it costs to check them. */
static inline uint64_t sp_hash_bytes_inside(uint64_t h, const void *data,
					    size_t n)
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
	memcpy(&word, p + rest - 8, 8);
	return sp_hash_word(h, word >> (64 - 8 * rest));
}
