/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
