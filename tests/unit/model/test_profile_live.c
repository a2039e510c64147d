/* SPDX-License-Identifier: MIT */
/* What a profile says of frees, of totals by size class and of memory. */

#include "model/profile.h"
#include "support/format_model.h"
#include "support/load_profile.h"
#include "support/scratch.h"
#include "support/test.h"

#define PERIOD   4096u
#define CHECK_IN (1u << 20) /* of model_file_init() */

static struct model_file file;
static struct model_bytes records;
static struct model_chunk chunk;

/* Chunk 1 is of records, chunk 2 of class totals. */
static void begin_file(void)
{
	model_file_init(&file, 3, PERIOD);
	model_file_header(&file)->flags = SP_HEADER_FREES;
	model_file_put_classes(&file, 2);
	records.n = 0;
	model_chunk_begin(&chunk, file.file_id, 1);
}

static struct sp_profile *load(void)
{
	model_file_put(&file, 1, &records);
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&file.bytes);
	model_done(&records);
	return load_profile(scratch);
}

static void put_sample(uint64_t id, uint64_t time_ns, uint64_t thread)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){.id = id,
					       .time_ns = time_ns,
					       .size_bytes = 64,
					       .offset_bytes = 5,
					       .period_bytes = PERIOD,
					       .stack = 1,
					       .thread = thread,
					       .entry = SP_ENTRY_NEW};
	model_encode(&records, &chunk, &r);
}

static void put_free(const struct sp_record_free *end)
{
	struct sp_record r = {.type = SP_RECORD_FREE, .u.free = *end};

	model_encode(&records, &chunk, &r);
}

TEST(frees)
{
	const struct sp_sample *s;
	struct sp_profile *p;

	begin_file();
	put_sample(1, 100, 7);
	put_sample(2, 110, 7);
	put_sample(3, 120, 0);
	put_free(&(struct sp_record_free){1, 200, 7, 0, true, 48});
	put_free(&(struct sp_record_free){2, 300, 8, 0, false, 0});
	put_free(&(struct sp_record_free){3, 400, 0, SP_FREE_MISSED, false, 0});
	p = load();
	s = p->samples;
	assert_int_equal(p->n_samples, 3);
	assert_int_equal(s[0].entry, SP_ENTRY_NEW);
	assert_int_equal(s[0].freed_ns, 200);
	assert_int_equal(s[0].age_bytes, 48);
	assert_int_equal(p->thread_infos[s[0].thread].index, 7);
	assert_int_equal(s[0].freed_by, s[0].thread);
	assert_false(s[0].free_missed);
	/* A thread that nothing but a free names. */
	assert_int_equal(p->n_thread_infos, 2);
	assert_int_equal(p->thread_infos[s[1].freed_by].index, 8);
	assert_int_equal(s[1].age_bytes, SP_UNKNOWN);
	assert_int_equal(s[2].thread, UINT32_MAX);
	assert_int_equal(s[2].freed_by, UINT32_MAX);
	assert_true(s[2].free_missed);
	assert_int_equal(p->duration_ns, 400);
	assert_int_equal(p->unmatched_frees, 0);
}

/* Without the flag nothing is known of frees, whatever there is. */
TEST(header_flags)
{
	for (uint32_t flags = 0; flags <= SP_HEADER_KNOWN_FLAGS; flags++) {
		struct sp_profile *p;

		begin_file();
		model_file_header(&file)->flags = flags;
		p = load();
		assert_int_equal(p->law.always_large, flags & 1);
		assert_int_equal(p->law.is_dotnet, flags >> 1 & 1);
		assert_int_equal(p->has_frees, flags >> 2 & 1);
		assert_false(p->has_classes);
	}
}

TEST(rss)
{
	static const uint64_t times[] = {50, 10, 30, 20, 60};
	struct sp_record r = {.type = SP_RECORD_RSS};
	struct sp_profile *p;

	begin_file();
	for (size_t i = 0; i < 5; i++) {
		r.u.rss = (struct sp_record_rss){times[i], 1000 * times[i]};
		model_encode(&records, &chunk, &r);
	}
	p = load();
	assert_int_equal(p->n_rss, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_true(i == 0 ||
			    p->rss[i].time_ns > p->rss[i - 1].time_ns);
		assert_int_equal(p->rss[i].rss_bytes, 1000 * p->rss[i].time_ns);
	}
	assert_int_equal(p->duration_ns, 60);
}

static void put_classes(uint64_t slot, unsigned int class, uint64_t bytes)
{
	struct sp_class_page *page =
		model_file_class_page(&file, 2, (unsigned int)slot % 7, 1);

	page->seq = 1;
	page->slot = slot;
	page->classes[class] = (struct sp_class_total){bytes, 1};
	model_file_seal_classes(&file, page);
}

static void put_slot(size_t slot, uint64_t bytes, uint64_t base, uint64_t owner)
{
	*model_file_slot(&file, slot, 1) =
		(struct sp_slot_copy){1, bytes, 1, base, 0, owner, 1, 0};
}

/* What the classes lack of the totals. */
TEST(slack_after_exit)
{
	struct sp_profile *p;

	begin_file();
	put_slot(0, 100, 0, 0);
	put_slot(1, 50000, 0, 1);
	put_slot(2, 7000, 0, 0);
	put_classes(1, 9, 49000);
	put_classes(2, 9, 7000);
	p = load();
	assert_true(p->has_classes);
	assert_int_equal(p->classes[9].bytes, 56000);
	assert_int_equal(p->classes[9].objects, 2);
	assert_int_equal(p->exact_alloc_bytes, 57100);
	assert_int_equal(p->class_slack_bytes, 1100);

	/* The classes may be ahead. */
	begin_file();
	put_slot(1, 50000, 0, 1);
	put_classes(1, 9, 60000);
	p = load();
	assert_int_equal(p->class_slack_bytes, 0);
}

/* And what threads may have had in hand when the process was killed. */
TEST(slack_after_kill)
{
	static const struct {
		uint64_t bytes, base, owner, more;
	} rows[] = {
		{5000, 0, 0, 0}, /* nobody's */
		{1, 0, 1, 4096}, /* before its first publication */
		{4096, 0, 1, 4096},
		{4097, 0, 1, 4097}, /* then after as much again */
		{90000, 40000, 1, 50000},
		{CHECK_IN, 0, 1, CHECK_IN},
		{10 * CHECK_IN, 0, 1, CHECK_IN}, /* at most that */
		{10 * CHECK_IN, 10 * CHECK_IN - 3, 1, 4096},
	};
	struct sp_profile *p;
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin_file();
		model_file_status(&file, 1)->end_kind = SP_END_NONE;
		put_slot(3, rows[i].bytes, rows[i].base, rows[i].owner);
		put_classes(3, 5, rows[i].bytes);
		p = load();
		assert_int_equal(p->end, SP_PROFILE_END_KILLED);
		if (p->class_slack_bytes != rows[i].more)
			fail_msg("row %zu", i);
	}
	begin_file();
	model_file_status(&file, 1)->end_kind = SP_END_NONE;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_slot(i + 10, rows[i].bytes, rows[i].base, rows[i].owner);
		sum += rows[i].bytes + rows[i].more;
	}
	p = load();
	assert_int_equal(p->class_slack_bytes, sum);
}

TEST_MAIN(scratch_make, scratch_remove)
