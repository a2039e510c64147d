/* SPDX-License-Identifier: MIT */
#include "export/proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum wire {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_LENGTH = 2,
};

#define VARINT_MAX 10u
#define GZIP_BITS  (16 + 15) /* a gzip header, the largest window */
#define CHUNK      65536u

static bool reserve_bytes(struct sp_proto *p, size_t n)
{
	size_t room = p->room;
	uint8_t *bytes;

	if (p->failed || n > SIZE_MAX / 4 - p->n) {
		p->failed = true;
		return false;
	}
	if (room - p->n >= n)
		return true;
	while (room - p->n < n)
		room = 2 * room + 256;
	bytes = realloc(p->bytes, room);
	if (!bytes) {
		p->failed = true;
		return false;
	}
	p->bytes = bytes;
	p->room = room;
	return true;
}

static void put_varint(struct sp_proto *p, uint64_t value)
{
	if (!reserve_bytes(p, VARINT_MAX))
		return;
	while (value >= 0x80) {
		p->bytes[p->n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	p->bytes[p->n++] = (uint8_t)value;
}

static void put_key(struct sp_proto *p, unsigned int field, enum wire wire)
{
	put_varint(p, (uint64_t)field << 3 | wire);
}

void sp_proto_uint(struct sp_proto *proto, unsigned int field, uint64_t value)
{
	if (!value)
		return;
	put_key(proto, field, WIRE_VARINT);
	put_varint(proto, value);
}

void sp_proto_fixed64(struct sp_proto *proto, unsigned int field,
		      uint64_t value)
{
	put_key(proto, field, WIRE_FIXED64);
	if (!reserve_bytes(proto, sizeof(value)))
		return;
	for (size_t i = 0; i < sizeof(value); i++)
		proto->bytes[proto->n++] = (uint8_t)(value >> 8 * i);
}

static size_t varint_length(uint64_t value)
{
	size_t n = 1;

	for (; value >= 0x80; value >>= 7)
		n++;
	return n;
}

void sp_proto_packed(struct sp_proto *proto, unsigned int field,
		     const uint64_t *values, size_t n)
{
	uint64_t length = 0;

	for (size_t i = 0; i < n; i++)
		length += varint_length(values[i]);
	put_key(proto, field, WIRE_LENGTH);
	put_varint(proto, length);
	for (size_t i = 0; i < n; i++)
		put_varint(proto, values[i]);
}

void sp_proto_bytes(struct sp_proto *proto, unsigned int field,
		    const void *bytes, size_t n)
{
	put_key(proto, field, WIRE_LENGTH);
	put_varint(proto, n);
	if (!n || !reserve_bytes(proto, n))
		return;
	memcpy(proto->bytes + proto->n, bytes, n);
	proto->n += n;
}

void sp_proto_message(struct sp_proto *proto, unsigned int field,
		      struct sp_proto *inner)
{
	proto->failed = proto->failed || inner->failed;
	sp_proto_bytes(proto, field, inner->bytes, inner->n);
	inner->n = 0;
}

int sp_proto_write(FILE *out, const struct sp_proto *proto)
{
	if (proto->failed)
		return -ENOMEM;
	fwrite(proto->bytes, 1, proto->n, out);
	return 0;
}

int sp_proto_write_gzip(FILE *out, const struct sp_proto *proto)
{
	uint8_t chunk[CHUNK];
	z_stream z = {0};
	size_t done = 0;
	int r;

	if (proto->failed ||
	    deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_BITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		if (!z.avail_in && done < proto->n) {
			const size_t left = proto->n - done;

			z.next_in = proto->bytes + done;
			z.avail_in = left < CHUNK ? (uInt)left : CHUNK;
			done += z.avail_in;
		}
		z.next_out = chunk;
		z.avail_out = CHUNK;
		r = deflate(&z, done == proto->n ? Z_FINISH : Z_NO_FLUSH);
		/* cppcheck-suppress uninitvar ; deflate() has written that */
		fwrite(chunk, 1, CHUNK - z.avail_out, out);
	} while (r != Z_STREAM_END);
	deflateEnd(&z);
	return 0;
}

void sp_proto_done(struct sp_proto *proto)
{
	free(proto->bytes);
	*proto = (struct sp_proto){0};
}
