/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

uint8_t *sp_varint_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

size_t sp_varint_bytes(uint64_t v)
{
	size_t n = 1;

	while (v >= 0x80) {
		v >>= 7;
		n++;
	}
	return n;
}

int64_t sp_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

uint8_t sp_slice_u8(struct sp_slice *slice)
{
	if (slice->failed || slice->at == slice->end) {
		slice->failed = true;
		return 0;
	}
	return *slice->at++;
}

uint64_t sp_slice_varint(struct sp_slice *slice)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = sp_slice_u8(slice);
		uint64_t bits = byte & 0x7f;

		if (slice->failed || (shift == 63 && bits > 1))
			break;
		v |= bits << shift;
		if (!(byte & 0x80))
			return v;
	}
	slice->failed = true;
	return 0;
}

const uint8_t *sp_slice_take(struct sp_slice *slice, uint64_t n)
{
	const uint8_t *at = slice->at;

	if (slice->failed || n > sp_slice_left(slice)) {
		slice->failed = true;
		return NULL;
	}
	slice->at += n;
	return at;
}

size_t sp_slice_left(const struct sp_slice *slice)
{
	return (size_t)(slice->end - slice->at);
}
