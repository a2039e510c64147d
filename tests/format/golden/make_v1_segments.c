/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profile of version 1 with segments, of which the oldest
 * were discarded.  For tests/format/golden/v1-segments, as make_v1.c for
 * tests/format/golden/v1; test_golden_segments.c expects what is here.
 *
 * Usage: make_v1_segments DIRECTORY
 */
#include <stdio.h>

#include "format/golden/image.h"

#define TEXT(text) text, sizeof(text) - 1

static void put_sample(uint64_t id, uint64_t time_ns, bool is_again)
{
	image_put_sample(id, time_ns, GOLDEN_PERIOD, is_again);
}

static void put_free(uint64_t id, uint64_t time_ns)
{
	struct sp_record r = {.type = SP_RECORD_FREE};

	r.u.free = (struct sp_record_free){
		.id = id, .time_ns = time_ns, .thread = 1};
	image_put_record(&r, true);
}

static void put_permanent(void)
{
	static const struct sp_record_frame frame[] = {{1, 0x234}};

	image_begin_chunk(1, SP_CHUNK_RECORDS);
	image_put_info("exe", TEXT("/usr/bin/app"));
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_stack(1, 0, frame, 1);
	image_put_thread(1, 4711, "main");
	image_put_mark((struct sp_record_mark){.number = 1,
					       .kind = SP_MARK_PHASE,
					       .time_ns = 4000,
					       .alloc_bytes = 40000,
					       .alloc_objects = 400,
					       .unsampled_bytes = 1000,
					       .unsampled_objects = 10,
					       .period_bytes = GOLDEN_PERIOD,
					       .name = "serve"});
	image_put_mark((struct sp_record_mark){.number = 2,
					       .kind = SP_MARK_PHASE,
					       .time_ns = 8000,
					       .alloc_bytes = 80000,
					       .alloc_objects = 800,
					       .unsampled_bytes = 1000,
					       .unsampled_objects = 10,
					       .period_bytes = GOLDEN_PERIOD,
					       .name = "late"});
}

static void put_windows(void)
{
	struct sp_window w = {.seq = 1,
			      .oldest = 2,
			      .time_ns = 900,
			      .alloc_bytes = 9000,
			      .alloc_objects = 90};

	image_put_window(w, false);
	image_put_window((struct sp_window){.seq = 2,
					    .oldest = 3,
					    .time_ns = 5000,
					    .mark = 1,
					    .alloc_bytes = 60000,
					    .alloc_objects = 600,
					    .unsampled_bytes = 1000,
					    .unsampled_objects = 10,
					    .slack_bytes = 5},
			 false);
}

/* The ring has come round: the newest segment stands before the others. */
static void put_ring(void)
{
	image_begin_chunk(sp_format_chunk_index(2, 4), SP_CHUNK_RECORDS);
	put_sample(9, 8500, false);
	put_free(9, 8600);
	put_sample(7, 4500, true);
	/* Discarded, and not used again yet: its free is gone already. */
	image_begin_chunk(sp_format_chunk_index(3, 2), SP_CHUNK_RECORDS);
	put_sample(1, 1000, false);
	image_begin_chunk(sp_format_chunk_index(4, 3), SP_CHUNK_RECORDS);
	put_sample(5, 2000, true);
	put_sample(6, 4800, false);
	put_free(6, 4900);
	put_sample(7, 4500, true);
	put_free(3, 5200);
	put_sample(8, 5500, false);
	put_free(5, 6000);
	put_free(8, 7000);
}

/* Nothing was discarded: what is written again says nothing new. */
static void make_whole(void)
{
	image_put_status((struct sp_status){.seq = 1,
					    .end_kind = SP_END_CLEAN,
					    .time_ns = 9000,
					    .chunks = 3,
					    .threads = 1},
			 false);
	image_put_slot(1,
		       (struct sp_slot_copy){1, 90000, 900, 0, 0, 1, 4711, 0},
		       false);
	put_permanent();
	image_begin_chunk(sp_format_chunk_index(2, 1), SP_CHUNK_RECORDS);
	put_sample(1, 1000, false);
	image_begin_chunk(sp_format_chunk_index(3, 2), SP_CHUNK_RECORDS);
	/* As if the first record of it had been lost. */
	put_sample(2, 1000, true);
	put_sample(1, 1000, true);
	put_free(1, 2000);
}

static void make_bounded(void)
{
	image_put_status((struct sp_status){.seq = 1,
					    .end_kind = SP_END_CLEAN,
					    .time_ns = 9000,
					    .chunks = 4,
					    .threads = 1},
			 false);
	image_put_slot(1,
		       (struct sp_slot_copy){1, 100000, 1000, 0, 0, 1, 4711, 0},
		       false);
	put_windows();
	put_permanent();
	put_ring();
}

int main(int argc, char **argv)
{
	const uint32_t flags =
		SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES | SP_HEADER_SEGMENTS;

	if (argc != 2) {
		fprintf(stderr, "usage: make_v1_segments DIRECTORY\n");
		return 2;
	}
	image_begin(flags);
	make_bounded();
	image_write(argv[1], "bounded.sprof");
	image_begin(flags);
	make_whole();
	image_write(argv[1], "whole.sprof");
	return 0;
}
