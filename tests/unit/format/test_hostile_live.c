/* SPDX-License-Identifier: MIT */
/*
 * Forged files with right checks about frees: sample ids up to 2^64 in a small
 * file, a million frees without a sample, samples backwards and repeated, frees
 * before birth, class totals with wrong sums. No crash, no waiting, 64 MiB of
 * memory.
 */
#include <time.h>

#include "model/profile.h"
#include "read/order.h"
#include "support/format_model.h"
#include "support/one_file.h"
#include "support/sums_of.h"
#include "support/test.h"

#define CHUNK  65536u
#define PERIOD 4096

/* Records go to the memory file chunk by chunk. */
static struct {
	struct model_file model; /* of two chunks */
	struct model_bytes records;
	struct model_chunk chunk;
	size_t index;
} made;

static void begin_file(void)
{
	memset(&made, 0, sizeof(made));
	model_file_init(&made.model, 2, PERIOD);
	model_file_header(&made.model)->flags = SP_HEADER_FREES;
	model_file_seal(&made.model);
	made.index = 1;
	model_chunk_begin(&made.chunk, made.model.file_id, 1);
	memfile_resize(&one_file, 0);
}

static void end_chunk(void)
{
	struct sp_chunk_header h = {SP_FORMAT_CHUNK_MAGIC, SP_CHUNK_RECORDS,
				    made.index, 0};

	model_seal(made.model.file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memfile_write(&one_file, made.index * CHUNK, &h, sizeof(h));
	memfile_write(&one_file, made.index * CHUNK + sizeof(h),
		      made.records.data, made.records.n);
	made.records.n = 0;
	made.index++;
	model_chunk_begin(&made.chunk, made.model.file_id, made.index);
}

static void put(const struct sp_record *r)
{
	if (made.records.n > CHUNK - 200)
		end_chunk();
	model_encode(&made.records, &made.chunk, r);
}

static void put_sample(uint64_t id, uint64_t time_ns)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){.id = id,
					       .time_ns = time_ns,
					       .size_bytes = 10,
					       .period_bytes = PERIOD};
	put(&r);
}

static void put_free(uint64_t id, uint64_t time_ns)
{
	struct sp_record r = {.type = SP_RECORD_FREE};

	r.u.free = (struct sp_record_free){.id = id, .time_ns = time_ns};
	put(&r);
}

static struct sp_profile *load_made(void)
{
	end_chunk();
	memfile_write(&one_file, 0, made.model.bytes.data, CHUNK);
	memfile_resize(&one_file, made.index * CHUNK);
	model_done(&made.model.bytes);
	model_done(&made.records);
	return load_profile(one_file.path);
}

/* A small file with ids from everywhere takes little memory. */
TEST(huge_ids)
{
	static const uint64_t ids[] = {1ull << 60, UINT64_MAX, 3,
				       1ull << 32, 0,          (1ull << 60) + 1,
				       UINT32_MAX, 1ull << 63};
	struct sp_profile *p;

	begin_file();
	put_free(1ull << 60, 500);
	put_free(1ull << 61, 500);
	for (size_t i = 0; i < 8; i++)
		put_sample(ids[i], 100 + i);
	put_free(UINT64_MAX, 600);
	put_free(0, 700);
	p = load_made();
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_samples, 8);
	for (size_t i = 1; i < 8; i++)
		assert_true(p->samples[i].id > p->samples[i - 1].id);
	assert_int_equal(p->samples[0].freed_ns, 700);
	assert_int_equal(p->samples[4].id, 1ull << 60);
	assert_int_equal(p->samples[4].freed_ns, 500);
	assert_int_equal(p->samples[5].freed_ns, SP_NEVER);
	assert_int_equal(p->samples[7].freed_ns, 600);
	assert_int_equal(p->unmatched_frees, 1);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define FREES 1000000u

TEST(only_frees)
{
	struct sp_profile *p;
	double start;

	begin_file();
	for (uint64_t i = 0; i < FREES; i++)
		put_free(i % 2 ? i : i << 40, i);
	start = seconds();
	p = load_made();
	assert_true(seconds() - start < 10);
	assert_int_equal(p->n_samples, 0);
	assert_null(p->samples);
	assert_int_equal(p->unmatched_frees, FREES);
	assert_int_equal(p->duration_ns, FREES - 1);
}

#define SAMPLES 200000u

/* In the worst order, each freed twice. */
TEST(backwards)
{
	struct sp_profile *p;
	double start;

	begin_file();
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t id = (SAMPLES - i) << (i % 2 ? 0 : 20);

		put_free(id, 3000);
		put_sample(id, 1000);
		put_free(id, 2000);
	}
	start = seconds();
	p = load_made();
	assert_true(seconds() - start < 10);
	assert_int_equal(p->n_samples, SAMPLES);
	assert_int_equal(p->unmatched_frees, SAMPLES);
	for (size_t i = 0; i < p->n_samples; i++)
		assert_int_equal(p->samples[i].freed_ns, 2000);
}

/* A thousand times the same sample: it was allocated once. */
TEST(repeated_samples)
{
	struct sp_profile *p;

	begin_file();
	for (uint64_t i = 0; i < 1000; i++)
		put_sample(7, 1000 - i);
	put_sample(8, 0);
	p = load_made();
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0].born_ns, 1);
}

