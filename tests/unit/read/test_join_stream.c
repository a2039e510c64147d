/* SPDX-License-Identifier: MIT */
/* Several files in one stream, held against every sample of them in memory. */
#include <errno.h>

#include "model/walk.h"
#include "stats/timeline.h"
#include "support/process_files.h"

static struct sp_profile *load_grouped(size_t n, size_t n_points)
{
	const struct sp_plan plan = {.confidence = 0.95, .n_points = n_points};
	struct sp_profile *p = NULL;
	struct sp_error err;

	if (sp_profile_read(names, n, &plan, NULL, NULL, &p, &err) != 0)
		fail_msg("%s: %s", err.file, err.message);
	return p;
}

static void same_peak(const struct sp_profile *a, const struct sp_profile *b)
{
	struct sp_selection all;
	struct sp_peak x, y;

	sp_selection_init(&all);
	assert_int_equal(sp_peak(a, &all, 0.95, &x, NULL), 0);
	assert_int_equal(sp_peak(b, &all, 0.95, &y, NULL), 0);
	assert_int_equal(x.time_ns, y.time_ns);
	assert_int_equal(x.samples, y.samples);
	assert_int_equal(x.rows_ns, y.rows_ns);
	assert_close(x.raw_bytes, y.raw_bytes, 1e-9);
	assert_close(x.bytes.value, y.bytes.value, 1e-9);
	assert_close(x.bytes.lo, y.bytes.lo, 1e-9);
	assert_close(x.bytes.hi, y.bytes.hi, 1e-9);
}

static void same_timeline(const struct sp_profile *a,
			  const struct sp_profile *b)
{
	const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL, 0};
	struct sp_timeline_point x[POINTS], y[POINTS];
	struct sp_selection all;

	sp_selection_init(&all);
	assert_int_equal(sp_timeline(a, &all, &p3, x, POINTS, NULL), 0);
	assert_int_equal(sp_timeline(b, &all, &p3, y, POINTS, NULL), 0);
	for (size_t i = 0; i < POINTS; i++) {
		assert_int_equal(x[i].time_ns, y[i].time_ns);
		assert_int_equal(x[i].samples, y[i].samples);
		assert_close(x[i].live_bytes.value, y[i].live_bytes.value,
			     1e-9);
	}
}

static void same_view(const struct sp_profile *a, const struct sp_profile *b,
		      enum sp_view view)
{
	struct sp_sums *x, *y;
	struct sp_selection s;

	sp_selection_init(&s);
	s.view = view;
	assert_int_equal(sp_sums_new(a, &s, &x, NULL), 0);
	assert_int_equal(sp_sums_new(b, &s, &y, NULL), 0);
	assert_int_equal(x->all.all.samples, y->all.all.samples);
	for (size_t i = 0; i < a->n_thread_infos; i++)
		assert_close(x->threads[i].all.est_bytes,
			     y->threads[i].all.est_bytes, 1e-9);
	sp_sums_free(x, a);
	sp_sums_free(y, b);
}

/* Files that overlap, or follow each other; some end in the middle of the time
 * of all, and some have their chunks in no order. */
TEST(streamed)
{
	const unsigned int rounds = rounds_of(60);

	for (unsigned int round = 0; round < rounds; round++) {
		struct sp_profile *full, *grouped;

		run_ns = round % 2 ? 1 : 2000;
		reversed = round % 3 ? 0 : 1 + (unsigned int)below(FILES);
		for (unsigned int i = 0; i < FILES; i++)
			put_random_file(i);
		full = load(FILES);
		grouped = load_grouped(FILES, POINTS);
		assert_int_equal(grouped->is_unordered, reversed != 0);
		assert_true(grouped->n_groups > 0 && grouped->n_curve > 0);
		assert_int_equal(sp_profile_samples(grouped), full->n_samples);
		assert_int_equal(grouped->duration_ns, full->duration_ns);
		assert_int_equal(grouped->n_thread_infos, full->n_thread_infos);
		each_once(grouped);
		same_peak(grouped, full);
		same_timeline(grouped, full);
		same_view(grouped, full, SP_VIEW_ALLOC);
		same_view(grouped, full, SP_VIEW_LIVE);
		sp_profile_free(full);
		sp_profile_free(grouped);
	}
	run_ns = 1;
	reversed = 0;
}

