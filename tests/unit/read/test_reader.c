/* SPDX-License-Identifier: MIT */
/* What the reader makes of whole, torn and foreign files.  The files are
 * crafted by the naive model of the format. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/reader.h"
#include "support/format_model.h"
#include "support/test.h"

#define CHUNK  65536u
#define PERIOD 4096u

/* Where the records of a chunk begin. */
#define RECORDS(chunk) ((chunk)*CHUNK + SP_FORMAT_CHUNK_RECORDS_OFFSET)

static char dir[64];
static char path[128];
static struct sp_reader reader;
static struct sp_error err;
static struct model_file file;

/* Write the first n bytes of the file (all of them if 0) and open it. */
static int open_bytes(size_t n)
{
	assert_int_equal(model_file_write(&file, path, n ? n : file.bytes.n),
			 0);
	memset(&err, 0, sizeof(err));
	return sp_reader_open(&reader, path, &err);
}

static void close_all(void)
{
	sp_reader_close(&reader);
	model_done(&file.bytes);
}

/* Append `n` samples with ids from *id on. */
static void put_samples(struct model_bytes *out, struct model_chunk *chunk,
			uint64_t *id, size_t n)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	while (n--) {
		uint64_t i = ++*id;

		r.u.sample = (struct sp_record_sample){
			i,      i * 10, 16 * i,    64, i % 64,
			PERIOD, 1,      1 + i % 3, 0,  false};
		model_encode(out, chunk, &r);
	}
}

/* Chunk `index` gets n samples; returns the bytes of their records. */
static size_t fill_chunk(size_t index, uint64_t *id, size_t n)
{
	struct model_bytes b = {0};
	struct model_chunk chunk;
	size_t bytes;

	model_chunk_begin(&chunk, file.file_id, index);
	put_samples(&b, &chunk, id, n);
	model_file_put(&file, index, &b);
	bytes = b.n;
	model_done(&b);
	return bytes;
}

/* Read on: the number of samples, which must be `first`, first + 1, ... */
static size_t count_samples(uint64_t first)
{
	struct sp_decoded d;
	size_t n = 0;
	int code;

	while ((code = sp_reader_next(&reader, &d, &err)) > 0) {
		if (d.type != SP_RECORD_SAMPLE)
			continue;
		assert_true(d.u.sample.id == first + n);
		assert_true(d.u.sample.time_ns == 10 * d.u.sample.id);
		n++;
	}
	assert_int_equal(code, 0);
	return n;
}

/* The first `bytes` of the file (all of them if 0) give n samples from `first`
 * on, and the damage mentions `damage` (NULL: there is none). */
static void reads(size_t bytes, uint64_t first, size_t n, const char *damage)
{
	assert_int_equal(open_bytes(bytes), 0);
	assert_int_equal(count_samples(first), n);
	assert_int_equal(reader.damage.records > 0, damage != NULL);
	if (!damage)
		assert_string_equal(reader.damage.text, "");
	else if (!reader.damage.text[0] || !strstr(reader.damage.text, damage))
		fail_msg("\"%s\" instead of \"%s\"", reader.damage.text,
			 damage);
	sp_reader_close(&reader);
}

TEST(whole)
{
	uint64_t id = 0;

	model_file_init(&file, 5, PERIOD);
	fill_chunk(1, &id, 100);
	fill_chunk(2, &id, 1);
	/* Handed out, but nothing written. */
	memset(file.bytes.data + 3 * CHUNK, 0, CHUNK);
	fill_chunk(4, &id, 2000);
	assert_int_equal(open_bytes(0), 0);
	assert_true(reader.header.file_id == file.file_id);
	assert_true(reader.header.period_bytes == PERIOD);
	assert_int_equal(reader.status.chunks, 5);
	assert_false(reader.is_running);
	assert_int_equal(count_samples(1), id);
	assert_string_equal(reader.damage.text, "");
	close_all();
}

/* A full chunk: the last record ends with its last byte. */
TEST(full_chunk)
{
	struct model_bytes b = {0}, filler = {0};
	struct model_chunk chunk;
	uint64_t id = 0;
	size_t left;

	model_file_init(&file, 2, PERIOD);
	model_chunk_begin(&chunk, file.file_id, 1);
	put_samples(&b, &chunk, &id, 3000);
	left = CHUNK - SP_FORMAT_CHUNK_RECORDS_OFFSET - b.n;
	assert_true(left > 200);
	/* Type, three bytes of length, check. */
	for (size_t i = 0; i < left - 6; i++)
		model_raw(&filler, "x", 1);
	assert_true(filler.n >= 16384);
	model_record(&b, &chunk, 77, &filler);
	assert_int_equal(b.n, CHUNK - SP_FORMAT_CHUNK_RECORDS_OFFSET);
	model_file_put(&file, 1, &b);
	model_done(&b);
	model_done(&filler);
	reads(0, 1, 3000, NULL);
	close_all();
}

