/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A protocol buffers message that is being built.  Zero-initialise.  Integers
 * whose value is 0 are left out, as proto3 specifies.  When memory runs out,
 * `failed` is set, and later calls add nothing.
 */
struct sp_proto {
	uint8_t *bytes;
	size_t n, room;
	bool failed;
};

/* Add an int64, uint64 or bool. */
void sp_proto_uint(struct sp_proto *proto, unsigned int field, uint64_t value);

/* Add a fixed64, or the bits of a double; 0 is kept. */
void sp_proto_fixed64(struct sp_proto *proto, unsigned int field,
		      uint64_t value);

/* Add a packed repeated field; zeros are kept. */
void sp_proto_packed(struct sp_proto *proto, unsigned int field,
		     const uint64_t *values, size_t n);

/* Add a string of n bytes, which must be UTF-8.  An empty one is kept. */
void sp_proto_bytes(struct sp_proto *proto, unsigned int field,
		    const void *bytes, size_t n);

/* Add a nested message, and empty `inner` for the next one. */
void sp_proto_message(struct sp_proto *proto, unsigned int field,
		      struct sp_proto *inner);

/* Write the message as it is.  0 or -ENOMEM, if it failed. */
int sp_proto_write(FILE *out, const struct sp_proto *proto);

/* Write the message, compressed by gzip, without a time or a name in the
 * header. 0 or -ENOMEM. Write errors stay in the stream. */
int sp_proto_write_gzip(FILE *out, const struct sp_proto *proto);

void sp_proto_done(struct sp_proto *proto);
