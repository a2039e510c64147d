/* SPDX-License-Identifier: MIT */
/*
 * Forged files with right checks: impossible ids, lengths, sizes and totals;
 * 100,000 stacks without a record; terabytes of hole; pipes, devices,
 * directories. No crash, no waiting, 64 MiB of memory.
 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "model/profile.h"
#include "read/load.h"
#include "support/format_model.h"
#include "support/one_file.h"
#include "support/sums_of.h"
#include "support/test.h"

#define CHUNK  65536u
#define PERIOD 4096

/* A file under construction: records of one chunk at a time. */
static struct {
	struct model_file model;
	struct model_bytes records;
	struct model_chunk chunk;
	size_t index;
	uint64_t last_id;
} made;

static void begin_file(size_t chunks)
{
	memset(&made, 0, sizeof(made));
	model_file_init(&made.model, 1 + chunks, PERIOD);
	made.index = 1;
	model_chunk_begin(&made.chunk, made.model.file_id, 1);
}

static void next_chunk(void)
{
	model_file_put(&made.model, made.index, &made.records);
	made.records.n = 0;
	made.index++;
	model_chunk_begin(&made.chunk, made.model.file_id, made.index);
}

/* A record whose payload is `n` varints, then bytes. */
static void put(uint8_t type, const uint64_t *fields, size_t n,
		const void *bytes, size_t n_bytes)
{
	FREED_BY(model_done) struct model_bytes payload = {0};

	for (size_t i = 0; i < n; i++)
		model_varint(&payload, fields[i]);
	model_raw(&payload, bytes, n_bytes);
	model_record(&made.records, &made.chunk, type, &payload);
}

#define PUT(type, ...)                                                         \
	put(type, (const uint64_t[]){__VA_ARGS__},                             \
	    sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), "", 0)
#define PUT_TEXT(type, text, ...)                                              \
	put(type, (const uint64_t[]){__VA_ARGS__},                             \
	    sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), text,  \
	    sizeof(text) - 1)

static void put_sample(uint64_t size, uint64_t offset, uint64_t stack,
		       uint64_t thread)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = ++made.last_id,
		.size_bytes = size,
		.offset_bytes = offset,
		.period_bytes = PERIOD,
		.stack = stack,
		.thread = thread,
	};
	model_encode(&made.records, &made.chunk, &r);
}

static struct sp_profile *load_made(void)
{
	struct sp_profile *p;

	model_file_put(&made.model, made.index, &made.records);
	memfile_resize(&one_file, 0);
	memfile_write(&one_file, 0, made.model.bytes.data, made.model.bytes.n);
	p = load_profile(one_file.path);
	model_done(&made.model.bytes);
	model_done(&made.records);
	return p;
}

/* Everything before a bad record is used, nothing after it, and it is named. */
static void expect_damaged(const char *field)
{
	struct sp_profile *p;

	put_sample(10, 0, 0, 0);
	p = load_made();
	if (!strstr(p->damage, field))
		fail_msg("\"%s\" does not name \"%s\"", p->damage, field);
	assert_int_equal(p->damaged_records, 1);
	assert_int_equal(p->n_samples, 1);
	assert_true(p->ignored_bytes > 0);
}

/* A file with one good sample so far. */
static void begin_bad(void)
{
	begin_file(1);
	put_sample(10, 0, 0, 0);
}

#define EXPECT_DAMAGED(field, type, ...)                                       \
	do {                                                                   \
		begin_bad();                                                   \
		PUT(type, __VA_ARGS__);                                        \
		expect_damaged(field);                                         \
	} while (0)