/* The error names the place and the field. */
static void refuses(size_t n, const char *field, uint64_t offset,
		    const char *part)
{
	int code = open_bytes(n);

	assert_int_equal(code, -EINVAL);
	if (!err.field || strcmp(err.field, field) != 0 || !err.has_offset ||
	    err.offset != offset || !strstr(err.message, part))
		fail_msg("%s, %llu, \"%s\": expected %s, %llu, \"%s\"",
			 err.field ? err.field : "no field",
			 (unsigned long long)err.offset, err.message, field,
			 (unsigned long long)offset, part);
	assert_ptr_equal(err.file, path);
	sp_reader_close(&reader);
}

TEST(header)
{
	struct sp_file_header *h, good;

	model_file_init(&file, 2, PERIOD);
	h = model_file_header(&file);
	good = *h;

	h->magic[3] ^= 0x20;
	refuses(0, "magic", 0, "not a sampleprof profile");
	*h = good;
	h->version = 2;
	model_file_seal(&file);
	refuses(0, "version", 8, "version 2");
	/* The version comes first, since only it says what else is there. */
	h->check = 0;
	refuses(0, "version", 8, "version 2");
	*h = good;
	h->header_bytes = 104;
	model_file_seal(&file);
	refuses(0, "header size", 12, "104");
	*h = good;
	h->pid ^= 1;
	refuses(0, "header check", 88, "damaged");
	*h = good;
	h->chunk_bytes = 4096;
	model_file_seal(&file);
	refuses(0, "chunk size", 16, "version 1");
	*h = good;
	h->flags = SP_HEADER_KNOWN_FLAGS + 1;
	model_file_seal(&file);
	refuses(0, "flags", 20, "0x80: recorded by a newer library");
	*h = good;
	h->period_bytes = 0;
	model_file_seal(&file);
	refuses(0, "period", 56, "0 is not in");
	h->period_bytes = SP_FORMAT_PERIOD_MAX + 1;
	model_file_seal(&file);
	refuses(0, "period", 56, "is not in");
	h->period_bytes = SP_FORMAT_PERIOD_MAX;
	model_file_seal(&file);
	assert_int_equal(open_bytes(0), 0);
	close_all();
}

TEST(short_files)
{
	model_file_init(&file, 2, PERIOD);
	refuses(1, "header", 1, "ends here");
	refuses(95, "header", 95, "ends here");
	refuses(96, "status", 96, "truncated");
	refuses(8191, "status", 8191, "truncated");
	assert_int_equal(open_bytes(8192), 0);
	assert_non_null(strstr(reader.damage.text, "truncated"));
	sp_reader_close(&reader);
	memset(file.bytes.data, 0, 200);
	refuses(200, "magic", 0, "empty");
	refuses(20, "magic", 0, "empty");
	close_all();
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(sp_reader_open(&reader, path, &err), -EINVAL);
	assert_non_null(strstr(err.message, "stopped while it started"));
	sp_reader_close(&reader);
}

TEST(no_file)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/missing", dir);
	assert_int_equal(sp_reader_open(&reader, name, &err), -ENOENT);
	assert_ptr_equal(err.file, name);
	sp_reader_close(&reader);
	assert_int_equal(sp_reader_open(&reader, dir, &err), -EINVAL);
	assert_non_null(strstr(err.message, "regular file"));
	sp_reader_close(&reader);
	assert_int_equal(sp_reader_open(&reader, "/dev/zero", &err), -EINVAL);
	sp_reader_close(&reader);
	/* A pipe without a writer must not be waited for. */
	assert_int_equal(mkfifo(name, 0600), 0);
	alarm(HUNG_S);
	assert_int_equal(sp_reader_open(&reader, name, NULL), -EINVAL);
	alarm(0);
	sp_reader_close(&reader);
	assert_int_equal(unlink(name), 0);
}

