/* SPDX-License-Identifier: MIT */
/*
 * A profile with groups for the page says of every part of the run what the
 * samples say, with births and frees at the very edges of its parts.
 */
#include <unistd.h>

#include "base/rng.h"
#include "read/load.h"
#include "report/load.h"
#include "stats/table.h"
#include "stats/timeline.h"
#include "support/format_model.h"
#include "support/temp_path.h"
#include "support/test.h"

#define POINTS  201
#define RUN_NS  1000u /* five nanoseconds from point to point */
#define OBJECTS 300u

static char path[128];

struct event {
	uint64_t time_ns;
	uint64_t id;
	bool is_free;
};

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (int)x->is_free - (int)y->is_free;
}

static int setup(void **state)
{
	static struct event events[2 * OBJECTS];
	struct model_bytes records = {0};
	struct model_chunk chunk;
	struct model_file file;
	struct sp_rng rng;
	size_t n = 0;

	(void)state;
	sp_rng_init(&rng, 1, 0);
	for (uint64_t id = 1; id <= OBJECTS; id++) {
		const uint64_t born = sp_rng_next(&rng) % RUN_NS;
		const uint64_t freed = born + sp_rng_next(&rng) % 200;

		events[n++] = (struct event){born, id, false};
		if (freed < RUN_NS)
			events[n++] = (struct event){freed, id, true};
	}
	qsort(events, n, sizeof(events[0]), compare_events);
	assert_int_equal(temp_path_make(path, sizeof(path)), 0);
	model_file_init(&file, 2, 64);
	model_file_header(&file)->flags = SP_HEADER_FREES;
	model_chunk_begin(&chunk, file.file_id, 1);
	for (size_t i = 0; i < n; i++) {
		struct sp_record r = {.type = SP_RECORD_SAMPLE};

		r.u.sample =
			(struct sp_record_sample){.id = events[i].id,
						  .time_ns = events[i].time_ns,
						  .size_bytes = 16,
						  .period_bytes = 64,
						  .stack = 1 + events[i].id % 3,
						  .thread = 1};
		if (events[i].is_free) {
			r.type = SP_RECORD_FREE;
			r.u.free = (struct sp_record_free){
				.id = events[i].id,
				.time_ns = events[i].time_ns,
				.thread = 1};
		}
		model_encode(&records, &chunk, &r);
	}
	model_file_put(&file, 1, &records);
	model_done(&records);
	model_file_status(&file, 1)->time_ns = RUN_NS;
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, path, file.bytes.n), 0);
	model_done(&file.bytes);
	return 0;
}

static struct sp_profile *load(struct sp_load_needs needs)
{
	const char *const files[] = {path};
	struct sp_question question;
	struct sp_profile *p;
	struct sp_error err = {0};

	sp_question_init(&question);
	if (sp_load(files, 1, &question, &needs, NULL, NULL, &p, &err) < 0)
		fail_msg("%s", err.message);
	return p;
}

static struct sp_profile *load_full(void)
{
	struct sp_profile *p;

	assert_int_equal(sp_profile_load(path, NULL, NULL, &p, NULL), 0);
	return p;
}

static uint64_t count(const struct sp_profile *p, const struct sp_selection *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_samples; i++)
		n += sp_selection_has(s, p, &p->samples[i]);
	for (size_t i = 0; i < p->n_groups; i++)
		if (sp_selection_has(s, p, &p->groups[i].one))
			n += p->groups[i].samples;
	return n;
}

TEST(parts)
{
	struct sp_profile *folded =
		load((struct sp_load_needs){.parts = true, .n_points = POINTS});
	struct sp_profile *full = load_full();
	uint64_t alive = 0;

	assert_int_equal(folded->duration_ns, RUN_NS);
	assert_non_null(folded->peak);
	assert_true(folded->n_grouped > OBJECTS / 2);
	assert_int_equal(full->n_samples, OBJECTS);
	for (size_t i = 0; i < POINTS; i++) {
		struct sp_selection s;

		sp_selection_init(&s);
		s.from_ns = sp_timeline_place(0, RUN_NS, i, POINTS);
		assert_int_equal(count(folded, &s), count(full, &s));
		s.view = SP_VIEW_LIVE;
		s.at_ns = s.from_ns;
		s.from_ns = 0;
		assert_int_equal(count(folded, &s), count(full, &s));
		alive += count(full, &s);
		/* Of those that were born in the part before. */
		s.from_ns = i ? sp_timeline_place(0, RUN_NS, i - 1, POINTS) : 0;
		s.to_ns = s.at_ns;
		assert_int_equal(count(folded, &s), count(full, &s));
	}
	assert_true(alive > POINTS);
	sp_profile_free(folded);
	sp_profile_free(full);
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

TEST_MAIN(setup, teardown)
