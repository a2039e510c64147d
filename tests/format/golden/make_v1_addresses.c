/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profiles of version 1 whose frees have addresses.  For
 * tests/format/golden/v1-addresses, as make_v1.c for tests/format/golden/v1;
 * test_golden_addresses.c expects what is here.
 *
 * Usage: make_v1_addresses DIRECTORY
 */
#include <stdio.h>

#include "format/golden/image.h"

#define TEXT(text) text, sizeof(text) - 1

#define FLAGS                                                                  \
	(SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES | SP_HEADER_SEGMENTS |       \
	 SP_HEADER_STACK_STEPS | SP_HEADER_ADDRESSES)

#define MAIN   1u
#define WORKER 2u
#define NOBODY 0u

#define A 0x602010u
#define B 0x602100u
#define C 0x7f0000001010u
#define D 0x7f0000002020u

/* Sizes are hundreds of the id, so that sums say which samples are in them. */
static void put_sample(uint64_t id, uint64_t time_ns, uint64_t address,
		       uint64_t thread, uint64_t period_bytes)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = id,
		.time_ns = time_ns,
		.address = address,
		.size_bytes = 100 * id,
		.period_bytes = period_bytes,
		.stack = 1 + id % 2,
		.thread = thread,
	};
	image_put_record(&r, true);
}

static void put_free(uint64_t time_ns, uint64_t address, uint64_t thread,
		     bool is_finished)
{
	struct sp_record r = {.type = SP_RECORD_FREE_ADDRESS};

	r.u.free_address =
		(struct sp_record_free_address){address, time_ns, thread};
	image_put_record(&r, is_finished);
}

static void put_names(void)
{
	image_put_info("command", TEXT("app\0every\0"));
	image_put_info("sampling", TEXT("1"));
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_thread(MAIN, 4711, "main");
}

static void put_stacks(void)
{
	static const struct sp_record_frame one[] = {{1, 0x234}};
	static const struct sp_record_frame two[] = {{1, 0x300}, {1, 0x400}};

	image_put_stack(1, 0, one, 1);
	image_put_stack(2, 0, two, 2);
}

/* Two threads in chunks that overlap in time; sample 9 was dropped. */
static void put_worker(void)
{
	image_put_thread(WORKER, 4712, "worker");
	/* Its sample comes behind it in the file. */
	put_free(9600, C, MAIN, true);
	put_sample(8, 9500, C, WORKER, 1);
	put_sample(10, 10000, D, WORKER, 1);
	put_sample(11, 10100, C, WORKER, 1);
	put_free(10500, D, WORKER, true);
	/* From here on some objects are missing. */
	put_sample(12, 12000, D, WORKER, GOLDEN_PERIOD);
	put_sample(13, 13000, D + 0x100, WORKER, GOLDEN_PERIOD);
	put_free(14000, D, WORKER, true);
}

static void make_exit(void)
{
	image_put_status((struct sp_status){.seq = 1,
					    .end_kind = SP_END_CLEAN,
					    .time_ns = 30000,
					    .chunks = 4,
					    .threads = 2},
			 false);
	image_put_slot(MAIN,
		       (struct sp_slot_copy){1, 2800, 7, 0, 0, 1, 4711, 0},
		       false);
	image_put_slot(WORKER,
		       (struct sp_slot_copy){1, 9000, 9, 0, 0, 0, 4712, 0},
		       false);
	image_begin_chunk(1, SP_CHUNK_RECORDS);
	put_names();
	image_begin_chunk(sp_format_chunk_index(2, 1), SP_CHUNK_RECORDS);
	put_stacks();
	/* Of an object from before the start. */
	put_free(1000, B + 0x1000, MAIN, true);
	put_sample(1, 2000, A, MAIN, 1);
	put_sample(2, 3000, B, MAIN, 1);
	put_free(4000, A, MAIN, true);
	/* The address comes back; then it is freed elsewhere, and twice. */
	put_sample(3, 5000, A, MAIN, 1);
	put_free(5500, A, WORKER, true);
	put_free(5600, A, MAIN, true);
	/* The free of 4 is missing. */
	put_sample(4, 6000, A, MAIN, 1);
	put_sample(5, 7000, A, MAIN, 1);
	/* At one moment the free is first. */
	put_sample(6, 8000, A, MAIN, 1);
	put_free(8000, A, MAIN, true);
	/* The longest differences of addresses. */
	put_sample(7, 9000, UINT64_MAX - 15, MAIN, 1);
	put_free(20000, B, NOBODY, true);
	image_begin_chunk(sp_format_chunk_index(3, 1), SP_CHUNK_RECORDS);
	put_worker();
}

/* Killed within the record of a free. */
static void make_killed(void)
{
	image_put_status(
		(struct sp_status){
			.seq = 1, .time_ns = 9000, .chunks = 2, .threads = 1},
		false);
	image_put_slot(MAIN, (struct sp_slot_copy){1, 300, 2, 0, 0, 1, 4711, 0},
		       false);
	image_begin_chunk(1, SP_CHUNK_RECORDS);
	put_names();
	image_begin_chunk(sp_format_chunk_index(2, 1), SP_CHUNK_RECORDS);
	put_stacks();
	put_sample(1, 2000, A, MAIN, 1);
	put_sample(2, 3000, B, MAIN, 1);
	put_free(4000, A, MAIN, true);
	put_free(5000, B, MAIN, false);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1_addresses DIRECTORY\n");
		return 2;
	}
	image_begin(FLAGS);
	make_exit();
	image_write(argv[1], "exit.sprof");
	image_begin(FLAGS);
	make_killed();
	image_write(argv[1], "killed.sprof");
	return 0;
}