struct meeting {
	const struct sp_profile *all;  /* that the walk is of */
	const struct sp_profile *full; /* with every sample */
	uint64_t now_ns;
	size_t n_settled;
};

/* Each is met as it is in the profile with every sample, which has the same
 * threads, and stacks of the same frames. */
static int meet(void *arg, enum sp_sample_event event,
		const struct sp_sample *s)
{
	struct meeting *m = arg;
	const uint64_t gone_ns = sp_sample_gone_ns(m->all, s);
	const struct sp_sample *t = m->full->samples;
	const struct sp_stack *x, *y;

	if (event == SP_SAMPLE_SETTLED && gone_ns != SP_NEVER) {
		assert_true(gone_ns >= m->now_ns);
		m->now_ns = gone_ns;
	} else if (event == SP_SAMPLE_BORN) {
		assert_true(s->born_ns >= m->now_ns);
		m->now_ns = s->born_ns;
		return 0;
	}
	m->n_settled++;
	while (t->id != s->id)
		assert_true(++t < m->full->samples + m->full->n_samples);
	assert_int_equal(s->part, t->part);
	assert_int_equal(s->born_ns, t->born_ns);
	assert_int_equal(s->freed_ns, t->freed_ns);
	assert_int_equal(s->thread, t->thread);
	assert_int_equal(s->freed_by, t->freed_by);
	assert_int_equal(s->role, t->role);
	x = &m->all->stacks[s->stack];
	y = &m->full->stacks[t->stack];
	assert_int_equal(x->n_frames, y->n_frames);
	for (uint32_t k = 0; k < x->n_frames; k++)
		same_frame(m->all, x->frames[k], m->full, y->frames[k]);
	return 0;
}

static int meet_nothing(void *arg, enum sp_sample_event event,
			const struct sp_sample *s)
{
	(void)arg;
	(void)event;
	(void)s;
	return 0;
}

TEST(walk)
{
	for (unsigned int round = 0; round < 10; round++) {
		struct meeting m = {.n_settled = 0};
		struct sp_profile *full, *grouped;

		run_ns = round % 2 ? 1 : 2000;
		for (unsigned int i = 0; i < FILES; i++)
			put_random_file(i);
		full = load(FILES);
		grouped = load_grouped(FILES, 0);
		same_peak(grouped, full);
		m.all = grouped;
		m.full = full;
		assert_int_equal(
			sp_profile_walk(grouped, NULL, NULL, meet, &m, NULL),
			0);
		assert_int_equal(m.n_settled, full->n_samples);
		/* Another file is there by now. */
		begin(1, 1);
		put_object(1, 10, 20, 30, 1, 0, 1);
		end(1);
		assert_int_equal(sp_profile_walk(grouped, NULL, NULL,
						 meet_nothing, NULL, NULL),
				 -ESTALE);
		sp_profile_free(full);
		sp_profile_free(grouped);
	}
	run_ns = 1;
}

/* More than are open at one time: every sample is kept. */
TEST(many_at_once)
{
	static char many[MANY][128];
	const char *all[MANY];
	const struct sp_plan plan = {.confidence = 0.95};
	struct sp_profile *p;

	for (unsigned int i = 0; i < MANY; i++) {
		assert_true(temp_path_make(many[i], sizeof(many[i])) >= 0);
		all[i] = many[i];
		begin(i, 1);
		model_file_status(&file, 1)->time_ns = 1000;
		put_object(1, 100, 200, 30, 1, 0, 1);
		end_as(many[i]);
	}
	for (size_t n = MANY; n > MANY / 2; n -= MANY / 2) {
		assert_int_equal(
			sp_profile_read(all, n, &plan, NULL, NULL, &p, NULL),
			0);
		assert_int_equal(p->n_groups > 0, n < MANY);
		assert_int_equal(sp_profile_samples(p), n);
		assert_close(peak_of(p), 30.0 * (double)n, 0);
		sp_profile_free(p);
	}
	for (unsigned int i = 0; i < MANY; i++)
		unlink(many[i]);
}

TEST_MAIN(make_paths, remove_paths)
