/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profiles of format version 1, tests/golden/v1: the same
 * bytes everywhere and always.  Every value is fixed, and test_golden.c expects
 * it; once a version is released, neither file may change.
 *
 * Usage: make_v1 DIRECTORY
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/encode.h"

#define CHUNK       SP_FORMAT_CHUNK_BYTES
#define FILE_ID     0x6e656467316c6f76ull
#define MAX_CHUNKS  3
#define TEXT(text)  text, sizeof(text) - 1
#define PERIOD      4096u
#define FINE_PERIOD 1024u

static uint8_t image[MAX_CHUNKS * CHUNK];

/* Where the next record goes. */
static struct {
	uint64_t chunk;
	size_t at;
	struct sp_chunk_state state;
} out;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put_header(void)
{
	struct sp_file_header h = {
		.version = 1,
		.header_bytes = sizeof(h),
		.chunk_bytes = CHUNK,
		.file_id = FILE_ID,
		.pid = 4194304001u,
		.process_start_ticks = 123456,
		.start_unix_ns = 1700000000123456789u,
		.period_bytes = PERIOD,
		.seed = 0xfedcba9876543210u,
		.max_file_bytes = 1 << 20,
		.check_in_bytes = 1 << 20,
	};

	memcpy(h.magic, SP_FORMAT_MAGIC, sizeof(h.magic));
	h.check = sp_format_check(FILE_ID, SP_CHECK_HEADER, &h, sizeof(h));
	memcpy(image, &h, sizeof(h));
}

static void put_status(struct sp_status s, bool is_torn)
{
	s.check = sp_format_check(FILE_ID, SP_CHECK_STATUS, &s, sizeof(s));
	if (is_torn)
		s.check = 0;
	memcpy(image + SP_FORMAT_STATUS_OFFSET +
		       (s.seq & 1) * SP_FORMAT_STATUS_STRIDE,
	       &s, sizeof(s));
}

static void put_slot(size_t slot, struct sp_slot_copy c, bool is_torn)
{
	c.check = sp_format_check(FILE_ID, SP_CHECK_SLOT, &c, sizeof(c));
	if (is_torn)
		c.check = 0;
	memcpy(image + SP_FORMAT_SLOTS_OFFSET + slot * sizeof(struct sp_slot) +
		       (c.seq & 1) * sizeof(c),
	       &c, sizeof(c));
}

static void begin_chunk(uint64_t index, uint32_t kind)
{
	struct sp_chunk_header h = {SP_FORMAT_CHUNK_MAGIC, kind, index, 0};

	h.check = sp_format_check(FILE_ID, SP_CHECK_CHUNK, &h, sizeof(h));
	memcpy(image + index * CHUNK, &h, sizeof(h));
	out.chunk = index;
	out.at = sizeof(h);
	sp_chunk_state_init(&out.state, FILE_ID, index);
}

static uint8_t *position(void)
{
	return image + out.chunk * CHUNK + out.at;
}

/* Without its commit mark a record is unfinished. */
static void put_record(const struct sp_record *r, bool is_finished)
{
	struct sp_encoded e =
		sp_encode(&out.state, position(), CHUNK - out.at, r);

	if (!e.bytes)
		die("a record does not fit");
	if (is_finished)
		*position() = e.type;
	out.at += e.bytes;
}

static void put_unknown_record(uint8_t type, const void *payload, size_t n)
{
	uint8_t *start = position(), *at = sp_varint_put(start + 1, n);
	uint64_t h = sp_hash_word(out.state.hash, type);

	memcpy(at, payload, n);
	at += n;
	h = sp_hash_bytes(h, start + 1, (size_t)(at - start - 1));
	*at++ = (uint8_t)(h >> 48);
	*at++ = (uint8_t)(h >> 56);
	*start = type;
	out.at += (size_t)(at - start);
	out.state.hash = h;
}

static void put_info(const char *key, const char *value, size_t value_bytes)
{
	struct sp_record r = {.type = SP_RECORD_INFO};

	r.u.info =
		(struct sp_record_info){key, strlen(key), value, value_bytes};
	put_record(&r, true);
}