TEST(ranges)
{
	const uint64_t max = UINT64_MAX;

	EXPECT_DAMAGED("info key", SP_RECORD_INFO, max);
	EXPECT_DAMAGED("info key", SP_RECORD_INFO, 1ull << 63);
	EXPECT_DAMAGED("module id", SP_RECORD_MODULE, 0, 1, 1, 0, 0, 0);
	EXPECT_DAMAGED("module id", SP_RECORD_MODULE, 1ull << 32, 1, 1, 0, 0,
		       0);
	EXPECT_DAMAGED("module size", SP_RECORD_MODULE, 1, max, 1, 0, 0, 0);
	EXPECT_DAMAGED("build id length", SP_RECORD_MODULE, 1, 1, 1, 0, 0, 33);
	EXPECT_DAMAGED("build id length", SP_RECORD_MODULE, 1, 1, 1, 0, 0, max);
	EXPECT_DAMAGED("build id", SP_RECORD_MODULE, 1, 1, 1, 0, 0, 32);
	EXPECT_DAMAGED("stack id", SP_RECORD_STACK, 0, 0, 0);
	EXPECT_DAMAGED("stack id", SP_RECORD_STACK, 1ull << 32, 0, 0);
	EXPECT_DAMAGED("frames", SP_RECORD_STACK, 1, 0, 1024);
	EXPECT_DAMAGED("frames", SP_RECORD_STACK, 1, 0, 2, 1, 2, 3);
	EXPECT_DAMAGED("number of frames", SP_RECORD_STACK, 1, 0, 1025);
	EXPECT_DAMAGED("number of frames", SP_RECORD_STACK, 1, 0, max);
	EXPECT_DAMAGED("frame module", SP_RECORD_STACK, 1, 0, 1, max, 1);
	EXPECT_DAMAGED("thread index", SP_RECORD_THREAD, 0, 1, 1);
	EXPECT_DAMAGED("thread index", SP_RECORD_THREAD, max, 1, 1);
	EXPECT_DAMAGED("thread index", SP_RECORD_THREAD_END, 0, 1, 1, 1);
	EXPECT_DAMAGED("sample", SP_RECORD_SAMPLE, 0, 0, 0, 0, 1, 0);
	EXPECT_DAMAGED("sample size", SP_RECORD_SAMPLE, 0, 0, 0, 0, 0, 0, 0);
	EXPECT_DAMAGED("sample offset", SP_RECORD_SAMPLE, 0, 0, 0, 0, 7, 7, 0);
	EXPECT_DAMAGED("sample offset", SP_RECORD_SAMPLE, 0, 0, 0, 0, 7, max,
		       0);
	EXPECT_DAMAGED("sample stack", SP_RECORD_SAMPLE, 0, 0, 0, 0, 7, 0, max);
	EXPECT_DAMAGED("sample thread", SP_RECORD_SAMPLE, 32, 1ull << 32, 0, 0,
		       0, 7, 0, 0);
	EXPECT_DAMAGED("sample period", SP_RECORD_SAMPLE, 64, 0, 0, 0, 0, 7, 0,
		       0);
	EXPECT_DAMAGED("sample period", SP_RECORD_SAMPLE, 64, (1ull << 40) + 1,
		       0, 0, 0, 7, 0, 0);
}

/* The length of a record leads out of the chunk, or does not end. */
TEST(record_lengths)
{
	static const struct {
		const char *bytes;
		size_t n;
	} lengths[] = {
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12},
		{"\xff\xff\x03", 3},
	};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		begin_bad();
		model_raw(&made.records, "\x06", 1);
		model_raw(&made.records, lengths[i].bytes, lengths[i].n);
		expect_damaged("record length");
	}
}

/* The largest of everything is in order. */
TEST(largest)
{
	const uint32_t most = UINT32_MAX;
	const struct sp_acc *acc;
	struct sp_sums *sums;
	struct sp_profile *p;

	begin_file(1);
	PUT(SP_RECORD_MODULE, most, UINT64_MAX, 0, 0, UINT64_MAX, 0);
	PUT(SP_RECORD_STACK, most, UINT64_MAX, 1, most, UINT64_MAX);
	PUT(SP_RECORD_THREAD, most, UINT64_MAX, UINT64_MAX);
	PUT(SP_RECORD_THREAD_END, most, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	for (int i = 0; i < 3; i++)
		put_sample(UINT64_MAX, UINT64_MAX - 1, most, most);
	p = load_made();
	assert_string_equal(p->damage, "");
	sums = sums_of(p);
	acc = &sums->all.all;
	assert_int_equal(acc->samples, 3);
	assert_int_equal(acc->size_bytes, UINT64_MAX);
	assert_int_equal(acc->tail_bytes, 3);
	assert_true(acc->est_bytes > 5e19 && acc->est_bytes < 6e19);
	assert_int_equal(p->n_stacks, 1);
	assert_int_equal(sums->stacks[0].all.samples, 3);
	assert_int_equal(p->stacks[0].frames[0].offset, UINT64_MAX);
	assert_non_null(sp_profile_module(p, most));
	assert_int_equal(sums->threads[0].all.samples, 3);
	sp_sums_free(sums, p);
	assert_int_equal(p->duration_ns, UINT64_MAX);
}

/* An id that comes again: the first stands. */
TEST(duplicates)
{
	struct sp_profile *p;

	begin_file(1);
	PUT_TEXT(SP_RECORD_MODULE, "/first", 1, 0x1000, 0x1000, 0, 1, 0);
	PUT_TEXT(SP_RECORD_MODULE, "/second", 1, 0x5000, 0x1000, 0, 0, 0);
	PUT(SP_RECORD_STACK, 1, 1, 1, 1, 16);
	PUT(SP_RECORD_STACK, 1, 2, 2, 1, 17, 1, 18);
	PUT(SP_RECORD_STACK, 2, 0, 0);
	PUT(SP_RECORD_STACK, 2, 0, 1, 1, 16);
	PUT_TEXT(SP_RECORD_INFO, "exe/first", 3);
	PUT_TEXT(SP_RECORD_INFO, "exe/second", 3);
	PUT_TEXT(SP_RECORD_INFO, "commandone\0two\0", 7);
	PUT_TEXT(SP_RECORD_INFO, "commandother\0", 7);
	put_sample(10, 1, 1, 0);
	p = load_made();
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_modules, 1);
	assert_string_equal(p->modules[0].path, "/first");
	assert_int_equal(p->modules[0].start_pc, 0x1000);
	assert_true(p->modules[0].is_main);
	assert_int_equal(p->n_stacks, 2);
	assert_int_equal(p->stacks[0].n_frames, 1);
	assert_int_equal(p->stacks[0].flags, 1);
	assert_int_equal(p->stacks[1].n_frames, 0);
	assert_string_equal(p->program, "/first");
	assert_int_equal(p->n_infos, 1);
	assert_string_equal(p->command, "one two");
}

