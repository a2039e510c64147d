/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profile of version 1 with marks: phases, a snapshot,
 * sampling that changes.  For tests/format/golden/v1-marks, as make_v1.c for
 * tests/format/golden/v1; test_golden_marks.c expects what is here.
 *
 * Usage: make_v1_marks DIRECTORY
 */
#include <stdio.h>

#include "format/golden/image.h"

#define TEXT(text) text, sizeof(text) - 1

static void put_sample(uint64_t id, uint64_t time_ns, uint64_t period)
{
	image_put_sample(id, time_ns, period, false);
}

static void put_names(void)
{
	static const struct sp_record_frame frame[] = {{1, 0x234}};

	image_begin_chunk(1, SP_CHUNK_RECORDS);
	image_put_info("exe", TEXT("/usr/bin/app"));
	image_put_info("sampling", TEXT("0"));
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_stack(1, 0, frame, 1);
	image_put_thread(1, 4711, "main");
}

/* Dormant at first; marks in two chunks, the later in the first; killed after
 * the last mark, which is ahead of what was published. */
static void make_killed(void)
{
	image_put_status(
		(struct sp_status){
			.seq = 1, .time_ns = 9000, .chunks = 3, .threads = 1},
		false);
	image_put_slot(1,
		       (struct sp_slot_copy){1, 90000, 900, 0, 0, 1, 4711, 0},
		       false);
	put_names();
	image_put_mark((struct sp_record_mark){.number = 4,
					       .kind = SP_MARK_PHASE,
					       .time_ns = 4000,
					       .alloc_bytes = 70000,
					       .alloc_objects = 700,
					       .unsampled_bytes = 20000,
					       .unsampled_objects = 200,
					       .slack_bytes = 77,
					       .period_bytes = 2048,
					       .name = "serve"});
	put_sample(2, 4500, 2048);
	/* Of a kind that comes later. */
	image_put_mark((struct sp_record_mark){.number = 5,
					       .kind = 1000,
					       .time_ns = 5000,
					       .alloc_bytes = 95000,
					       .alloc_objects = 950,
					       .unsampled_bytes = 20000,
					       .unsampled_objects = 200,
					       .period_bytes = 2048,
					       .name = "?"});
	image_begin_chunk(2, SP_CHUNK_RECORDS);
	image_put_mark((struct sp_record_mark){.number = 1,
					       .kind = SP_MARK_PHASE,
					       .time_ns = 1000,
					       .alloc_bytes = 15000,
					       .alloc_objects = 150,
					       .unsampled_bytes = 15000,
					       .unsampled_objects = 150,
					       .name = "load"});
	image_put_mark((struct sp_record_mark){.number = 2,
					       .kind = SP_MARK_SAMPLING,
					       .time_ns = 2000,
					       .alloc_bytes = 19000,
					       .alloc_objects = 190,
					       .unsampled_bytes = 19000,
					       .unsampled_objects = 190,
					       .period_bytes = 2048});
	image_put_mark((struct sp_record_mark){.number = 3,
					       .kind = SP_MARK_SNAPSHOT,
					       .time_ns = 3000,
					       .alloc_bytes = 50000,
					       .alloc_objects = 500,
					       .unsampled_bytes = 20000,
					       .unsampled_objects = 200,
					       .period_bytes = 2048,
					       .name = "warm"});
	put_sample(1, 2500, 2048);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1_marks DIRECTORY\n");
		return 2;
	}
	image_begin(SP_HEADER_ALWAYS_LARGE);
	make_killed();
	image_write(argv[1], "killed.sprof");
	return 0;
}