/* Two copies of the status, of which the newer valid one counts. */
TEST(status)
{
	struct sp_status *even, *odd;

	model_file_init(&file, 2, PERIOD);
	even = model_file_status(&file, 0);
	odd = model_file_status(&file, 1);
	*even = *odd;
	even->seq = 8;
	odd->seq = 7;
	even->threads = 80;
	odd->threads = 70;
	model_file_seal(&file);
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.status.threads, 80);
	assert_string_equal(reader.damage.text, "");
	sp_reader_close(&reader);

	/* The newer one was cut short. */
	even->losses[5] = 1;
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.status.threads, 70);
	assert_int_equal(reader.unfinished, 1);
	assert_string_equal(reader.damage.text, "");
	sp_reader_close(&reader);

	/* A number in the wrong place is no copy. */
	even->seq = 9;
	model_file_seal(&file);
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.status.threads, 70);
	assert_int_equal(reader.unfinished, 1);
	sp_reader_close(&reader);

	/* None is left: nothing is known. */
	odd->check ^= 1;
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.status.seq, 0);
	assert_int_equal(reader.status.threads, 0);
	assert_non_null(strstr(reader.damage.text, "offset 4096: status"));
	sp_reader_close(&reader);

	/* Not yet published: no damage. */
	memset(even, 0, sizeof(*even));
	memset(odd, 0, sizeof(*odd));
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.status.seq, 0);
	assert_int_equal(reader.damage.records, 0);
	close_all();
}

TEST(slots)
{
	struct sp_slot_copy *newer, *older, *last;

	model_file_init(&file, 2, PERIOD);
	older = model_file_slot(&file, 3, 0);
	newer = model_file_slot(&file, 3, 1);
	last = model_file_slot(&file, SP_FORMAT_SLOTS - 1, 1);
	*older = (struct sp_slot_copy){4, 100, 10, 60, 6, 2, 22, 0};
	*newer = (struct sp_slot_copy){5, 150, 15, 60, 6, 2, 22, 0};
	*last = (struct sp_slot_copy){1, 7, 1, 0, 0, 0, 0, 0};
	model_file_seal(&file);
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.slots[3].alloc_bytes, 150);
	assert_int_equal(reader.slots[3].alloc_objects, 15);
	assert_int_equal(reader.slots[3].owner_bytes, 90);
	assert_int_equal(reader.slots[3].owner_objects, 9);
	assert_int_equal(reader.slots[3].thread, 2);
	assert_int_equal(reader.slots[3].tid, 22);
	assert_int_equal(reader.slots[SP_FORMAT_SLOTS - 1].alloc_bytes, 7);
	assert_int_equal(reader.slots[4].alloc_bytes, 0);
	assert_string_equal(reader.damage.text, "");
	sp_reader_close(&reader);

	newer->alloc_bytes = 151;
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.slots[3].alloc_bytes, 100);
	assert_int_equal(reader.unfinished, 1);
	assert_string_equal(reader.damage.text, "");
	sp_reader_close(&reader);

	/* Nobody was there to be in the middle of it. */
	older->thread = 0;
	newer->thread = 0;
	model_file_seal(&file);
	newer->alloc_bytes = 152;
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.slots[3].alloc_bytes, 100);
	assert_non_null(strstr(reader.damage.text, "offset 8576: thread slot"));
	assert_non_null(strstr(reader.damage.text, "the other one is used"));
	sp_reader_close(&reader);

	older->alloc_bytes = 151;
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(reader.slots[3].alloc_bytes, 0);
	assert_non_null(strstr(reader.damage.text, "incomplete"));
	close_all();
}

/* A bad chunk is passed over, its neighbours are used. */
TEST(bad_chunks)
{
	uint64_t id = 100, first;
	struct sp_chunk_header *h;
	size_t bytes;

	model_file_init(&file, 3, PERIOD);
	fill_chunk(1, &(uint64_t){0}, 10);
	bytes = fill_chunk(2, &id, 10);
	first = id - 9;
	h = (struct sp_chunk_header *)(file.bytes.data + CHUNK);

	h->check ^= 1;
	reads(0, first, 10, "offset 65536: chunk header");
	assert_int_equal(reader.damage.ignored_bytes, CHUNK);

	/* A chunk of another place of the same file. */
	memcpy(h, file.bytes.data + 2 * CHUNK, sizeof(*h));
	reads(0, first, 10, "chunk header");

	/* Of an unknown kind: no damage. */
	*h = (struct sp_chunk_header){SP_FORMAT_CHUNK_MAGIC, 99, 1, 0};
	model_seal(file.file_id, SP_CHECK_CHUNK, h, sizeof(*h));
	reads(0, first, 10, NULL);

	/* A bad byte in the last record: the nine before it are used. */
	file.bytes.data[RECORDS(2) + bytes - 1] ^= 1;
	reads(0, first, 9, "record check");
	close_all();
}

TEST(truncated)
{
	uint64_t id = 0;
	size_t bytes, end;

	model_file_init(&file, 3, PERIOD);
	bytes = fill_chunk(1, &id, 100);
	fill_chunk(2, &id, 100);
	end = RECORDS(1) + bytes;
	reads(2 * CHUNK, 1, 100, "truncated");
	/* In the middle of a chunk, between two records and within one. */
	reads(end, 1, 100, "truncated");
	reads(end - 1, 1, 99, "truncated");
	close_all();
}

