/* SPDX-License-Identifier: MIT */
/* Several files as one, held against the files one by one. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/rng.h"
#include "read/load.h"
#include "stats/peak.h"
#include "stats/timeline.h"
#include "support/close.h"
#include "support/format_model.h"
#include "support/temp_path.h"
#include "support/test.h"

#define FILES   4
#define MODULES 6
#define STACKS  12
#define START   1700000000000000000ull
#define POINTS  21
#define MANY    80 /* files, too many to be open at one time */

static char paths[FILES][128];
static const char *names[FILES];
static struct model_file file;
static struct model_bytes records;
static struct model_chunk chunk;
static size_t n_chunks;
static struct sp_rng rng;
static uint64_t run_ns = 1;   /* that a process goes on */
static unsigned int reversed; /* 1 + the file with chunks in no order */

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

/* ---- making files ---- */

static void begin(unsigned int number, uint64_t period_bytes)
{
	struct sp_file_header *h;

	model_file_init(&file, 4, period_bytes);
	n_chunks = 1;
	file.file_id = 1000 + number;
	h = model_file_header(&file);
	h->file_id = file.file_id;
	h->pid = 50 + number;
	h->start_unix_ns = START;
	h->flags = SP_HEADER_FREES;
	records.n = 0;
	model_chunk_begin(&chunk, file.file_id, 1);
}

static void end_as(const char *path)
{
	model_file_put(&file, n_chunks, &records);
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, path, file.bytes.n), 0);
	model_done(&file.bytes);
	model_done(&records);
}

static void end(unsigned int number)
{
	end_as(paths[number]);
}

/* What follows is in another chunk. */
static void next_chunk(void)
{
	model_file_put(&file, n_chunks, &records);
	records.n = 0;
	model_chunk_begin(&chunk, file.file_id, ++n_chunks);
}

static void put(const struct sp_record *r)
{
	model_encode(&records, &chunk, r);
}

static void put_info(const char *key, const char *value)
{
	put(&(struct sp_record){
		.type = SP_RECORD_INFO,
		.u.info = {key, strlen(key), value, strlen(value)}});
}

static void put_module(uint64_t id, uint64_t start, uint64_t link_address,
		       const char *path)
{
	static const uint8_t build_id[] = {1, 2, 3};

	put(&(struct sp_record){.type = SP_RECORD_MODULE,
				.u.module = {.id = id,
					     .start_pc = start,
					     .end_pc = start + 0x1000,
					     .bias = start - link_address,
					     .flags = id == 1,
					     .build_id = build_id,
					     .build_id_bytes = 3,
					     .path = path,
					     .path_bytes = strlen(path)}});
}

static void put_stack(uint64_t id, const struct sp_record_frame *frames,
		      size_t n)
{
	put(&(struct sp_record){
		.type = SP_RECORD_STACK,
		.u.stack = {.id = id, .frames = frames, .n_frames = n}});
}

static void put_object(uint64_t id, uint64_t born_ns, uint64_t freed_ns,
		       uint64_t size_bytes, uint64_t period_bytes,
		       uint64_t stack, uint64_t thread)
{
	put(&(struct sp_record){.type = SP_RECORD_SAMPLE,
				.u.sample = {.id = id,
					     .time_ns = born_ns,
					     .size_bytes = size_bytes,
					     .offset_bytes = size_bytes - 1,
					     .period_bytes = period_bytes,
					     .stack = stack,
					     .thread = thread}});
	if (freed_ns == SP_NEVER)
		return;
	put(&(struct sp_record){
		.type = SP_RECORD_FREE,
		.u.free = {.id = id, .time_ns = freed_ns, .thread = thread}});
}

static void put_rss(uint64_t time_ns, uint64_t rss_bytes)
{
	put(&(struct sp_record){.type = SP_RECORD_RSS,
				.u.rss = {time_ns, rss_bytes}});
}

/* Modules at addresses of this process's own, stacks from a small stock; one
 * frame in ten is of no module, or of one without a record. */
