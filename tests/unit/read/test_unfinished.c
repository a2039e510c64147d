/* SPDX-License-Identifier: MIT */
/*
 * What a process leaves that is killed while it writes: records cut anywhere,
 * torn publications, half a chunk header are counted apart from damage.
 */
#include <unistd.h>

#include "base/bytes.h"
#include "model/profile.h"
#include "read/load.h"
#include "support/format_model.h"
#include "support/temp_path.h"
#include "support/test.h"

#define CHUNK  SP_FORMAT_CHUNK_BYTES
#define PERIOD 4096u

/* Where the records of a chunk begin. */
#define RECORDS(chunk) ((chunk)*CHUNK + SP_FORMAT_CHUNK_RECORDS_OFFSET)

static char paths[2][128];
static struct model_file file;

/* Chunk `index` gets n samples; returns the bytes of their records. */
static size_t fill_chunk(size_t index, uint64_t n)
{
	struct model_bytes b = {0};
	struct model_chunk chunk;
	size_t bytes;

	model_chunk_begin(&chunk, file.file_id, index);
	for (uint64_t i = 1; i <= n; i++) {
		struct sp_record r = {.type = SP_RECORD_SAMPLE};

		r.u.sample = (struct sp_record_sample){
			1000 * index + i, 10 * i, 16 * i, 64, i % 64,
			PERIOD,           1,      1,      0,  false};
		model_encode(&b, &chunk, &r);
	}
	model_file_put(&file, index, &b);
	bytes = b.n;
	model_done(&b);
	return bytes;
}

/* Three chunks: the first, one of class totals, one of ten samples, of a
 * process that was killed; and a free one. */
static void begin_killed(void)
{
	static uint64_t n_files;
	struct sp_class_page *page;

	model_file_init(&file, 4, PERIOD);
	file.file_id += n_files++;
	model_file_header(&file)->file_id = file.file_id;
	model_file_header(&file)->flags = SP_HEADER_FREES;
	*model_file_status(&file, 0) = *model_file_status(&file, 1);
	model_file_status(&file, 0)->seq = 2;
	for (int i = 0; i < 2; i++) {
		struct sp_slot_copy *slot = model_file_slot(&file, 1, i);
		const uint64_t seq = i ? 5 : 4;

		model_file_status(&file, i)->end_kind = SP_END_NONE;
		*slot = (struct sp_slot_copy){seq, 1000 * seq, seq, 0,
					      0,   1,          77,  0};
	}
	model_file_seal(&file);
	model_file_put_classes(&file, 1);
	for (int i = 0; i < 2; i++) {
		page = model_file_class_page(&file, 1, 1, i);
		page->seq = i ? 7 : 6;
		page->slot = 1;
		page->classes[3] = (struct sp_class_total){100 * page->seq, 1};
		model_file_seal_classes(&file, page);
	}
	fill_chunk(2, 10);
	memset(file.bytes.data + 3 * CHUNK, 0, CHUNK);
}

static struct sp_profile *load(void)
{
	struct sp_error err = {0};
	struct sp_profile *p;

	assert_int_equal(model_file_write(&file, paths[0], file.bytes.n), 0);
	if (sp_profile_load(paths[0], NULL, NULL, &p, &err) != 0)
		fail_msg("%s", err.message);
	return p;
}

/* What is said of the file, which has `samples`. */
static void expect(size_t samples, uint64_t unfinished, uint64_t damaged)
{
	struct sp_profile *p = load();

	assert_int_equal(p->n_samples, samples);
	assert_int_equal(p->unfinished_records, unfinished);
	assert_int_equal(p->damaged_records, damaged);
	assert_int_equal(p->ignored_bytes > 0, damaged > 0);
	assert_int_equal(p->damage[0] != '\0', damaged > 0);
	sp_profile_free(p);
}

static void end_cleanly(void)
{
	for (int i = 0; i < 2; i++)
		model_file_status(&file, i)->end_kind = SP_END_CLEAN;
	model_file_seal(&file);
}

/* A record without its type; other threads go on until the process is gone. */
TEST(record)
{
	size_t before, bytes;

	begin_killed();
	expect(10, 0, 0);
	before = fill_chunk(2, 9);
	bytes = fill_chunk(2, 10);
	/* The writer stores it from its beginning on, and may have got as far
	 * as anywhere. */
	file.bytes.data[RECORDS(2) + before] = 0;
	for (size_t n = bytes; n-- > before + 1;) {
		expect(9, 1, 0);
		file.bytes.data[RECORDS(2) + n] = 0;
	}
	/* A sample has the greatest length until its own is known, and its head
	 * byte comes last. */
	fill_chunk(2, 10);
	file.bytes.data[RECORDS(2) + before] = 0;
	file.bytes.data[RECORDS(2) + before + 1] = 1 + 8 * SP_VARINT_MAX_BYTES;
	file.bytes.data[RECORDS(2) + before + 2] = 0;
	for (size_t n = bytes; n-- > before + 2;) {
		expect(9, 1, 0);
		file.bytes.data[RECORDS(2) + n] = 0;
	}
	fill_chunk(2, 10);
	file.bytes.data[RECORDS(2) + before] = 0;
	end_cleanly();
	expect(9, 1, 0);
	model_done(&file.bytes);
}

