/* SPDX-License-Identifier: MIT */
/*
 * What a file proves of the exact totals, and how much more there may be:
 * slots, classes, samples and marks, each alone and against the others.
 */

#include "model/whole.h"
#include "read/load.h"
#include "support/format_model.h"
#include "support/scratch.h"
#include "support/load_profile.h"
#include "support/test.h"

#define CHECK_IN (1u << 20)

static struct model_file file;
static struct model_bytes records;
static struct model_chunk chunk;
static uint64_t last_id, sample_period = 4096, sample_bytes = 40;

/* Chunk 1 has records, chunk 2 class totals. */
static void begin_file(uint64_t end_kind)
{
	model_file_init(&file, 3, 4096);
	model_file_header(&file)->check_in_bytes = CHECK_IN;
	model_file_status(&file, 1)->end_kind = end_kind;
	model_file_put_classes(&file, 2);
	model_chunk_begin(&chunk, file.file_id, 1);
	last_id = 0;
}

static void put_slot(size_t slot, uint64_t bytes, uint64_t objects,
		     uint64_t base_bytes, uint64_t thread)
{
	*model_file_slot(&file, slot, 1) = (struct sp_slot_copy){
		1, bytes, objects, base_bytes, 0, thread, 700 + thread, 0};
}

/* Objects of 100 bytes. */
static void put_class(unsigned int slot, uint64_t objects)
{
	struct sp_class_page *page = model_file_class_page(&file, 2, slot, 1);

	page->seq = 1;
	page->slot = slot;
	page->classes[6] = (struct sp_class_total){100 * objects, objects};
	model_file_seal_classes(&file, page);
}

static void put_sample(uint64_t thread, uint64_t size)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){.id = ++last_id,
					       .time_ns = last_id,
					       .size_bytes = size,
					       .period_bytes = sample_period,
					       .thread = thread};
	model_encode(&records, &chunk, &r);
}

static void put_mark(uint64_t bytes)
{
	struct sp_record r = {.type = SP_RECORD_MARK};

	r.u.mark = (struct sp_record_mark){.number = 1,
					   .kind = SP_MARK_SNAPSHOT,
					   .time_ns = 1,
					   .alloc_bytes = bytes,
					   .alloc_objects = 1,
					   .period_bytes = 4096,
					   .name = "m",
					   .name_bytes = 1};
	model_encode(&records, &chunk, &r);
}

/* The same whether samples are kept, folded or counted. */
static void expect(uint64_t bytes, uint64_t objects, uint64_t missing)
{
	const struct sp_plan plan = {.confidence = 0.95};
	const struct sp_plan counted = {.no_samples = true};
	struct sp_profile *p[3];
	struct sp_error err;

	model_file_put(&file, 1, &records);
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&records);
	model_done(&file.bytes);
	assert_int_equal(sp_profile_load(scratch, NULL, NULL, &p[0], &err), 0);
	assert_int_equal(read_profile(scratch, &plan, &p[1], &err), 0);
	assert_int_equal(read_profile(scratch, &counted, &p[2], &err), 0);
	assert_int_equal(p[2]->n_samples + p[2]->n_groups, 0);
	for (int i = 0; i < 3; i++) {
		uint64_t known = p[i]->classes[6].bytes;

		assert_int_equal(p[i]->exact_alloc_bytes, bytes);
		assert_int_equal(p[i]->exact_alloc_objects, objects);
		assert_int_equal(p[i]->missing_bytes_max, missing);
		assert_int_equal(sp_profile_samples(p[i]), last_id);
		assert_int_equal(p[i]->class_slack_bytes,
				 bytes - known + missing);
		assert_int_equal(sp_profile_is_exact(p[i]),
				 p[i]->end == SP_PROFILE_END_CLEAN && !missing);
		sp_profile_free(p[i]);
	}
}

/* After an orderly end class pages have what threads had not published. */
TEST(classes_are_ahead)
{
	begin_file(SP_END_CLEAN);
	put_slot(1, 5000, 50, 0, 1);
	put_class(1, 80);
	put_slot(2, 3000, 30, 1000, 0);
	put_class(2, 30);
	expect(8000 + 3000, 80 + 30, 0);
}

TEST(threads_went_on)
{
	begin_file(SP_END_CLEAN);
	model_file_status(&file, 1)->losses[SP_LOSS_AFTER_EXIT] = 4096;
	put_slot(1, 5000, 50, 0, 1);
	put_class(1, 80);
	expect(8000, 80, 4096);
}