static void put_code(void)
{
	uint64_t stock;

	for (uint64_t i = 1; i <= MODULES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/lib/m%" PRIu64 ".so", below(4));
		put_module(i, (i + below(3)) * 0x1000, below(2) * 0x1000, path);
	}
	for (uint64_t id = 1; id <= STACKS; id++) {
		struct sp_record_frame frames[3];

		stock = below(8);
		for (unsigned int k = 0; k < 3; k++)
			frames[k] = (struct sp_record_frame){
				(uint32_t)(stock * (k + 1) % (MODULES + 2)),
				0x10 * stock + k};
		put_stack(id, frames, 1 + stock % 3);
	}
}

static void put_random_file(unsigned int number)
{
	const uint64_t period = 64ull << number;

	begin(number, period);
	model_file_header(&file)->start_unix_ns = START + below(1000);
	if (run_ns > 1)
		model_file_status(&file, 1)->time_ns = below(run_ns);
	put_info("same", "yes");
	put_info("own", number & 1 ? "odd" : "even");
	put_code();
	for (uint64_t id = 1; id <= 40; id++) {
		uint64_t born = below(1000);

		if (id % 15 == 0)
			next_chunk();
		/* By more than a thread may be late. */
		if (number + 1 == reversed && id < 30)
			born += 1000000000;
		put_object(id, born, below(3) ? born + below(500) : SP_NEVER,
			   1 + below(5000), period, below(STACKS + 1),
			   below(4));
	}
	model_file_slot(&file, 1, 1)->seq = 1;
	model_file_slot(&file, 1, 1)->alloc_bytes = below(1 << 20);
	model_file_slot(&file, 1, 1)->alloc_objects = below(1 << 10);
	model_file_status(&file, 1)->losses[2] = below(10);
	end(number);
}

static struct sp_profile *load(size_t n)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	if (sp_profile_load_many(names, n, NULL, NULL, &p, &err) != 0)
		fail_msg("%s: %s", err.file, err.message);
	return p;
}

/* ---- the same, one by one ---- */

static void same_text(const char *got, const char *want)
{
	assert_string_equal(got, want);
}

static void same_frame(const struct sp_profile *a, struct sp_frame x,
		       const struct sp_profile *b, struct sp_frame y)
{
	const struct sp_module *m = sp_profile_module(a, x.module);
	const struct sp_module *n = sp_profile_module(b, y.module);

	assert_int_equal(x.offset, y.offset);
	assert_int_equal(!x.module, !y.module);
	assert_int_equal(!m, !n);
	if (!m || !n)
		return;
	same_text(m->path, n->path);
	assert_int_equal(m->end_pc - m->start_pc, n->end_pc - n->start_pc);
	assert_int_equal(m->start_pc - m->bias, n->start_pc - n->bias);
	assert_int_equal(m->build_id_len, n->build_id_len);
	assert_memory_equal(m->build_id, n->build_id, n->build_id_len);
}

static void same_sample(const struct sp_profile *all, const struct sp_sample *s,
			const struct sp_profile *one, const struct sp_sample *t)
{
	const uint64_t by = one->start_unix_ns - all->start_unix_ns;
	const struct sp_stack *x = &all->stacks[s->stack];
	const struct sp_stack *y = &one->stacks[t->stack];

	assert_int_equal(s->born_ns, t->born_ns + by);
	assert_int_equal(s->freed_ns,
			 t->freed_ns == SP_NEVER ? SP_NEVER : t->freed_ns + by);
	assert_int_equal(s->size_bytes, t->size_bytes);
	assert_int_equal(s->offset_bytes, t->offset_bytes);
	assert_int_equal(s->period_bytes, t->period_bytes);
	assert_int_equal(s->thread == UINT32_MAX, t->thread == UINT32_MAX);
	assert_int_equal(x->n_frames, y->n_frames);
	for (uint32_t k = 0; k < x->n_frames; k++)
		same_frame(all, x->frames[k], one, y->frames[k]);
}