/*
 * After a kill the status may be older than the last chunks, so that it does
 * not tell that a file was cut.  Its length does: the writer makes it
 * max_file_bytes long, and only whole empty chunks may be missing of it.
 */
TEST(truncated_after_kill)
{
	uint64_t id = 0;
	size_t bytes;

	model_file_init(&file, 3, PERIOD);
	model_file_status(&file, 1)->chunks = 1;
	model_file_status(&file, 1)->end_kind = SP_END_NONE;
	model_file_seal(&file);
	bytes = fill_chunk(1, &id, 50);
	id = 0;
	fill_chunk(1, &id, 100);
	/* Between two records: 50 samples are missing. */
	reads(RECORDS(1) + bytes, 1, 50, "");
	close_all();
}

/* What later writers may add within version 1. */
TEST(later_additions)
{
	struct model_bytes b = {0}, payload = {0};
	struct model_chunk chunk;
	uint64_t id = 0;
	struct sp_decoded d;

	model_file_init(&file, 2, PERIOD);
	model_chunk_begin(&chunk, file.file_id, 1);
	put_samples(&b, &chunk, &id, 1);
	model_record(&b, &chunk, 200, &payload);
	/* A stack of no frames, and a field that is not known yet. */
	for (uint64_t i = 0; i < 4; i++)
		model_varint(&payload, i == 0 ? 9 : i == 3 ? 12345 : 0);
	model_record(&b, &chunk, SP_RECORD_STACK, &payload);
	put_samples(&b, &chunk, &id, 1);
	model_file_put(&file, 1, &b);
	model_done(&b);
	model_done(&payload);
	assert_int_equal(open_bytes(0), 0);
	assert_int_equal(sp_reader_next(&reader, &d, &err), 1);
	assert_int_equal(sp_reader_next(&reader, &d, &err), 1);
	assert_int_equal(d.type, 200);
	assert_int_equal(sp_reader_next(&reader, &d, &err), 1);
	assert_int_equal(d.type, SP_RECORD_STACK);
	assert_int_equal(d.u.stack.id, 9);
	assert_int_equal(count_samples(2), 1);
	assert_string_equal(reader.damage.text, "");
	close_all();
}

/* A running writer, which is this process here: half a publication or half a
 * record is no damage. */
TEST(running)
{
	uint64_t id = 0;
	size_t bytes;
	uint8_t *map;
	int fd;

	model_file_init(&file, 2, PERIOD);
	model_file_header(&file)->pid = (uint64_t)getpid();
	model_file_status(&file, 1)->end_kind = SP_END_NONE;
	model_file_seal(&file);
	bytes = fill_chunk(1, &id, 10);
	*model_file_slot(&file, 1, 1) =
		(struct sp_slot_copy){1, 100, 10, 0, 0, 1, 1, 99};
	file.bytes.data[RECORDS(1) + bytes - 1] ^= 1;
	assert_int_equal(model_file_write(&file, path, file.bytes.n), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	map = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(map != MAP_FAILED);
	/* What came after it was opened is passed over. */
	assert_int_equal(sp_reader_open(&reader, path, &err), 0);
	assert_true(reader.opened_ns < UINT64_MAX);
	reader.opened_ns = 40;
	assert_int_equal(count_samples(1), 4);
	sp_reader_close(&reader);
	assert_int_equal(sp_reader_open(&reader, path, &err), 0);
	assert_true(reader.is_running);
	assert_int_equal(count_samples(1), 9);
	assert_string_equal(reader.damage.text, "");
	sp_reader_close(&reader);
	munmap(map, CHUNK);
	/* It has gone, in the middle of the one and not of the other. */
	assert_int_equal(sp_reader_open(&reader, path, &err), 0);
	assert_false(reader.is_running);
	assert_int_equal(count_samples(1), 9);
	assert_int_equal(reader.unfinished, 1);
	assert_int_equal(reader.damage.records, 1);
	assert_non_null(strstr(reader.damage.text, "record check"));
	close_all();
}

/* Empty gibibytes cost nothing. */
TEST(holes)
{
	uint64_t id = 0;

	model_file_init(&file, 2, PERIOD);
	fill_chunk(1, &id, 10);
	assert_int_equal(model_file_write(&file, path, file.bytes.n), 0);
	assert_int_equal(truncate(path, 64ll << 30), 0);
	alarm(HUNG_S);
	assert_int_equal(sp_reader_open(&reader, path, &err), 0);
	assert_int_equal(count_samples(1), 10);
	alarm(0);
	assert_string_equal(reader.damage.text, "");
	close_all();
}

static int begin(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(dir, sizeof(dir), "%.40s/sp-reader-XXXXXX",
		 tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/test.sprof", dir);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

TEST_MAIN(begin, end)
