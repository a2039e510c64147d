/* SPDX-License-Identifier: MIT */
/*
 * dhat and the lines of jsonl from a profile with groups, whose samples are met
 * while the file is read again, are those from every sample, to the letter.
 */
#include <errno.h>

#include "base/rng.h"
#include "export/export.h"
#include "read/load.h"
#include "report/load.h"
#include "support/format_model.h"
#include "support/scratch.h"
#include "support/test.h"
#include "support/timed_events.h"

#define OBJECTS 600u
#define STACKS  7u
#define RUN_NS  4000u

static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

static struct sp_record sample_record(const struct event *e)
{
	return (struct sp_record){
		.type = SP_RECORD_SAMPLE,
		.u.sample = {.id = e->id,
			     .time_ns = e->time_ns,
			     .size_bytes = 16 + e->id % 5 * 1000,
			     .offset_bytes = e->id % 16,
			     .period_bytes = 64ull << e->id % 4,
			     .stack = 1 + e->id % STACKS,
			     .thread = 1 + e->id % 2}};
}

static struct sp_record free_record(const struct event *e)
{
	return (struct sp_record){
		.type = SP_RECORD_FREE,
		.u.free = {.id = e->id,
			   .time_ns = e->time_ns,
			   .thread = 1 + e->id % 3 % 2,
			   .has_age = e->id % 5,
			   .age_bytes = e->id % 3,
			   .flags = e->id % 7 ? 0 : SP_FREE_MISSED}};
}

/* The first three have the same frames, which is one call path. */
static void put_stacks(struct model_bytes *records, struct model_chunk *chunk)
{
	for (uint64_t id = 1; id <= STACKS; id++) {
		const struct sp_record_frame frames[] = {
			{0, 0x1000 * (id < 3 ? 3 : id)}, {0, 0x9000}};
		const struct sp_record r = {
			.type = SP_RECORD_STACK,
			.u.stack = {.id = id, .frames = frames, .n_frames = 2}};

		model_encode(records, chunk, &r);
	}
}

/* Objects of many lives; some die at the nanosecond of their birth. */
static size_t make_events(struct event *events, uint64_t objects)
{
	size_t n = 0;

	for (uint64_t id = 1; id <= objects; id++) {
		const uint64_t born = below(RUN_NS);
		const uint64_t freed = born + (below(4) ? below(600) : 0);

		events[n++] = (struct event){born, id, false};
		if (freed < RUN_NS)
			events[n++] = (struct event){freed, id, true};
	}
	qsort(events, n, sizeof(events[0]), compare_events);
	return n;
}

static void write_file(uint64_t objects, bool has_frees)
{
	static struct event events[2 * OBJECTS];
	const size_t n = make_events(events, objects);
	struct model_bytes records = {0};
	struct model_chunk chunk;
	struct model_file file;

	model_file_init(&file, 2, 512);
	model_file_header(&file)->flags = has_frees ? SP_HEADER_FREES : 0;
	model_chunk_begin(&chunk, file.file_id, 1);
	put_stacks(&records, &chunk);
	for (size_t i = 0; i < n; i++) {
		const struct sp_record r = events[i].is_free
						   ? free_record(&events[i])
						   : sample_record(&events[i]);

		if (has_frees || !events[i].is_free)
			model_encode(&records, &chunk, &r);
	}
	model_file_put(&file, 1, &records);
	model_done(&records);
	model_file_status(&file, 1)->time_ns = RUN_NS;
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&file.bytes);
}

static struct sp_export_request request_for(const char *format)
{
	struct sp_export_request request = {.format = sp_export_find(format)};

	sp_question_init(&request.question);
	return request;
}

static struct sp_profile *load(const struct sp_export_request *request,
			       bool folded)
{
	const char *const files[] = {scratch};
	struct sp_profile *p = NULL;
	struct sp_error err = {0};
	int r = folded ? sp_load(files, 1, &request->question,
				 &request->format->needs, NULL, NULL, &p, &err)
		       : sp_profile_load(scratch, NULL, NULL, &p, &err);

	if (r < 0)
		fail_msg("%s", err.message);
	assert_true(!p->n_groups == !folded);
	return p;
}

static char *export(const struct sp_export_request *request, bool folded)
{
	struct sp_profile *p = load(request, folded);
	struct sp_error err = {0};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (sp_export_write(out, p, request, NULL, NULL, &err) < 0)
		fail_msg("%s", err.message);
	fclose(out);
	sp_profile_free(p);
	return text;
}

TEST(dhat)
{
	const struct sp_export_request request = request_for("dhat");

	for (unsigned int i = 0; i < 20; i++) {
		char *folded, *full;

		write_file(OBJECTS, i % 5);
		folded = export(&request, true);
		full = export(&request, false);
		assert_string_equal(folded, full);
		assert_non_null(strstr(folded, "\"tb\": "));
		free(folded);
		free(full);
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Its lines; samples by themselves in an order of their own. */
static size_t split(char *text, char **lines, size_t *ret_samples)
{
	size_t n = 0, n_head;
	char *line;

	while ((line = strsep(&text, "\n")) && *line)
		lines[n++] = line;
	for (n_head = 0; n_head < n; n_head++)
		if (strstr(lines[n_head], "\"type\": \"sample\""))
			break;
	*ret_samples = n - n_head;
	qsort(lines + n_head, n - n_head, sizeof(*lines), compare_lines);
	return n;
}

static size_t same_lines(const struct sp_export_request *request)
{
	static char *a[2 * OBJECTS], *b[2 * OBJECTS];
	char *folded = export(request, true), *full = export(request, false);
	size_t n, n_samples, n_full;

	n = split(folded, a, &n_samples);
	assert_int_equal(split(full, b, &n_full), n);
	assert_int_equal(n_samples, n_full);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(a[i], b[i]);
	free(folded);
	free(full);
	return n_samples;
}

TEST(jsonl)
{
	struct sp_export_request request = request_for("jsonl");

	for (unsigned int i = 0; i < 5; i++) {
		write_file(OBJECTS, true);
		request.question.has_view = false;
		assert_int_equal(same_lines(&request), OBJECTS);
		request.question.has_view = true;
		for (int view = 0; view <= SP_VIEW_TEMPORARY; view++) {
			request.question.view = (enum sp_view)view;
			assert_true(same_lines(&request) > 0);
		}
	}
	write_file(OBJECTS, false);
	request.question.has_view = false;
	assert_int_equal(same_lines(&request), OBJECTS);
}

/* Another file has taken its place: an error, and no figures of both. */
TEST(a_file_that_changed)
{
	static const char *const formats[] = {"dhat", "jsonl"};

	for (size_t i = 0; i < 2; i++) {
		const struct sp_export_request request =
			request_for(formats[i]);
		struct sp_profile *p;
		struct sp_error err = {0};
		FREED char *text;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		write_file(OBJECTS, true);
		p = load(&request, true);
		write_file(OBJECTS - 1, true);
		assert_int_equal(
			sp_export_write(out, p, &request, NULL, NULL, &err),
			-ESTALE);
		assert_non_null(strstr(err.message, "changed"));
		fclose(out);
		sp_profile_free(p);
	}
}

static int setup(void **state)
{
	sp_rng_init(&rng, 5, 0);
	return scratch_make(state);
}

TEST_MAIN(setup, scratch_remove)