/* No two stacks or modules that are the same. */
static void each_once(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_stacks; i++)
		for (size_t k = 0; k < i; k++) {
			const struct sp_stack *a = &p->stacks[i];
			const struct sp_stack *b = &p->stacks[k];

			assert_false(a->n_frames == b->n_frames &&
				     a->flags == b->flags &&
				     memcmp(a->frames, b->frames,
					    a->n_frames * sizeof(*a->frames)) ==
					     0);
		}
	for (size_t i = 0; i < p->n_modules; i++)
		for (size_t k = 0; k < i; k++) {
			const struct sp_module *a = &p->modules[i];
			const struct sp_module *b = &p->modules[k];

			assert_false(strcmp(a->path, b->path) == 0 &&
				     a->start_pc - a->bias ==
					     b->start_pc - b->bias);
			assert_true(a->end_pc <= b->start_pc ||
				    b->end_pc <= a->start_pc);
		}
}

TEST(parts)
{
	for (unsigned int round = 0; round < 20; round++) {
		uint64_t bytes = 0, objects = 0, losses = 0, end_ns = 0;
		struct sp_profile *all;
		size_t at = 0, threads = 0;

		for (unsigned int i = 0; i < FILES; i++)
			put_random_file(i);
		all = load(FILES);
		assert_int_equal(all->n_parts, FILES);
		each_once(all);
		for (unsigned int i = 0; i < FILES; i++) {
			struct sp_profile *one = NULL;

			assert_int_equal(sp_profile_load(names[i], NULL, NULL,
							 &one, NULL),
					 0);
			for (size_t k = 0; k < one->n_samples; k++, at++) {
				assert_int_equal(all->samples[at].part, i);
				same_sample(all, &all->samples[at], one,
					    &one->samples[k]);
			}
			same_text(all->parts[i].path, names[i]);
			assert_int_equal(all->parts[i].pid, one->pid);
			assert_true(all->start_unix_ns <= one->start_unix_ns);
			bytes += one->exact_alloc_bytes;
			objects += one->exact_alloc_objects;
			losses += one->losses[2];
			threads += one->n_thread_infos;
			if (one->start_unix_ns + one->duration_ns > end_ns)
				end_ns = one->start_unix_ns + one->duration_ns;
			sp_profile_free(one);
		}
		assert_int_equal(at, all->n_samples);
		assert_int_equal(at, FILES * 40);
		assert_int_equal(all->exact_alloc_bytes, bytes);
		assert_int_equal(all->exact_alloc_objects, objects);
		assert_int_equal(all->losses[2], losses);
		assert_int_equal(all->n_thread_infos, threads);
		assert_int_equal(all->start_unix_ns + all->duration_ns, end_ns);
		assert_int_equal(all->period_bytes, 64 << (FILES - 1));
		same_text(sp_profile_info(all, "same"), "yes");
		assert_null(sp_profile_info(all, "own"));
		sp_profile_free(all);
	}
}

/* Threads of the same number in two processes are two. */
TEST(threads)
{
	struct sp_profile *p;

	for (unsigned int i = 0; i < 2; i++) {
		begin(i, 1);
		put_object(1, 10, SP_NEVER, 100, 1, 0, 1);
		end(i);
	}
	p = load(2);
	assert_int_equal(p->n_thread_infos, 2);
	assert_int_equal(p->thread_infos[0].index, 1);
	assert_int_equal(p->thread_infos[1].index, 2);
	assert_int_equal(p->samples[0].thread, 0);
	assert_int_equal(p->samples[1].thread, 1);
	sp_profile_free(p);
}

/* ---- time ---- */

/* Two processes of 1000 ns, `gap_ns` between their starts, each of which holds
 * 100 bytes from 100 ns on and has 30 more from 200 to 300. */
static struct sp_profile *load_two(uint64_t gap_ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		begin(i, 1);
		model_file_header(&file)->start_unix_ns = START + i * gap_ns;
		model_file_status(&file, 1)->time_ns = 1000;
		put_object(1, 100, SP_NEVER, 100, 1, 0, 1);
		put_object(2, 200, 300, 30, 1, 0, 1);
		end(i);
	}
	return load(2);
}

