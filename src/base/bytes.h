/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Little-endian base-128 variable-length integers: seven bits a byte, least
 * significant first, the top bit set on all bytes but the last.
 */
#define SP_VARINT_MAX_BYTES 10

/* Store v at p, which has room for SP_VARINT_MAX_BYTES; returns the end. */
uint8_t *sp_varint_put(uint8_t *p, uint64_t v);

/* Bytes that sp_varint_put would use: 1..10. */
size_t sp_varint_bytes(uint64_t v);

/* Signed values near zero become small unsigned ones: 0,-1,1,-2,... */
static inline uint64_t sp_zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

int64_t sp_unzigzag(uint64_t v);

/*
 * A bounded cursor over untrusted bytes.  A read past the end, or a varint of
 * more than 64 bits, sets `failed` and returns 0; every later read does so too,
 * so that a caller may check once at the end.
 */
struct sp_slice {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

uint64_t sp_slice_varint(struct sp_slice *slice);
uint8_t sp_slice_u8(struct sp_slice *slice);
/* n bytes of the slice, borrowed; NULL if there are not as many. */
const uint8_t *sp_slice_take(struct sp_slice *slice, uint64_t n);
size_t sp_slice_left(const struct sp_slice *slice);
