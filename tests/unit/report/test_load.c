/* SPDX-License-Identifier: MIT */
/*
 * A profile with groups says of every part of the run what the samples say,
 * with births and frees at the very edges of its parts: for the page, which
 * asks of many, and for a question.
 */
#include <unistd.h>

#include "base/rng.h"
#include "read/load.h"
#include "report/load.h"
#include "stats/peak.h"
#include "stats/sums.h"
#include "stats/timeline.h"
#include "support/close.h"
#include "support/format_model.h"
#include "support/temp_path.h"
#include "support/test.h"
#include "support/timed_events.h"

#define POINTS  201
#define RUN_NS  1000u /* five nanoseconds from point to point */
#define OBJECTS 300u

static char path[128];

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

		r.u.sample = (struct sp_record_sample){
			.id = events[i].id,
			.time_ns = events[i].time_ns,
			.size_bytes = 12 + events[i].id % 8,
			.period_bytes = 64,
			.stack = 1 + events[i].id % 3,
			.thread = 1 + events[i].id % 2};
		if (events[i].is_free) {
			r.type = SP_RECORD_FREE;
			r.u.free = (struct sp_record_free){
				.id = events[i].id,
				.time_ns = events[i].time_ns,
				.thread = 1 + events[i].id % 2,
				.has_age = true,
				.age_bytes = events[i].id % 3};
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

static struct sp_question random_question(struct sp_rng *rng)
{
	static const enum sp_view views[] = {SP_VIEW_ALLOC, SP_VIEW_LIVE,
					     SP_VIEW_LEAKS, SP_VIEW_TEMPORARY,
					     SP_VIEW_PEAK};
	const uint64_t a = sp_rng_next(rng) % RUN_NS;
	const uint64_t b = sp_rng_next(rng) % RUN_NS;
	struct sp_question q;

	sp_question_init(&q);
	q.has_view = true;
	q.view = views[sp_rng_next(rng) % 5];
	if (sp_rng_next(rng) % 2)
		q.from = (struct sp_moment){SP_MOMENT_TIME, a < b ? a : b, 0,
					    NULL};
	if (sp_rng_next(rng) % 2)
		q.to = (struct sp_moment){SP_MOMENT_TIME, 1 + (a < b ? b : a),
					  0, NULL};
	if (q.view != SP_VIEW_ALLOC && q.view != SP_VIEW_PEAK &&
	    sp_rng_next(rng) % 2)
		q.at = (struct sp_moment){SP_MOMENT_SHARE, 0, 30000 + a * 70,
					  NULL};
	if (q.view == SP_VIEW_TEMPORARY && sp_rng_next(rng) % 2)
		q.within_ns = sp_rng_next(rng) % 100;
	q.min_size_bytes = 1 + sp_rng_next(rng) % 20;
	if (sp_rng_next(rng) % 4 == 0)
		q.thread = "2";
	return q;
}

/* A part of the run, of the sizes or of the threads has the same samples, peak
 * and timeline whether each sample is kept or not. */
static void same_answer(const struct sp_question *q,
			const struct sp_profile *grouped,
			const struct sp_profile *full)
{
	const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL, 0};
	struct sp_timeline_point x[POINTS], y[POINTS];
	struct sp_peak a, b;
	struct sp_selection s, t;

	assert_int_equal(
		sp_question_select(q, grouped, SP_VIEW_ALLOC, &s, NULL), 0);
	assert_int_equal(sp_question_select(q, full, SP_VIEW_ALLOC, &t, NULL),
			 0);
	assert_int_equal(sp_peak(grouped, &s, 0.95, &a, NULL), 0);
	assert_int_equal(sp_peak(full, &t, 0.95, &b, NULL), 0);
	assert_int_equal(a.rows_ns, b.rows_ns);
	s.peak_ns = t.peak_ns = a.rows_ns;
	assert_int_equal(count(grouped, &s), count(full, &t));
	assert_int_equal(a.time_ns, b.time_ns);
	assert_int_equal(a.samples, b.samples);
	assert_close(a.bytes.value, b.bytes.value, 1e-9);
	assert_close(a.bytes.hi, b.bytes.hi, 1e-9);
	assert_int_equal(sp_timeline(grouped, &s, &p3, x, POINTS, NULL), 0);
	assert_int_equal(sp_timeline(full, &t, &p3, y, POINTS, NULL), 0);
	for (size_t i = 0; i < POINTS; i++) {
		assert_int_equal(x[i].time_ns, y[i].time_ns);
		assert_int_equal(x[i].samples, y[i].samples);
		assert_close(x[i].live_bytes.value, y[i].live_bytes.value,
			     1e-9);
	}
}

TEST(questions)
{
	const char *const files[] = {path};
	struct sp_profile *full = load_full();
	unsigned int grouped = 0, found = 0;
	struct sp_rng rng;

	sp_rng_init(&rng, 2, 0);
	for (unsigned int i = 0; i < 300; i++) {
		const struct sp_question q = random_question(&rng);
		/* The points of a timeline are found with the groups. */
		const struct sp_load_needs needs = {
			.lifetimes = true, .n_points = i % 2 ? POINTS : 0};
		struct sp_selection s;
		struct sp_profile *p;
		struct sp_error err;

		if (sp_question_select(&q, full, SP_VIEW_ALLOC, &s, &err) < 0)
			continue;
		assert_int_equal(
			sp_load(files, 1, &q, &needs, NULL, NULL, &p, &err), 0);
		same_answer(&q, p, full);
		grouped += p->n_groups > 0;
		found += p->n_curve > 0;
		sp_profile_free(p);
	}
	assert_true(grouped > 150);
	assert_true(found > 70);
	sp_profile_free(full);
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

TEST_MAIN(setup, teardown)
