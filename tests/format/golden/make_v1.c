/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profiles of format version 1, tests/format/golden/v1: the
 * same bytes everywhere and always.  Every value is fixed, and test_golden.c
 * expects it; once a version is released, neither file may change.
 *
 * Usage: make_v1 DIRECTORY
 */
#include <stdbool.h>
#include <stdio.h>

#include "format/golden/image.h"

#define TEXT(text)  text, sizeof(text) - 1
#define PERIOD      GOLDEN_PERIOD
#define FINE_PERIOD 1024u

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

	image_put_record(&r, true);
}

static void put_infos(void)
{
	image_put_info("agent", TEXT("libsampleprof 0.1.0"));
	image_put_info("exe", TEXT("/usr/bin/app"));
	image_put_info("command", TEXT("app\0--mode\0two words\0"));
	image_put_info("host", TEXT("host.example"));
	image_put_info("setting.period", TEXT("4096"));
	image_put_info("setting.out", TEXT("%e.%p.sprof"));
	image_put_info("setting.seed", TEXT("18364758544493064720"));
	image_put_info("allocator", TEXT("/lib/libc.so.6"));
	image_put_info("unwinder", TEXT("libunwind"));
	image_put_info("diagnosis", TEXT(""));
	image_put_info("not.yet.known", TEXT("a fact of a later writer"));
	image_put_info("host", TEXT("second.example"));
}

static void put_modules(void)
{
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_module(2, 0x7f0000000000, 0x200000, 0x7f0000000000, 32,
			 "/lib/libc.so.6");
	image_put_module(3, 0x7fff00000000, 0x1000, 0x7fff00000000, 0,
			 "[vdso]");
	/* Two threads met it at the same time. */
	image_put_module(2, 0x7f0000000000, 0x200000, 0x7f0000000000, 32,
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
	image_put_stack(1, 0, simple, 3);
	image_put_stack(2, SP_STACK_TRUNCATED, deep, 128);
	image_put_stack(3, SP_STACK_CALLER_ONLY, caller, 1);
	image_put_stack(4294967295u, 0, NULL, 0);
}

static void put_totals(void)
{
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
	image_put_status(older, false);
	image_put_status(s, false);
	image_put_slot(0, (struct sp_slot_copy){1, 111, 2, 0, 0, 0, 0, 0},
		       false);
	image_put_slot(1,
		       (struct sp_slot_copy){2, 700000, 40, 0, 0, 1, 4711, 0},
		       false);
	image_put_slot(1,
		       (struct sp_slot_copy){3, 800000, 50, 0, 0, 1, 4711, 0},
		       false);
	image_put_slot(
		2, (struct sp_slot_copy){7, 65536, 30, 5536, 10, 3, 4713, 0},
		false);
	image_put_slot(
		2, (struct sp_slot_copy){8, 75536, 31, 5536, 10, 3, 4713, 0},
		false);
	image_put_slot(447,
		       (struct sp_slot_copy){4, 1ull << 40, 9, 1ull << 40, 9, 0,
					     4714, 0},
		       false);
}

/* Ended by exit(): every type of record and every entry point. */
static void make_clean(void)
{
	static const struct sp_record_frame late[] = {{4, 0x10}, {99, 0x20}};
	struct sp_record end = {.type = SP_RECORD_THREAD_END};

	put_totals();
	image_begin_chunk(1, SP_CHUNK_RECORDS);
	put_infos();
	put_modules();
	image_put_thread(1, 4711, "");
	image_put_thread(2, 4712, "worker");
	/* Its stack comes in the next chunk. */
	put_sample(1, 300, 17, 5, 1, SP_ENTRY_MALLOC);
	put_stacks();
	image_put_unknown_record(200, "of a later writer", 17);
	for (uint8_t entry = 0; entry < 14; entry++)
		put_sample(2 + entry, 1ull << (entry + 3), entry, 1 + entry % 3,
			   1 + entry % 2, entry);
	put_sample(16, 1, 0, 0, 0, 31);
	put_sample(17, 1ull << 40, 1ull << 39, 4294967295u, 5, 0);
	end.u.thread_end = (struct sp_record_thread_end){2, 3000000000u, 5536,
							 10, TEXT("renamed")};
	image_put_record(&end, true);

	image_begin_chunk(2, SP_CHUNK_RECORDS);
	image_put_thread(3, 4713, "fifteen letters");
	image_put_module(4, 0x7e0000000000, 0x1000, 0x7dffffff0000, 1,
			 "/opt/\xc3\xa9t\xc3\xa9 \xff/libx.so");
	image_put_stack(5, 0, late, 2);
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

	image_put_status(s, false);
	s.seq = 2;
	image_put_status(s, true);
	image_put_slot(1, (struct sp_slot_copy){3, 10000, 4, 0, 0, 1, 4711, 0},
		       false);
	image_put_slot(1, (struct sp_slot_copy){4, 20000, 8, 0, 0, 1, 4711, 0},
		       true);
	image_begin_chunk(1, 77);
	image_put_unknown_record(201, "not records", 11);

	image_begin_chunk(2, SP_CHUNK_RECORDS);
	image_put_info("exe", TEXT("/usr/bin/app"));
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_thread(1, 4711, "main");
	image_put_stack(1, 0, frames, 1);
	put_sample(1, 5000, 1, 1, 1, SP_ENTRY_MALLOC);
	put_sample(2, 6000, 2, 1, 1, SP_ENTRY_REALLOC);
	image_put_record(&unfinished, false);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1 DIRECTORY\n");
		return 2;
	}
	image_begin(0);
	make_clean();
	image_write(argv[1], "clean.sprof");
	image_begin(0);
	make_killed();
	image_write(argv[1], "killed.sprof");
	return 0;
}
