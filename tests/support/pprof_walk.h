/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A plain reader of protocol buffers, and the rules of a pprof profile. */

struct pb_field {
	unsigned int number;
	bool is_message;      /* bytes; else `value` */
	uint64_t value;       /* a varint, or the length of `bytes` */
	const uint8_t *bytes; /* of a message, a string or a packed field */
};

/* The field at *at, which moves on; false at the end of the n bytes.  Anything
 * malformed ends the program. */
bool pb_next(const uint8_t *bytes, size_t n, size_t *at, struct pb_field *ret);

/* The k-th field of that number, from 0; false if there is none. */
bool pb_find(const uint8_t *bytes, size_t n, unsigned int number, size_t k,
	     struct pb_field *ret);

/* How many fields of that number there are. */
size_t pb_count(const uint8_t *bytes, size_t n, unsigned int number);

/* The k-th number of a packed field; false if it has fewer. */
bool pb_packed(const struct pb_field *field, size_t k, uint64_t *ret);

/* What was compressed, for the caller to free; NULL if it is no whole gzip
 * file. */
uint8_t *pb_gunzip(const void *data, size_t n, size_t *ret_n);

/*
 * What is wrong with an uncompressed pprof profile, or NULL: ids are 1..N in
 * order, references lead somewhere, strings are UTF-8 of one line and the first
 * is empty, no value is negative and no sum of values overflows.
 */
const char *pprof_problem(const uint8_t *bytes, size_t n);
