/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A protocol buffers message as it is written.  Zero-initialise.  Fields whose
 * value is 0 are left out, as proto3 wants it.  Once there was not enough
 * memory, `failed` is set and nothing is added any more.
 */
struct sp_proto {
	uint8_t *bytes;
	size_t n, room;
	bool failed;
};

/* An int64, uint64 or bool. */
void sp_proto_uint(struct sp_proto *proto, unsigned int field, uint64_t value);

/* A packed repeated field; all values are kept. */
void sp_proto_packed(struct sp_proto *proto, unsigned int field,
		     const uint64_t *values, size_t n);

/* A string: n bytes, which have to be UTF-8.  It is kept if empty. */
void sp_proto_bytes(struct sp_proto *proto, unsigned int field,
		    const void *bytes, size_t n);

/* A message; `inner` is emptied for the next one. */
void sp_proto_message(struct sp_proto *proto, unsigned int field,
		      struct sp_proto *inner);

/* The message, compressed by gzip, without a time or a name.  0 or -ENOMEM;
 * write errors stay in the stream. */
int sp_proto_write_gzip(FILE *out, const struct sp_proto *proto);

void sp_proto_done(struct sp_proto *proto);