/* Records of a thread in any order: the last of its names stands. */
TEST(names)
{
	struct sp_profile *p;

	begin_file(1);
	PUT_TEXT(SP_RECORD_THREAD, "second", 1, 4711, 20);
	PUT_TEXT(SP_RECORD_THREAD, "first", 1, 4711, 10);
	PUT_TEXT(SP_RECORD_THREAD_END, "last", 2, 30, 5, 1);
	PUT_TEXT(SP_RECORD_THREAD, "before", 2, 4712, 10);
	p = load_made();
	assert_int_equal(p->n_thread_infos, 2);
	assert_string_equal(p->thread_infos[0].name, "second");
	assert_string_equal(p->thread_infos[1].name, "last");
	assert_int_equal(p->thread_infos[1].tid, 4712);
}

/* Modules on top of each other, in any order, each found by its id. */
TEST(modules)
{
	static const uint64_t ids[] = {7, 3, 4294967295u, 1, 5};
	struct sp_profile *p;

	begin_file(1);
	for (size_t i = 0; i < 5; i++)
		PUT(SP_RECORD_MODULE, ids[i], 0x1000, 0x1000 * ids[i], 0, 0, 0);
	p = load_made();
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_modules, 5);
	for (size_t i = 0; i < 5; i++) {
		const struct sp_module *m =
			sp_profile_module(p, (uint32_t)ids[i]);

		assert_non_null(m);
		assert_int_equal(m->end_pc, 0x1000 + 0x1000 * ids[i]);
	}
	for (uint32_t id = 0; id <= 8; id += 2)
		assert_null(sp_profile_module(p, id));
}

TEST(texts)
{
	struct sp_profile *p;
	char quotes[2000];

	memset(quotes, '\'', sizeof(quotes));
	begin_file(1);
	PUT_TEXT(SP_RECORD_INFO, "value without a key", 0);
	PUT(SP_RECORD_INFO, 0);
	PUT_TEXT(SP_RECORD_INFO, "k\0eyvalue", 4);
	PUT_TEXT(SP_RECORD_MODULE, "/bin/a\0/bin/b", 1, 0, 1, 0, 0, 0);
	PUT_TEXT(SP_RECORD_THREAD, "a name of more than 15 bytes", 1, 2, 3);
	PUT_TEXT(SP_RECORD_THREAD, "a\0b", 2, 2, 3);
	put(SP_RECORD_INFO, (const uint64_t[]){7}, 1, "command", 7);
	p = load_made();
	assert_string_equal(p->damage, "");
	assert_string_equal(sp_profile_info(p, ""), "value without a key");
	assert_string_equal(sp_profile_info(p, "k"), "value");
	assert_string_equal(p->modules[0].path, "/bin/a");
	assert_string_equal(p->thread_infos[0].name, "a name of more ");
	assert_string_equal(p->thread_infos[1].name, "a");
	assert_string_equal(p->command, "");

	/* Nothing needs more room than quotes, with no end to the last. */
	begin_file(1);
	memcpy(quotes, "command", 7);
	quotes[1000] = '\0';
	put(SP_RECORD_INFO, (const uint64_t[]){7}, 1, quotes, sizeof(quotes));
	p = load_made();
	assert_int_equal(strlen(p->command), 2 + 4 * 993 + 1 + 2 + 4 * 999);
}

