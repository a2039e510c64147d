/* SPDX-License-Identifier: MIT */
/* The writer of protocol buffers: encoding, want of memory, gzip. */
#include <errno.h>

#include "base/rng.h"
#include "export/proto.h"
#include "support/pprof_walk.h"
#include "support/test.h"

static void assert_bytes(const struct sp_proto *p, const char *want, size_t n)
{
	assert_false(p->failed);
	assert_int_equal(p->n, n);
	assert_memory_equal(p->bytes, want, n);
}

/* Byte for byte as the encoding is defined. */
TEST(encoding)
{
	const uint64_t values[] = {0, 127, 128, UINT64_MAX};
	FREED_BY(sp_proto_done) struct sp_proto p = {0}, inner = {0};

	sp_proto_uint(&p, 1, 150);
	sp_proto_uint(&p, 2, 0);
	sp_proto_uint(&p, 16, 1);
	assert_bytes(&p, "\x08\x96\x01\x80\x01\x01", 6);
	p.n = 0;
	sp_proto_bytes(&p, 2, "a\0b", 3);
	sp_proto_bytes(&p, 2, "", 0);
	assert_bytes(&p, "\x12\x03\x61\x00\x62\x12\x00", 7);
	p.n = 0;
	sp_proto_packed(&p, 4, values, 4);
	assert_bytes(&p,
		     "\x22\x0e\x00\x7f\x80\x01"
		     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		     16);
	p.n = 0;
	sp_proto_fixed64(&p, 3, 0x0102030405060708);
	sp_proto_fixed64(&p, 3, 0);
	assert_bytes(&p, "\x19\x08\7\6\5\4\3\2\1\x19\0\0\0\0\0\0\0\0", 18);
	p.n = 0;
	sp_proto_uint(&inner, 1, 5);
	sp_proto_message(&p, 3, &inner);
	sp_proto_message(&p, 3, &inner);
	assert_bytes(&p, "\x1a\x02\x08\x05\x1a\x00", 6);
}

TEST(out_of_memory)
{
	FREED_BY(sp_proto_done) struct sp_proto p = {0}, outer = {0};

	sp_proto_bytes(&p, 1, "x", SIZE_MAX / 2);
	assert_true(p.failed);
	sp_proto_uint(&p, 1, 1);
	sp_proto_message(&outer, 1, &p);
	assert_true(outer.failed);
	sp_proto_fixed64(&outer, 1, 1);
	assert_int_equal(outer.n, 0);
	assert_int_equal(sp_proto_write_gzip(NULL, &outer), -ENOMEM);
	assert_int_equal(sp_proto_write(NULL, &outer), -ENOMEM);
}

static char *gzip(const struct sp_proto *p, size_t *ret_n)
{
	char *data = NULL;
	FILE *out = open_memstream(&data, ret_n);

	assert_int_equal(sp_proto_write_gzip(out, p), 0);
	fclose(out);
	return data;
}

/* Sizes around those in which it is compressed; what is random stays long. */
TEST(gzip)
{
	const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 300000};
	struct sp_rng rng;

	sp_rng_init(&rng, 1, 0);
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		FREED_BY(sp_proto_done) struct sp_proto p = {0};
		size_t n, n_back, n_again;
		FREED uint8_t *back;
		char *data, *again;

		for (size_t k = 0; k < sizes[i / 2]; k++)
			sp_proto_bytes(&p, 1, "", 0);
		for (size_t k = 0; i % 2 && k < p.n; k++)
			p.bytes[k] = (uint8_t)sp_rng_next(&rng);
		data = gzip(&p, &n);
		again = gzip(&p, &n_again);
		assert_int_equal(n, n_again);
		assert_memory_equal(data, again, n);
		back = pb_gunzip(data, n, &n_back);
		assert_non_null(back);
		assert_int_equal(n_back, p.n);
		assert_memory_equal(back, p.n ? p.bytes : back, p.n);
		free(data);
		free(again);
	}
}

TEST_MAIN(NULL, NULL)