/* None is later than the latest that there is. */
static uint64_t taken_time(uint64_t ns)
{
	return ns < SP_EVENT_LAST_NS ? ns : SP_EVENT_LAST_NS;
}

/* Whatever the times say, nothing ends before it began, and what was freed is
 * not alive. */
TEST(times)
{
	static const uint64_t times[] = {0, 1, 1ull << 63, UINT64_MAX - 1};
	struct sp_profile *p;

	begin_file();
	for (uint64_t i = 0; i < 16; i++) {
		put_sample(i, times[i / 4]);
		put_free(i, times[i % 4]);
	}
	put_sample(16, UINT64_MAX);
	put_free(16, 5);
	put_sample(17, 0);
	put_free(17, UINT64_MAX);
	p = load_made();
	assert_int_equal(p->n_samples, 18);
	for (size_t i = 0; i < 16; i++) {
		const struct sp_sample *s = &p->samples[i];

		assert_true(s->freed_ns >= s->born_ns);
		assert_true(s->freed_ns != SP_NEVER);
		assert_int_equal(s->freed_ns,
				 taken_time(i % 4 >= i / 4 ? times[i % 4]
							   : times[i / 4]));
	}
	/* A time that means never is none. */
	assert_int_equal(p->samples[16].born_ns, SP_EVENT_LAST_NS);
	assert_int_equal(p->samples[16].freed_ns, SP_EVENT_LAST_NS);
	assert_int_equal(p->samples[17].freed_ns, SP_EVENT_LAST_NS);
}

/* All header flags at once are in order, and change no number of samples. */
TEST(flags)
{
	struct sp_profile *p;
	struct sp_sums *sums;

	begin_file();
	model_file_header(&made.model)->flags = SP_HEADER_KNOWN_FLAGS;
	model_file_seal(&made.model);
	put_sample(1, 1);
	p = load_made();
	assert_true(p->has_frees && p->law.always_large && p->law.is_dotnet);
	sums = sums_of(p);
	assert_int_equal(sums->all.all.samples, 1);
	sp_sums_free(sums, p);
}

static struct sp_class_page *put_page(struct model_file *model,
				      unsigned int pair, int copy,
				      uint64_t bytes)
{
	struct sp_class_page *page =
		model_file_class_page(model, 1, pair, copy);

	page->seq = 2 + (uint64_t)copy;
	page->slot = pair;
	page->classes[0] = (struct sp_class_total){bytes, bytes};
	model_file_seal_classes(model, page);
	return page;
}

static struct sp_profile *load_model(struct model_file *model)
{
	model_file_seal(model);
	memfile_resize(&one_file, 0);
	memfile_write(&one_file, 0, model->bytes.data, model->bytes.n);
	model_done(&model->bytes);
	return load_profile(one_file.path);
}

/* Sums that do not fit: nothing of that page is used. */
TEST(wrong_sums)
{
	struct model_file model;
	struct sp_class_page *page;
	struct sp_profile *p;

	model_file_init(&model, 2, PERIOD);
	model_file_put_classes(&model, 1);
	put_page(&model, 0, 0, 100);
	for (unsigned int i = 1; i < 4; i++) {
		page = put_page(&model, i, 0, 1000);
		page->classes[i - 1].bytes += i == 1;
		page->classes[i - 1].objects += i == 2;
		page->classes[0].bytes -= i == 3;
	}
	*model_file_slot(&model, 0, 1) =
		(struct sp_slot_copy){1, 5000, 50, 0, 0, 0, 0, 0};
	p = load_model(&model);
	assert_int_equal(p->damaged_records, 3);
	assert_true(p->has_classes);
	assert_int_equal(p->classes[0].bytes, 100);
	assert_int_equal(p->classes[1].objects, 0);
	assert_int_equal(p->class_slack_bytes, 4900);
}

/* More in the classes than in all, and more than there can be. */
TEST(class_overflow)
{
	struct model_file model;
	struct sp_profile *p;

	model_file_init(&model, 2, PERIOD);
	model_file_put_classes(&model, 1);
	for (unsigned int i = 0; i < 7; i++)
		put_page(&model, i, 1, UINT64_MAX - i);
	*model_file_slot(&model, 0, 1) =
		(struct sp_slot_copy){1, 5000, 50, 0, 0, 0, 0, 0};
	p = load_model(&model);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->classes[0].bytes, UINT64_MAX);
	assert_int_equal(p->classes[0].objects, UINT64_MAX);
	assert_int_equal(p->class_slack_bytes, 0);

	/* Killed with threads that may have allocated anything since. */
	model_file_init(&model, 2, PERIOD);
	model_file_header(&model)->check_in_bytes = UINT64_MAX;
	model_file_status(&model, 1)->end_kind = SP_END_NONE;
	for (size_t i = 1; i < 4; i++)
		*model_file_slot(&model, i, 1) = (struct sp_slot_copy){
			1, UINT64_MAX - 5, 1, 0, 0, i, i, 0};
	p = load_model(&model);
	assert_false(p->has_classes);
	assert_int_equal(p->class_slack_bytes, UINT64_MAX);
}

TEST_MAIN(one_file_open_limited, one_file_close)
