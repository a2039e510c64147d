/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profile of version 1 whose samples have the ids of their
 * stacks as differences.  For tests/format/golden/v1-steps, as make_v1.c for
 * tests/format/golden/v1; test_golden_steps.c expects what is here.
 *
 * Usage: make_v1_steps DIRECTORY
 */
#include <stdio.h>

#include "format/golden/image.h"

static void put_sample(uint64_t id, uint32_t stack, bool is_again)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = id,
		.time_ns = 1000 * id,
		.address = 0x602000 + 64 * id,
		.size_bytes = 1000 + id,
		.offset_bytes = 999,
		.period_bytes = GOLDEN_PERIOD,
		.stack = stack,
		.thread = 1,
		.is_again = is_again,
	};
	image_put_record(&r, true);
}

static void put_free(uint64_t id)
{
	struct sp_record r = {.type = SP_RECORD_FREE};

	r.u.free =
		(struct sp_record_free){.id = id, .time_ns = 9000, .thread = 1};
	image_put_record(&r, true);
}

/* The frame says which stack it is. */
static void put_stack(uint32_t id)
{
	const struct sp_record_frame frame = {1, 0x100 + id % 0x1000};

	image_put_stack(id, 0, &frame, 1);
}

static void make_steps(void)
{
	image_put_status((struct sp_status){.seq = 1,
					    .end_kind = SP_END_CLEAN,
					    .time_ns = 9500,
					    .chunks = 3,
					    .threads = 1},
			 false);
	image_put_slot(1, (struct sp_slot_copy){1, 50000, 50, 0, 0, 1, 4711, 0},
		       false);
	image_begin_chunk(1, SP_CHUNK_RECORDS);
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_thread(1, 4711, "main");
	/* Up and down, none, the same again, and the longest steps. */
	image_begin_chunk(sp_format_chunk_index(2, 1), SP_CHUNK_RECORDS);
	put_stack(0x20018);
	put_stack(0x20030);
	put_stack(UINT32_MAX);
	put_sample(1, 0x20030, false);
	put_sample(2, 0x20018, false);
	put_sample(3, 0x20018, false);
	put_sample(4, 0, false);
	put_sample(5, UINT32_MAX, false);
	put_free(2);
	put_sample(6, 0, false);
	/* A chunk begins anew, a segment with stacks of its own. */
	image_begin_chunk(sp_format_chunk_index(3, 2), SP_CHUNK_RECORDS);
	put_stack(0x30018);
	put_sample(7, 0x30018, false);
	put_sample(1, 0x30018, true);
	put_sample(8, 0x30018, false);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1_steps DIRECTORY\n");
		return 2;
	}
	image_begin(SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES |
		    SP_HEADER_SEGMENTS | SP_HEADER_STACK_STEPS);
	make_steps();
	image_write(argv[1], "steps.sprof");
	return 0;
}