/* What a thread may hold back: 4 KiB, as much as it has, a check-in. */
TEST(killed)
{
	begin_file(SP_END_NONE);
	put_slot(1, 100, 1, 0, 1);
	put_slot(2, 7000, 2, 2000, 2);
	put_slot(3, 90 << 20, 3, 0, 3);
	put_slot(4, 500, 4, 0, 0); /* ended */
	expect(100 + 7000 + (90 << 20) + 500, 10, 4096 + 5000 + CHECK_IN);
}

TEST(killed_ahead)
{
	begin_file(SP_END_NONE);
	/* Published 5000, of 10000 that it may have: 8000 are proved. */
	put_slot(1, 5000, 50, 0, 1);
	put_class(1, 80);
	/* The class page has the owners before, too. */
	put_slot(2, 9000, 90, 8000, 2);
	put_class(2, 100);
	expect(8000 + 10000, 180, 2000 + 3096);
}

TEST(samples)
{
	begin_file(SP_END_NONE);
	put_slot(1, 5000, 2, 1000, 1); /* 4000 of its own, 8096 at most */
	put_class(1, 55);
	put_sample(1, 4000);
	put_sample(1, 3000);
	put_sample(2, 50000); /* has a slot, and published more */
	put_slot(2, 90000, 1, 0, 2);
	put_sample(3, 70000); /* its slot was given back: it published */
	expect(1000 + 7000 + 90000, 55 + 1, 1096 + 90000);
}

TEST(slotless)
{
	begin_file(SP_END_NONE);
	model_file_status(&file, 1)->losses[SP_LOSS_NO_SLOT] = 3;
	put_slot(0, 100, 1, 0, 0);
	expect(100, 1, 3ull * CHECK_IN);
}

/* The disk was nearly full: how much came later nobody knows, nor, unless the
 * end was orderly, what was alive then.  Once samples had no room, those of the
 * time of the status are all, else those up to the last event. */
static void expect_low(enum sp_end_kind end, uint64_t lost, uint64_t full_ns)
{
	struct sp_status *status;
	struct sp_profile *p;
	struct sp_error err;

	begin_file(end);
	status = model_file_status(&file, 1);
	status->losses[SP_LOSS_PAGE] = 2;
	status->losses[SP_LOSS_FILE_FULL] = lost;
	status->time_ns = 777;
	put_slot(1, 5000, 2, 0, 1);
	put_sample(1, 4000);
	model_file_put(&file, 1, &records);
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&records);
	model_done(&file.bytes);
	assert_int_equal(sp_profile_load(scratch, NULL, NULL, &p, &err), 0);
	assert_true(p->missing_bytes_max == UINT64_MAX);
	assert_int_equal(p->full_ns, full_ns);
	assert_false(sp_profile_is_exact(p));
	sp_profile_free(p);
}

TEST(low_disk)
{
	expect_low(SP_END_NONE, 0, 1);
	expect_low(SP_END_NONE, 5, 777);
	expect_low(SP_END_SIGNAL + 9, 5, 777);
	expect_low(SP_END_CLEAN, 5, 0);
}

/* Nobody knows what a slot had that cannot be read. */
TEST(unreadable_slot)
{
	for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
		struct sp_profile *p;
		struct sp_error err;

		begin_file(SP_END_CLEAN);
		put_slot(1, 5000, 50, 0, 1);
		put_slot(2, 3000, 30, 0, 2);
		model_file_put(&file, 1, &records);
		model_file_seal(&file);
		model_file_slot(&file, 2, 1)->alloc_bytes ^= is_damaged;
		assert_int_equal(model_file_write(&file, scratch, file.bytes.n),
				 0);
		model_done(&records);
		model_done(&file.bytes);
		assert_int_equal(sp_profile_load(scratch, NULL, NULL, &p, &err),
				 0);
		assert_int_equal(p->missing_bytes_max,
				 is_damaged ? UINT64_MAX : 0);
		assert_int_equal(sp_profile_is_exact(p), !is_damaged);
		sp_profile_free(p);
	}
}

/* A file of two samples. */
static struct sp_profile *two_samples(enum sp_end_kind end, uint64_t period,
				      uint64_t objects, uint64_t bytes,
				      uint64_t lost, enum sp_loss kind)
{
	struct sp_profile *p;
	struct sp_error err;

	begin_file(end);
	model_file_header(&file)->period_bytes = period;
	model_file_status(&file, 1)->losses[kind] = lost;
	put_slot(1, bytes, objects, 0, 1);
	put_sample(1, sample_bytes);
	put_sample(1, sample_bytes);
	model_file_put(&file, 1, &records);
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&records);
	model_done(&file.bytes);
	assert_int_equal(sp_profile_load(scratch, NULL, NULL, &p, &err), 0);
	return p;
}

