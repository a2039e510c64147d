/* SPDX-License-Identifier: MIT */
#include "support/pprof_walk.h"

#include <stdlib.h>
#include <zlib.h>

#define VALUES_MAX 6

static void require(bool condition)
{
	if (!condition)
		abort();
}

static uint64_t varint(const uint8_t *bytes, size_t n, size_t *at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte;

		require(*at < n && shift < 64);
		byte = bytes[(*at)++];
		require(shift < 63 || byte < 2);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

bool pb_next(const uint8_t *bytes, size_t n, size_t *at, struct pb_field *ret)
{
	uint64_t key;

	if (*at == n)
		return false;
	key = varint(bytes, n, at);
	require((key & 7) == 0 || (key & 7) == 2);
	*ret = (struct pb_field){
		.number = (unsigned int)(key >> 3),
		.is_message = (key & 7) == 2,
		.value = varint(bytes, n, at),
	};
	if (!ret->is_message)
		return true;
	require(ret->value <= n - *at);
	ret->bytes = bytes + *at;
	*at += ret->value;
	return true;
}

bool pb_find(const uint8_t *bytes, size_t n, unsigned int number, size_t k,
	     struct pb_field *ret)
{
	size_t at = 0;

	while (pb_next(bytes, n, &at, ret))
		if (ret->number == number && !k--)
			return true;
	return false;
}

size_t pb_count(const uint8_t *bytes, size_t n, unsigned int number)
{
	struct pb_field field;
	size_t at = 0, count = 0;

	while (pb_next(bytes, n, &at, &field))
		count += field.number == number;
	return count;
}

bool pb_packed(const struct pb_field *field, size_t k, uint64_t *ret)
{
	size_t at = 0;

	while (at < field->value) {
		*ret = varint(field->bytes, field->value, &at);
		if (!k--)
			return true;
	}
	return false;
}

uint8_t *pb_gunzip(const void *data, size_t n, size_t *ret_n)
{
	uint8_t *bytes = NULL;
	size_t room = 0;
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)n};
	int r = Z_OK;

	require(inflateInit2(&z, 16 + 15) == Z_OK);
	while (r == Z_OK) {
		room += 65536;
		bytes = realloc(bytes, room);
		require(bytes != NULL);
		z.next_out = bytes + z.total_out;
		z.avail_out = (uInt)(room - z.total_out);
		r = inflate(&z, Z_NO_FLUSH);
	}
	*ret_n = z.total_out;
	inflateEnd(&z);
	if (r == Z_STREAM_END && !z.avail_in)
		return bytes;
	free(bytes);
	return NULL;
}

static bool is_text(const struct pb_field *f)
{
	for (size_t i = 0; i < f->value;) {
		const uint8_t lead = f->bytes[i++];
		unsigned int more = lead < 0x80   ? 0
				    : lead < 0xe0 ? 1
				    : lead < 0xf0 ? 2
						  : 3;

		if (lead < 0x20 || lead == 0x7f || lead == 0xc0 ||
		    lead == 0xc1 || lead > 0xf4 || (lead & 0xc0) == 0x80)
			return false;
		for (; more; more--, i++)
			if (i == f->value || (f->bytes[i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

/* The number in that field of a message; 0 if it is not there. */
static uint64_t number_in(const struct pb_field *message, unsigned int field)
{
	struct pb_field found;

	return pb_find(message->bytes, message->value, field, 0, &found)
		       ? found.value
		       : 0;
}

struct counts {
	uint64_t types, mappings, locations, functions, strings;
	uint64_t last[6]; /* id of each kind of message */
	uint64_t sums[VALUES_MAX];
};

static const char *sample_problem(struct counts *c, const struct pb_field *s)
{
	struct pb_field f;
	uint64_t v;
	size_t k;

	if (!pb_find(s->bytes, s->value, 1, 0, &f) || !f.value)
		return "a sample without a location";
	for (k = 0; pb_packed(&f, k, &v); k++)
		if (!v || v > c->locations)
			return "a sample with an unknown location";
	if (!pb_find(s->bytes, s->value, 2, 0, &f))
		return "a sample without values";
	for (k = 0; pb_packed(&f, k, &v); k++) {
		if (k == VALUES_MAX || v > INT64_MAX ||
		    v > INT64_MAX - c->sums[k])
			return "a value or a sum is negative";
		c->sums[k] += v;
	}
	if (k != c->types)
		return "not as many values as types";
	if (!pb_find(s->bytes, s->value, 3, 0, &f))
		return NULL;
	if (!number_in(&f, 1) || number_in(&f, 1) >= c->strings ||
	    number_in(&f, 3) > INT64_MAX)
		return "a label without a key or a size";
	return NULL;
}

static const char *location_problem(const struct counts *c,
				    const struct pb_field *location)
{
	struct pb_field line;

	if (number_in(location, 2) > c->mappings)
		return "a location in an unknown mapping";
	for (size_t k = 0;
	     pb_find(location->bytes, location->value, 4, k, &line); k++)
		if (!number_in(&line, 1) || number_in(&line, 1) > c->functions)
			return "a line without a function";
	return NULL;
}

static const char *field_problem(struct counts *c, const struct pb_field *f)
{
	if (f->number >= 3 && f->number <= 5 &&
	    number_in(f, 1) != ++c->last[f->number])
		return "ids are not 1, 2, ...";
	if (f->number == 2)
		return sample_problem(c, f);
	if (f->number == 4)
		return location_problem(c, f);
	if (f->number == 5 &&
	    (!number_in(f, 2) || number_in(f, 2) >= c->strings ||
	     number_in(f, 4) >= c->strings))
		return "a function without a name";
	if (f->number == 6 && (!is_text(f) || (f->value && !c->last[0])))
		return "a string is not text, or the first is not empty";
	c->last[0] |= f->number == 6;
	if ((f->number == 9 || f->number == 10 || f->number == 12) &&
	    f->value > INT64_MAX)
		return "a negative time or period";
	return NULL;
}

const char *pprof_problem(const uint8_t *bytes, size_t n)
{
	struct counts c = {
		.types = pb_count(bytes, n, 1),
		.mappings = pb_count(bytes, n, 3),
		.locations = pb_count(bytes, n, 4),
		.functions = pb_count(bytes, n, 5),
		.strings = pb_count(bytes, n, 6),
	};
	const char *problem = NULL;
	struct pb_field field;
	size_t at = 0;

	while (!problem && pb_next(bytes, n, &at, &field))
		problem = field_problem(&c, &field);
	return problem ? problem : c.strings ? NULL : "no strings";
}
