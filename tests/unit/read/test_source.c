/* SPDX-License-Identifier: MIT */
/*
 * Compressed profiles say what the same file says uncompressed, or what is
 * wrong with them.
 */
#include <unistd.h>
#include <zstd.h>

#include "model/profile.h"
#include "read/load.h"
#include "read/source.h"
#include "support/format_model.h"
#include "support/temp_path.h"
#include "support/test.h"

#define CHUNKS  12
#define SAMPLES 500

static char path[128];
static struct model_file file;
static uint8_t *packed;
static size_t packed_bytes;

static void make_file(void)
{
	model_file_init(&file, CHUNKS, 64);
	for (uint64_t c = 1; c < CHUNKS; c += 3) {
		FREED_BY(model_done) struct model_bytes records = {0};
		struct model_chunk chunk;

		model_chunk_begin(&chunk, file.file_id, c);
		for (uint64_t i = 1; i <= SAMPLES; i++)
			model_encode(&records, &chunk,
				     &(struct sp_record){
					     .type = SP_RECORD_SAMPLE,
					     .u.sample = {.id = c * 1000 + i,
							  .time_ns = c * 7 + i,
							  .size_bytes = i * c,
							  .period_bytes = 64}});
		model_file_put(&file, c, &records);
	}
	model_file_seal(&file);
}

static void store(const void *data, size_t n)
{
	FILE *out = fopen(path, "wb");

	assert_non_null(out);
	assert_int_equal(fwrite(data, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

/* n bytes of the file as one frame behind what is packed already. */
static void pack(size_t at, size_t n, bool with_size)
{
	const size_t room = packed_bytes + ZSTD_compressBound(n) + 64;
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_inBuffer in = {file.bytes.data + at, n, 0};
	ZSTD_outBuffer out;

	packed = realloc(packed, room);
	assert_non_null(packed);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	if (with_size)
		ZSTD_CCtx_setPledgedSrcSize(context, n);
	out = (ZSTD_outBuffer){packed, room, packed_bytes};
	/* In two steps, or zstd would know the size anyway. */
	in.size = n / 2;
	ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
	in.size = n;
	assert_int_equal(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end),
			 0);
	packed_bytes = out.pos;
	ZSTD_freeCCtx(context);
}

static void unpack(void)
{
	free(packed);
	packed = NULL;
	packed_bytes = 0;
}

static struct sp_profile *load(struct sp_error *err)
{
	struct sp_profile *p = NULL;

	return sp_profile_load(path, NULL, NULL, &p, err) < 0 ? NULL : p;
}

static void is_whole(void)
{
	struct sp_error err;
	struct sp_profile *p = load(&err);

	if (!p)
		fail_msg("%s", err.message);
	assert_int_equal(p->n_samples, (CHUNKS - 1 + 2) / 3 * SAMPLES);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->samples[0].id, 1001);
	assert_int_equal(p->samples[p->n_samples - 1].id, 10000 + SAMPLES);
	sp_profile_free(p);
}

TEST(whole)
{
	store(file.bytes.data, file.bytes.n);
	is_whole();
	for (int with_size = 0; with_size < 2; with_size++) {
		pack(0, file.bytes.n, with_size);
		store(packed, packed_bytes);
		is_whole();
		unpack();
	}
}

/* Frame behind frame, as parallel compressors write them; no border of theirs
 * is one of a chunk. */
TEST(frames)
{
	const size_t step = 100003;

	for (size_t at = 0; at < file.bytes.n; at += step)
		pack(at, file.bytes.n - at < step ? file.bytes.n - at : step,
		     at % 2);
	store(packed, packed_bytes);
	is_whole();
	unpack();
}

/* The plain file was cut before it was packed. */
TEST(cut_before)
{
	struct sp_error err;
	struct sp_profile *p;

	for (int with_size = 0; with_size < 2; with_size++) {
		pack(0, 6 * SP_FORMAT_CHUNK_BYTES, with_size);
		store(packed, packed_bytes);
		p = load(&err);
		assert_non_null(p);
		assert_non_null(strstr(p->damage, "truncated"));
		assert_true(p->is_cut);
		assert_int_equal(p->n_samples, 2 * SAMPLES);
		sp_profile_free(p);
		unpack();
	}
}

/* Cut or changed anywhere: an error, or less of the same and a note. */
TEST(damaged)
{
	size_t loaded = 0;

	pack(0, file.bytes.n, true);
	for (size_t i = 1; i < 60; i++) {
		const size_t at = i * packed_bytes / 60;
		struct sp_error err;
		struct sp_profile *p;

		store(packed, at);
		p = load(&err);
		if (p) {
			assert_true(p->damage[0]);
			loaded++;
		} else {
			assert_true(err.message[0]);
		}
		sp_profile_free(p);
		packed[at] ^= 0x10;
		store(packed, packed_bytes);
		packed[at] ^= 0x10;
		p = load(&err);
		if (p)
			assert_true(p->damage[0]);
		sp_profile_free(p);
	}
	assert_true(loaded > 0);
	unpack();
}

/* A frame that promises more than any profile has is not begun. */
TEST(too_long)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	uint8_t small[256];
	ZSTD_inBuffer in = {file.bytes.data, 100, 0};
	ZSTD_outBuffer out = {small, sizeof(small), 0};
	struct sp_error err;

	ZSTD_CCtx_setPledgedSrcSize(context, SP_SOURCE_UNPACKED_MAX + 1);
	ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
	ZSTD_freeCCtx(context);
	assert_true(out.pos > 0);
	store(small, out.pos);
	assert_null(load(&err));
	assert_non_null(strstr(err.message, "8 GiB"));
}

static int set_up(void **state)
{
	(void)state;
	make_file();
	return temp_path_make(path, sizeof(path));
}

static int tear_down(void **state)
{
	(void)state;
	model_done(&file.bytes);
	unlink(path);
	return 0;
}

TEST_MAIN(set_up, tear_down)