TEST(totals)
{
	struct sp_profile *p;
	struct sp_slot_copy *c;

	begin_file(1);
	for (size_t i = 0; i < 3; i++) {
		c = model_file_slot(&made.model, i, 1);
		/* The beginning is behind the end; one owner for all. */
		*c = (struct sp_slot_copy){
			1, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, 1, 9, 9, 0};
	}
	c = model_file_slot(&made.model, 3, 1);
	*c = (struct sp_slot_copy){1, 1, 1, 0, 0, 1ull << 32, 0, 0};
	model_file_status(&made.model, 1)->chunks = 1ull << 48;
	model_file_status(&made.model, 1)->threads = UINT64_MAX;
	model_file_seal(&made.model);
	p = load_made();
	assert_int_equal(p->exact_alloc_bytes, UINT64_MAX);
	assert_int_equal(p->exact_alloc_objects, UINT64_MAX);
	assert_int_equal(p->n_thread_infos, 1);
	assert_int_equal(p->threads, UINT64_MAX);
	/* 2^48 chunks are 2^64 bytes. */
	assert_non_null(strstr(p->damage, "truncated"));
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define STACKS 100000u

/* Every sample of another stack and thread, and no record of either. */
TEST(many_ids)
{
	double start;
	struct sp_profile *p;

	begin_file(64);
	for (uint32_t i = 0; i < STACKS; i++) {
		if (made.records.n > CHUNK - 100)
			next_chunk();
		put_sample(10, 1, 1 + (i * 2654435761u) % UINT32_MAX, i % 1000);
	}
	start = seconds();
	p = load_made();
	assert_true(seconds() - start < 10);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_stacks, STACKS);
	assert_int_equal(p->n_thread_infos, 999);
	assert_int_equal(p->n_samples, STACKS);
	for (size_t i = 0; i < STACKS; i++)
		assert_int_equal(p->samples[i].stack, i);
}

#define LAST_CHUNK ((1ull << 26) - 1)

/* Two samples, and between them a hole that would take minutes to read. */
TEST(sparse)
{
	struct sp_chunk_header h = {SP_FORMAT_CHUNK_MAGIC, SP_CHUNK_RECORDS,
				    LAST_CHUNK, 0};
	double start;
	struct sp_profile *p;

	begin_file(1);
	put_sample(10, 1, 0, 0);
	model_file_put(&made.model, 1, &made.records);
	memfile_resize(&one_file, 0);
	memfile_write(&one_file, 0, made.model.bytes.data, made.model.bytes.n);
	memfile_resize(&one_file, (LAST_CHUNK + 1) * CHUNK);
	made.records.n = 0;
	model_chunk_begin(&made.chunk, made.model.file_id, LAST_CHUNK);
	put_sample(20, 1, 0, 0);
	model_seal(made.model.file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memfile_write(&one_file, LAST_CHUNK * CHUNK, &h, sizeof(h));
	memfile_write(&one_file, LAST_CHUNK * CHUNK + sizeof(h),
		      made.records.data, made.records.n);
	model_done(&made.model.bytes);
	model_done(&made.records);
	start = seconds();
	p = load_profile(one_file.path);
	assert_true(seconds() - start < 10);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0].size_bytes + p->samples[1].size_bytes,
			 30);
	memfile_resize(&one_file, 0);
}

static void expect_error(const char *path, int code, const char *field)
{
	struct sp_profile *p = NULL;
	struct sp_error err = {0};

	assert_int_equal(sp_profile_load(path, NULL, NULL, &p, &err), code);
	assert_null(p);
	assert_ptr_equal(err.file, path);
	assert_true(err.message[0]);
	assert_int_equal(err.has_offset, field != NULL);
	if (field)
		assert_string_equal(err.field, field);
}

TEST(no_profiles)
{
	char dir[] = "/tmp/sampleprof-hostile-XXXXXX", fifo[64];

	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	memfile_resize(&one_file, 0);
	expect_error(one_file.path, -EINVAL, "magic");
	memfile_resize(&one_file, 1 << 20);
	expect_error(one_file.path, -EINVAL, "magic");
	memfile_write(&one_file, 0, "#!/bin/sh\n", 10);
	expect_error(one_file.path, -EINVAL, NULL);
	memfile_write(&one_file, 0, "\x89sprof\r\n\x02", 9);
	expect_error(one_file.path, -EINVAL, "version");
	expect_error(dir, -EINVAL, NULL);
	expect_error(fifo, -EINVAL, NULL);
	expect_error("/dev/zero", -EINVAL, NULL);
	expect_error("/proc/self/maps", -EINVAL, "magic");
	expect_error("", -ENOENT, NULL);
	unlink(fifo);
	expect_error(fifo, -ENOENT, NULL);
	rmdir(dir);
}

TEST_MAIN(one_file_open_limited, one_file_close)