static double peak_of(const struct sp_profile *p)
{
	struct sp_selection all;
	struct sp_peak peak;

	sp_selection_init(&all);
	assert_int_equal(sp_peak(p, &all, 0.95, &peak, NULL), 0);
	return peak.bytes.value;
}

static double live_bytes(const struct sp_profile *p, uint64_t at_ns)
{
	struct sp_selection live;
	double sum = 0;

	sp_selection_init(&live);
	live.view = SP_VIEW_LIVE;
	live.at_ns = at_ns;
	for (size_t i = 0; i < p->n_samples; i++)
		if (sp_selection_has(&live, p, &p->samples[i]))
			sum += (double)p->samples[i].size_bytes;
	return sum;
}

/* One after the other: what the first held at its end is there "at the end",
 * and no more while the second runs. */
TEST(one_after_the_other)
{
	struct sp_profile *p = load_two(5000);
	const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL};
	struct sp_timeline_point points[7];
	struct sp_selection all;

	assert_int_equal(p->duration_ns, 6000);
	assert_close(live_bytes(p, SP_NEVER), 200, 0);
	assert_close(live_bytes(p, 999), 100, 0);
	assert_close(live_bytes(p, 1000), 0, 0);
	assert_close(live_bytes(p, 5250), 130, 0);
	assert_close(live_bytes(p, 6000), 100, 0);
	assert_close(peak_of(p), 130, 0);
	sp_selection_init(&all);
	assert_int_equal(sp_timeline(p, &all, &p3, points, 7, NULL), 0);
	assert_close(points[1].live_bytes.value, 0, 0);
	assert_close(points[6].live_bytes.value, 100, 0);
	sp_profile_free(p);
}

TEST(side_by_side)
{
	struct sp_profile *p = load_two(50);

	assert_close(live_bytes(p, SP_NEVER), 200, 0);
	assert_close(live_bytes(p, 275), 260, 0);
	assert_close(live_bytes(p, 1025), 100, 0);
	assert_close(peak_of(p), 260, 0);
	sp_profile_free(p);
}

/* Age counts to the end of the process, not of all. */
TEST(leaks)
{
	struct sp_profile *p = load_two(5000);
	struct sp_selection leaks;

	sp_selection_init(&leaks);
	leaks.view = SP_VIEW_LEAKS;
	leaks.tail_ns = 900;
	assert_true(sp_selection_has(&leaks, p, &p->samples[0]));
	leaks.tail_ns = 901;
	assert_false(sp_selection_has(&leaks, p, &p->samples[0]));
	assert_false(sp_selection_has(&leaks, p, &p->samples[2]));
	sp_profile_free(p);
}

/* ---- resident memory ---- */

static uint64_t rss_at(const struct sp_profile *p, uint64_t time_ns)
{
	uint64_t now = 0;

	for (size_t i = 0; i < p->n_rss; i++)
		if (p->rss[i].time_ns <= time_ns)
			now = p->rss[i].rss_bytes;
	return now;
}

TEST(rss)
{
	struct sp_profile *p;

	begin(0, 1);
	model_file_status(&file, 1)->time_ns = 100;
	put_info("setting.rss", "on");
	put_rss(10, 1000);
	put_rss(50, 3000);
	end(0);
	begin(1, 1);
	model_file_header(&file)->start_unix_ns = START + 20;
	model_file_status(&file, 1)->time_ns = 200;
	put_info("setting.rss", "on");
	put_rss(30, 500);
	end(1);
	/* Too short to have recorded any. */
	begin(2, 1);
	put_info("setting.rss", "on");
	end(2);
	p = load(3);
	assert_int_equal(rss_at(p, 10), 1000);
	assert_int_equal(rss_at(p, 49), 1000);
	assert_int_equal(rss_at(p, 50), 3500);
	assert_int_equal(rss_at(p, 99), 3500);
	assert_int_equal(rss_at(p, 100), 500);
	assert_int_equal(rss_at(p, 220), 500);
	for (size_t i = 1; i < p->n_rss; i++)
		assert_true(p->rss[i - 1].time_ns < p->rss[i].time_ns);
	sp_profile_free(p);
	/* A sum that lacks one is none. */
	begin(2, 1);
	end(2);
	p = load(3);
	assert_int_equal(p->n_rss, 0);
	sp_profile_free(p);
}