static void put_module(uint64_t id, uint64_t start_pc, uint64_t span,
		       uint64_t bias, size_t build_id_bytes, const char *path)
{
	static const uint8_t build_id[SP_FORMAT_BUILD_ID_MAX] = {
		0x5a, 1,  2,  3,  4,  5,  6,  7,  8,  9,
		10,   11, 12, 13, 14, 15, 16, 17, 18, 0xff};
	struct sp_record r = {.type = SP_RECORD_MODULE};

	r.u.module = (struct sp_record_module){
		.id = id,
		.start_pc = start_pc,
		.end_pc = start_pc + span,
		.bias = bias,
		.flags = id == 1 ? SP_MODULE_MAIN : 0,
		.build_id = build_id,
		.build_id_bytes = build_id_bytes,
		.path = path,
		.path_bytes = strlen(path),
	};
	put_record(&r, true);
}

static void put_stack(uint64_t id, uint64_t flags,
		      const struct sp_record_frame *frames, size_t n)
{
	struct sp_record r = {.type = SP_RECORD_STACK};

	r.u.stack = (struct sp_record_stack){id, flags, frames, n};
	put_record(&r, true);
}

static void put_thread(uint64_t index, uint64_t tid, const char *name)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};

	r.u.thread = (struct sp_record_thread){index, tid, 1000 * index, name,
					       strlen(name)};
	put_record(&r, true);
}

static struct sp_record sample(uint64_t id, uint64_t size, uint64_t offset,
			       uint64_t stack, uint64_t thread, uint8_t entry)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = id,
		/* Every third is earlier than the one before it. */
		.time_ns = 2000000 + 1000 * id - (id % 3 ? 0 : 5000),
		.address = id % 4 ? 0x7f0000000000u + 4096 * id : 0x602010u,
		.size_bytes = size,
		.offset_bytes = offset,
		.period_bytes = id < 12 ? PERIOD : FINE_PERIOD,
		.stack = stack,
		.thread = thread,
		.entry = entry,
	};
	return r;
}

static void put_sample(uint64_t id, uint64_t size, uint64_t offset,
		       uint64_t stack, uint64_t thread, uint8_t entry)
{
	struct sp_record r = sample(id, size, offset, stack, thread, entry);

	put_record(&r, true);
}

static void put_infos(void)
{
	put_info("agent", TEXT("libsampleprof 0.1.0"));
	put_info("exe", TEXT("/usr/bin/app"));
	put_info("command", TEXT("app\0--mode\0two words\0"));
	put_info("host", TEXT("host.example"));
	put_info("setting.period", TEXT("4096"));
	put_info("setting.out", TEXT("%e.%p.sprof"));
	put_info("setting.seed", TEXT("18364758544493064720"));
	put_info("allocator", TEXT("/lib/libc.so.6"));
	put_info("unwinder", TEXT("libunwind"));
	put_info("diagnosis", TEXT(""));
	put_info("not.yet.known", TEXT("a fact of a later writer"));
	put_info("host", TEXT("second.example"));
}

static void put_modules(void)
{
	put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
		   "/usr/bin/app");
	put_module(2, 0x7f0000000000, 0x200000, 0x7f0000000000, 32,
		   "/lib/libc.so.6");
	put_module(3, 0x7fff00000000, 0x1000, 0x7fff00000000, 0, "[vdso]");
	/* Two threads met it at the same time. */
	put_module(2, 0x7f0000000000, 0x200000, 0x7f0000000000, 32,
		   "/lib/libc.so.6");
}

static void put_stacks(void)
{
	static const struct sp_record_frame simple[] = {
		{1, 0x234}, {2, 0x8000}, {1, 0x8000}};
	static const struct sp_record_frame caller[] = {{0, 0x7e0000001234}};
	struct sp_record_frame deep[128];

	for (uint32_t i = 0; i < 128; i++)
		deep[i] = (struct sp_record_frame){1 + i % 2, 16 * i};
	put_stack(1, 0, simple, 3);
	put_stack(2, SP_STACK_TRUNCATED, deep, 128);
	put_stack(3, SP_STACK_CALLER_ONLY, caller, 1);
	put_stack(4294967295u, 0, NULL, 0);
}