/* Its loss UNRECORDED. */
static uint64_t unrecorded(uint64_t period, uint64_t objects, uint64_t bytes,
			   uint64_t lost, enum sp_loss kind)
{
	struct sp_profile *p =
		two_samples(SP_END_CLEAN, period, objects, bytes, lost, kind);
	const uint64_t found = p->losses[SP_LOSS_UNRECORDED];

	if (!lost) {
		const struct sp_whole whole = sp_whole_of(p);

		assert_int_equal(sp_whole_is_all(&whole), !found);
	}
	sp_profile_free(p);
	return found;
}

/* With a period of 1 each allocation is a sample, or another loss. */
TEST(totals_of_what_is_not_there)
{
	sample_period = 1;
	assert_int_equal(unrecorded(1, 2, 80, 0, SP_LOSS_FILE_FULL), 0);
	assert_int_equal(unrecorded(1, 5, 200, 0, SP_LOSS_FILE_FULL), 3);
	assert_int_equal(unrecorded(1, 5, 200, 2, SP_LOSS_FILE_FULL), 1);
	assert_int_equal(unrecorded(1, 5, 200, 9, SP_LOSS_NO_LANE), 0);
	/* as many, but not of these sizes */
	assert_int_equal(unrecorded(1, 2, 81, 0, SP_LOSS_FILE_FULL), 1);
	assert_int_equal(unrecorded(1, 2, 81, 1, SP_LOSS_FILE_FULL), 0);
	/* of a parent, perhaps */
	assert_int_equal(unrecorded(1, 5, 200, 9, SP_LOSS_FORK_RESET), 0);
	assert_int_equal(unrecorded(1, 5, 200, 1, SP_LOSS_NESTED), 0);
	assert_int_equal(unrecorded(1, 5, 200, 1, SP_LOSS_LEFT), 0);
	sample_period = 4096;
	assert_int_equal(unrecorded(4096, 5, 200, 0, SP_LOSS_FILE_FULL), 0);
}

/* What a process lacks that did not end. */
static uint64_t missing(uint64_t period, uint64_t objects, uint64_t bytes,
			uint64_t lost, enum sp_loss kind)
{
	struct sp_profile *p =
		two_samples(SP_END_NONE, period, objects, bytes, lost, kind);
	const uint64_t found = p->missing_bytes_max;

	assert_int_equal(p->class_slack_bytes, p->exact_alloc_bytes + found);
	assert_false(sp_profile_is_exact(p));
	sp_profile_free(p);
	return found;
}

/* 4 KiB of its thread, and of one that nobody knows; where not all that was
 * published has a sample, what its thread may hold back at most. */
TEST(killed_at_period_1)
{
	const uint64_t many = 1 << 19;

	sample_period = 1;
	assert_int_equal(missing(1, 2, 80, 0, SP_LOSS_NO_SLOT), 8192);
	assert_int_equal(missing(1, 1, 40, 0, SP_LOSS_NO_SLOT), 8192);
	assert_int_equal(missing(1, 3, many, 0, SP_LOSS_NO_SLOT), many);
	assert_int_equal(missing(1, 3, many, 1, SP_LOSS_NO_LANE), many);
	assert_int_equal(missing(1, 2, 80, 1, SP_LOSS_LEFT), 8192);
	assert_int_equal(missing(1, 2, 80, 1, SP_LOSS_NO_SLOT),
			 4096 + CHECK_IN);
	sample_bytes = many;
	assert_int_equal(missing(1, 2, 2 * many, 0, SP_LOSS_NO_SLOT), 8192);
	sample_bytes = 40;
	sample_period = 4096;
	assert_int_equal(missing(4096, 2, 80, 0, SP_LOSS_NO_SLOT), 4096);
}

/* A mark says what the process had: so much less is missing. */
TEST(marks)
{
	begin_file(SP_END_NONE);
	put_slot(1, 10000, 10, 0, 1);
	put_mark(12500);
	expect(12500, 10, 7500);
	begin_file(SP_END_NONE);
	put_slot(1, 10000, 10, 0, 1);
	put_mark(50000);
	expect(50000, 10, 0);
}

TEST_MAIN(scratch_make, scratch_remove)
