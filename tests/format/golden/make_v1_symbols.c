/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profile of version 1 that brings its symbols along.  For
 * tests/format/golden/v1-symbols, as make_v1.c for tests/format/golden/v1;
 * test_golden_symbols.c expects what is here.
 *
 * Usage: make_v1_symbols DIRECTORY
 */
#include <stdio.h>

#include "format/golden/image.h"

#define TEXT(text) text, sizeof(text) - 1

static void put_records(void)
{
	static const struct sp_record_frame frames[] = {
		{1, 0x234}, {1, 0x300}, {0, 0x7f0000001000}};
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	image_begin_chunk(1, SP_CHUNK_RECORDS);
	image_put_info("exe", TEXT("/usr/bin/app"));
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_thread(1, 4711, "main");
	image_put_stack(1, 0, frames, 3);
	r.u.sample = (struct sp_record_sample){
		.id = 1,
		.time_ns = 5000,
		.address = 0x602000,
		.size_bytes = 1000,
		.offset_bytes = 999,
		.period_bytes = GOLDEN_PERIOD,
		.stack = 1,
		.thread = 1,
	};
	image_put_record(&r, true);
}

/* Payloads as docs/format.md has them: names in any order, before the symbols
 * that have them. */
static void put_symbols(void)
{
	image_begin_chunk(2, SP_CHUNK_SYMBOLS);
	image_put_unknown_record(SP_RECORD_NAME, TEXT("\x03src/app.c"));
	image_put_unknown_record(SP_RECORD_NAME, TEXT("\x02main"));
	image_put_unknown_record(SP_RECORD_NAME, TEXT("\x01helper(int)"));
	/* Offset 0x234: number 1, inlined, in file 3, line 300, into number 2,
	 * without a file. */
	image_put_unknown_record(
		SP_RECORD_SYMBOL,
		TEXT("\x01\xb4\x04\x02\x01\x01\x03\xac\x02\x00\x02\x00\x00"));
	image_begin_chunk(3, SP_CHUNK_SYMBOLS);
	/* Offset 0x300: not known, but for where it begins. */
	image_put_unknown_record(SP_RECORD_NAME, TEXT("\x04"
						      "app+0x1300"));
	image_put_unknown_record(SP_RECORD_SYMBOL,
				 TEXT("\x01\x80\x06\x01\x02\x04\x00\x00"));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1_symbols DIRECTORY\n");
		return 2;
	}
	image_begin(0);
	image_put_status((struct sp_status){.seq = 1,
					    .end_kind = SP_END_CLEAN,
					    .time_ns = 9000,
					    .chunks = 2,
					    .threads = 1},
			 false);
	image_put_slot(1,
		       (struct sp_slot_copy){1, 90000, 900, 0, 0, 1, 4711, 0},
		       false);
	put_records();
	put_symbols();
	image_write(argv[1], "carried.sprof");
	return 0;
}