/* Ended by exit(): every type of record and every entry point. */
static void make_clean(void)
{
	static const struct sp_record_frame late[] = {{4, 0x10}, {99, 0x20}};
	struct sp_record end = {.type = SP_RECORD_THREAD_END};
	struct sp_status older = {.seq = 1, .time_ns = 1000, .chunks = 2};
	struct sp_status s = {
		.seq = 2,
		.end_kind = SP_END_CLEAN,
		.time_ns = 5000000000u,
		.chunks = 3,
		.threads = 5,
	};

	older.losses[0] = 1;
	for (unsigned int i = 0; i < 12; i++)
		s.losses[i] = 101 + i;
	s.losses[SP_FORMAT_LOSSES - 1] = 999;
	put_status(older, false);
	put_status(s, false);
	put_slot(0, (struct sp_slot_copy){1, 111, 2, 0, 0, 0, 0, 0}, false);
	put_slot(1, (struct sp_slot_copy){2, 700000, 40, 0, 0, 1, 4711, 0},
		 false);
	put_slot(1, (struct sp_slot_copy){3, 800000, 50, 0, 0, 1, 4711, 0},
		 false);
	put_slot(2, (struct sp_slot_copy){7, 65536, 30, 5536, 10, 3, 4713, 0},
		 false);
	put_slot(2, (struct sp_slot_copy){8, 75536, 31, 5536, 10, 3, 4713, 0},
		 false);
	put_slot(447,
		 (struct sp_slot_copy){4, 1ull << 40, 9, 1ull << 40, 9, 0, 4714,
				       0},
		 false);

	begin_chunk(1, SP_CHUNK_RECORDS);
	put_infos();
	put_modules();
	put_thread(1, 4711, "");
	put_thread(2, 4712, "worker");
	/* Its stack comes in the next chunk. */
	put_sample(1, 300, 17, 5, 1, SP_ENTRY_MALLOC);
	put_stacks();
	put_unknown_record(200, "of a later writer", 17);
	for (uint8_t entry = 0; entry < 14; entry++)
		put_sample(2 + entry, 1ull << (entry + 3), entry, 1 + entry % 3,
			   1 + entry % 2, entry);
	put_sample(16, 1, 0, 0, 0, 31);
	put_sample(17, 1ull << 40, 1ull << 39, 4294967295u, 5, 0);
	end.u.thread_end = (struct sp_record_thread_end){2, 3000000000u, 5536,
							 10, TEXT("renamed")};
	put_record(&end, true);

	begin_chunk(2, SP_CHUNK_RECORDS);
	put_thread(3, 4713, "fifteen letters");
	put_module(4, 0x7e0000000000, 0x1000, 0x7dffffff0000, 1,
		   "/opt/\xc3\xa9t\xc3\xa9 \xff/libx.so");
	put_stack(5, 0, late, 2);
	put_sample(19, 5000, 4999, 5, 3, SP_ENTRY_NEW);
	put_sample(18, 8192, 0, 5, 3, SP_ENTRY_CALLOC);
}

/* Killed while it published its totals and wrote a record. */
static void make_killed(void)
{
	static const struct sp_record_frame frames[] = {{1, 0x234}};
	struct sp_status s = {
		.seq = 1, .time_ns = 7000000, .chunks = 1, .threads = 1};
	struct sp_record unfinished = sample(3, 100, 1, 1, 1, SP_ENTRY_MALLOC);

	put_status(s, false);
	s.seq = 2;
	put_status(s, true);
	put_slot(1, (struct sp_slot_copy){3, 10000, 4, 0, 0, 1, 4711, 0},
		 false);
	put_slot(1, (struct sp_slot_copy){4, 20000, 8, 0, 0, 1, 4711, 0}, true);
	begin_chunk(1, 77);
	put_unknown_record(201, "not records", 11);

	begin_chunk(2, SP_CHUNK_RECORDS);
	put_info("exe", TEXT("/usr/bin/app"));
	put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
		   "/usr/bin/app");
	put_thread(1, 4711, "main");
	put_stack(1, 0, frames, 1);
	put_sample(1, 5000, 1, 1, 1, SP_ENTRY_MALLOC);
	put_sample(2, 6000, 2, 1, 1, SP_ENTRY_REALLOC);
	put_record(&unfinished, false);
}

/* The zeros at the end are not stored. */
static void make(const char *directory, const char *name, void (*fill)(void))
{
	size_t n = sizeof(image);
	char path[4096];
	FILE *f;

	memset(image, 0, sizeof(image));
	put_header();
	fill();
	while (image[n - 1] == 0)
		n--;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "wbe");
	if (!f || fwrite(image, 1, n, f) != n || fclose(f) != 0)
		die(path);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1 DIRECTORY\n");
		return 2;
	}
	make(argv[1], "clean.sprof", make_clean);
	make(argv[1], "killed.sprof", make_killed);
	return 0;
}