/* A type of zero in the middle: later records were committed, so this is no
 * unfinished one, and more is missing. */
TEST(cleared_type)
{
	size_t before;

	begin_killed();
	before = fill_chunk(2, 5);
	fill_chunk(2, 100);
	file.bytes.data[RECORDS(2) + before] = 0;
	expect(5, 0, 1);
	model_done(&file.bytes);
}

/* Each of the three with two copies, and both ways to be torn. */
TEST(publications)
{
	for (int what = 0; what < 3; what++) {
		uint8_t *copies[2], *bad;

		begin_killed();
		for (int i = 0; i < 2; i++)
			copies[i] =
				what == 0
					? (uint8_t *)model_file_status(&file, i)
				: what == 1 ? (uint8_t *)model_file_slot(&file,
									 1, i)
					    : (uint8_t *)model_file_class_page(
						      &file, 1, 1, i);
		for (int i = 0; i < 2; i++) {
			bad = copies[i] + 8;
			*bad ^= 0x55;
			expect(10, 1, 0);
			*bad ^= 0x55;
		}
		/* Both: no writer does that. */
		copies[0][8] ^= 0x55;
		copies[1][8] ^= 0x55;
		expect(10, 0, 1);
		copies[0][8] ^= 0x55;
		copies[1][8] ^= 0x55;
		/* An orderly end stops the threads that are left; a slot that
		 * nobody owned was published for the last time. */
		end_cleanly();
		copies[0][8] ^= 0x55;
		expect(10, 1, 0);
		copies[0][8] ^= 0x55;
		for (int i = 0; i < 2; i++)
			model_file_slot(&file, 1, i)->thread = 0;
		model_file_seal(&file);
		copies[0][8] ^= 0x55;
		expect(10, what == 0, what != 0);
		model_done(&file.bytes);
	}
}

/* The first one of all goes to copy 1, and the other is still zero. */
TEST(first_publication)
{
	for (int i = 0; i < 2; i++) {
		struct sp_slot_copy *slot;
		struct sp_class_page *page;

		begin_killed();
		slot = model_file_slot(&file, 9, i);
		slot->alloc_bytes = 4711;
		page = model_file_class_page(&file, 1, 2, i);
		page->classes[1].bytes = 4711;
		expect(10, i ? 2 : 0, i ? 0 : 2);
		model_done(&file.bytes);
	}
}

/* A chunk was taken, and its header not yet whole. */
TEST(chunk)
{
	struct sp_chunk_header *h;

	begin_killed();
	h = (struct sp_chunk_header *)(file.bytes.data + 3 * CHUNK);
	h->magic = SP_FORMAT_CHUNK_MAGIC;
	h->kind = SP_CHUNK_RECORDS;
	expect(10, 1, 0);
	file.bytes.data[RECORDS(3)] = 1;
	expect(10, 0, 1);
	file.bytes.data[RECORDS(3)] = 0;
	end_cleanly();
	expect(10, 0, 1);
	model_done(&file.bytes);
}

/* Of several files the counts are added. */
TEST(merged)
{
	const char *const both[] = {paths[0], paths[1]};
	struct sp_profile *p = NULL;
	struct sp_error err = {0};

	for (int i = 0; i < 2; i++) {
		begin_killed();
		model_file_slot(&file, 1, 0)->alloc_bytes ^= 1;
		model_file_status(&file, 0)->time_ns ^= (uint64_t)i;
		assert_int_equal(
			model_file_write(&file, paths[i], file.bytes.n), 0);
		model_done(&file.bytes);
	}
	if (sp_profile_load_many(both, 2, NULL, NULL, &p, &err) != 0)
		fail_msg("%s", err.message);
	assert_int_equal(p->n_samples, 20);
	assert_int_equal(p->unfinished_records, 3);
	assert_int_equal(p->damaged_records, 0);
	sp_profile_free(p);
}

static int begin(void **state)
{
	(void)state;
	return temp_path_make(paths[0], sizeof(paths[0])) ||
	       temp_path_make(paths[1], sizeof(paths[1]));
}

static int end(void **state)
{
	(void)state;
	return unlink(paths[0]) | unlink(paths[1]);
}

TEST_MAIN(begin, end)
