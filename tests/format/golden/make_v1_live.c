/* SPDX-License-Identifier: MIT */
/*
 * Writes the golden profiles of version 1 with what it got later: frees,
 * totals by size class, resident memory, flags of the header.  For
 * tests/format/golden/v1-live, as make_v1.c for tests/format/golden/v1;
 * test_golden_live.c expects what is here.
 *
 * Usage: make_v1_live DIRECTORY
 */
#include <stdbool.h>
#include <stdio.h>

#include "format/golden/image.h"

#define TEXT(text) text, sizeof(text) - 1

static void put_sample(uint64_t id, uint64_t time_ns, uint64_t size,
		       uint64_t thread)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = id,
		.time_ns = time_ns,
		.address = 0x602000 + 64 * id,
		.size_bytes = size,
		.offset_bytes = size - 1,
		.period_bytes = GOLDEN_PERIOD,
		.stack = 1 + id % 2,
		.thread = thread,
		.entry = SP_ENTRY_MALLOC,
	};
	image_put_record(&r, true);
}

static void put_free(uint64_t id, uint64_t time_ns, uint64_t thread,
		     uint64_t flags)
{
	struct sp_record r = {.type = SP_RECORD_FREE};

	r.u.free = (struct sp_record_free){
		.id = id, .time_ns = time_ns, .thread = thread, .flags = flags};
	image_put_record(&r, true);
}

static void put_free_of_own(uint64_t id, uint64_t time_ns, uint64_t thread,
			    uint64_t age_bytes)
{
	struct sp_record r = {.type = SP_RECORD_FREE};

	r.u.free = (struct sp_record_free){.id = id,
					   .time_ns = time_ns,
					   .thread = thread,
					   .has_age = true,
					   .age_bytes = age_bytes};
	image_put_record(&r, true);
}

static void put_rss(uint64_t time_ns, uint64_t rss_bytes)
{
	struct sp_record r = {.type = SP_RECORD_RSS};

	r.u.rss = (struct sp_record_rss){time_ns, rss_bytes};
	image_put_record(&r, true);
}

static void put_names(void)
{
	static const struct sp_record_frame one[] = {{1, 0x234}};
	static const struct sp_record_frame two[] = {{1, 0x300}, {1, 0x400}};

	image_put_info("exe", TEXT("/usr/bin/app"));
	image_put_info("command", TEXT("app\0live\0"));
	image_put_module(1, 0x555500001000, 0x8000, 0x555500000000, 20,
			 "/usr/bin/app");
	image_put_stack(1, 0, one, 1);
	image_put_stack(2, 0, two, 2);
}

static struct sp_class_page page(uint64_t slot, uint64_t seq)
{
	struct sp_class_page p = {.seq = seq, .slot = slot};

	return p;
}

static void put_class_totals(void)
{
	struct sp_class_page p = page(1, 1);

	p.classes[0] = (struct sp_class_total){1000, 100};
	image_put_classes(2, p, false);
	p = page(1, 2);
	p.classes[0] = (struct sp_class_total){2000, 200};
	p.classes[63] = (struct sp_class_total){10240, 10};
	p.classes[SP_FORMAT_CLASSES - 1] =
		(struct sp_class_total){1ull << 60, 1};
	image_put_classes(2, p, false);
	p = page(2, 7);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++)
		p.classes[i] = (struct sp_class_total){16 * (i + 1), 1};
	image_put_classes(2, p, false);
}

/* The sum of the 252 classes above. */
#define SLOT_2_BYTES   (16u * 252 * 253 / 2)
#define SLOT_1_BYTES   (2000 + 10240 + (1ull << 60))
#define SLOT_1_OBJECTS 211u

/* Ended by exit(): frees before and after their samples, of own and of foreign
 * threads, missed, twice, of nothing. */
static void make_exit(void)
{
	struct sp_status s = {.seq = 1,
			      .end_kind = SP_END_CLEAN,
			      .time_ns = 9000000,
			      .chunks = 4,
			      .threads = 2};

	image_put_status(s, false);
	image_put_slot(0, (struct sp_slot_copy){1, 111, 2, 0, 0, 0, 0, 0},
		       false);
	image_put_slot(1,
		       (struct sp_slot_copy){2, SLOT_1_BYTES, SLOT_1_OBJECTS, 0,
					     0, 1, 4711, 0},
		       false);
	image_put_slot(
		2,
		(struct sp_slot_copy){1, SLOT_2_BYTES, 252, 0, 0, 0, 4712, 0},
		false);

	image_begin_chunk(1, SP_CHUNK_RECORDS);
	put_names();
	image_put_thread(1, 4711, "main");
	put_rss(3000000, 12 << 20);
	for (uint64_t id = 1; id <= 6; id++)
		put_sample(id, 1000000 + 1000 * id, 100 * id, 1);
	put_free_of_own(2, 1004500, 1, 700);
	put_free_of_own(1, 1009000, 1, 0);
	/* Its sample comes in another chunk. */
	put_free(12, 5000000, 1, 0);
	/* No such sample. */
	put_free(99, 5000001, 1, 0);
	/* Once more, later. */
	put_free_of_own(2, 1004600, 1, 800);
	put_rss(1000000, 10 << 20);

	image_begin_chunk(2, SP_CHUNK_CLASSES);
	put_class_totals();

	image_begin_chunk(3, SP_CHUNK_RECORDS);
	image_put_thread(2, 4712, "worker");
	/* The longest differences. */
	put_free(3, 1ull << 62, 2, 0);
	put_sample(12, 4000000, 18863, 2);
	put_sample(10, 2000000, 5000, 2);
	/* 7, 8, 9 were dropped. */
	put_sample(11, 2500000, 1ull << 40, 2);
	put_free(10, 2600000, 0, SP_FREE_MISSED);
	/* Clocks of two processors. */
	put_free(4, 900000, 2, 0);
	put_rss(2000000, 1ull << 50);
	image_put_unknown_record(9, "of a later writer", 17);
}

/* Killed while it wrote its classes, and the record of a free. */
static void make_killed(void)
{
	struct sp_record unfinished = {.type = SP_RECORD_FREE};
	struct sp_class_page p = page(1, 3);

	image_put_status((struct sp_status){.seq = 1,
					    .time_ns = 7000000,
					    .chunks = 3,
					    .threads = 1},
			 false);
	image_put_slot(1, (struct sp_slot_copy){3, 10000, 40, 0, 0, 1, 4711, 0},
		       false);
	image_begin_chunk(1, SP_CHUNK_RECORDS);
	put_names();
	image_put_thread(1, 4711, "main");
	put_sample(1, 5000000, 5000, 1);
	put_sample(2, 6000000, 60000, 1);
	put_free_of_own(1, 6500000, 1, 60000);
	unfinished.u.free = (struct sp_record_free){
		.id = 2, .time_ns = 6600000, .thread = 1};
	image_put_record(&unfinished, false);

	image_begin_chunk(2, SP_CHUNK_CLASSES);
	p.classes[5] = (struct sp_class_total){6000, 30};
	image_put_classes(2, p, false);
	p.seq = 4;
	p.classes[5] = (struct sp_class_total){8000, 35};
	image_put_classes(2, p, true);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_v1_live DIRECTORY\n");
		return 2;
	}
	image_begin(SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES);
	make_exit();
	image_write(argv[1], "exit.sprof");
	image_begin(SP_HEADER_LAW_DOTNET | SP_HEADER_FREES);
	make_killed();
	image_write(argv[1], "killed.sprof");
	return 0;
}