/* ---- in one stream ---- */

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
	assert_int_equal(x.chosen_ns[0], y.chosen_ns[0]);
	assert_int_equal(x.chosen_ns[1], y.chosen_ns[1]);
	assert_close(x.raw_bytes, y.raw_bytes, 1e-9);
	assert_close(x.bytes.value, y.bytes.value, 1e-9);
	assert_close(x.bytes.lo, y.bytes.lo, 1e-9);
	assert_close(x.bytes.hi, y.bytes.hi, 1e-9);
}

static void same_timeline(const struct sp_profile *a,
			  const struct sp_profile *b)
{
	const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL};
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
	struct sp_table *x, *y;
	struct sp_selection s;

	sp_selection_init(&s);
	s.view = view;
	assert_int_equal(sp_table_new(a, &s, &x, NULL), 0);
	assert_int_equal(sp_table_new(b, &s, &y, NULL), 0);
	assert_int_equal(x->all.all.samples, y->all.all.samples);
	for (size_t i = 0; i < a->n_thread_infos; i++)
		assert_close(x->threads[i].all.est_bytes,
			     y->threads[i].all.est_bytes, 1e-9);
	sp_table_free(x, a);
	sp_table_free(y, b);
}

/* Files that overlap, or follow each other; some end in the middle of the time
 * of all, and some have their chunks in no order. */
TEST(streamed)
{
	for (unsigned int round = 0; round < 60; round++) {
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
	assert_int_equal(s->half, t->half);
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
		m.all = grouped;
		m.full = full;
		assert_int_equal(sp_profile_walk(grouped, meet, &m, NULL), 0);
		assert_int_equal(m.n_settled, full->n_samples);
		/* Another file is there by now. */
		begin(1, 1);
		put_object(1, 10, 20, 30, 1, 0, 1);
		end(1);
		assert_int_equal(
			sp_profile_walk(grouped, meet_nothing, NULL, NULL),
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

/* ---- what does not go together ---- */

static void refuse(size_t n, const char *words)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	assert_true(sp_profile_load_many(names, n, NULL, NULL, &p, &err) < 0);
	assert_non_null(strstr(err.message, words));
	assert_null(p);
}

TEST(refused)
{
	begin(0, 1);
	end(0);
	begin(1, 1);
	model_file_header(&file)->flags |= SP_HEADER_LAW_DOTNET;
	end(1);
	refuse(2, "same law");
	begin(1, 1);
	file.file_id = 1000;
	model_file_header(&file)->file_id = 1000;
	end(1);
	refuse(2, "same recording");
}

TEST(one_file)
{
	struct sp_profile *p;

	begin(0, 1);
	put_object(7, 10, SP_NEVER, 100, 1, 0, 1);
	end(0);
	p = load(1);
	assert_int_equal(p->n_parts, 1);
	assert_int_equal(p->samples[0].id, 7);
	assert_int_equal(sp_sample_gone_ns(p, &p->samples[0]), SP_NEVER);
	sp_profile_free(p);
}

static int make_paths(void **state)
{
	(void)state;
	sp_rng_init(&rng, 7, 0);
	for (unsigned int i = 0; i < FILES; i++) {
		if (temp_path_make(paths[i], sizeof(paths[i])) < 0)
			return -1;
		names[i] = paths[i];
	}
	return 0;
}

static int remove_paths(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < FILES; i++)
		unlink(paths[i]);
	return 0;
}

TEST_MAIN(make_paths, remove_paths)
