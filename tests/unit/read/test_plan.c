/* SPDX-License-Identifier: MIT */
/* Groups of samples answer each question as every sample would. */
#include <errno.h>

#include "base/order.h"
#include "base/rng.h"
#include "model/walk.h"
#include "read/load.h"
#include "stats/lifetime.h"
#include "stats/peak.h"
#include "stats/sums.h"
#include "stats/timeline.h"
#include "support/acc.h"
#include "support/close.h"
#include "support/format_model.h"
#include "support/scratch.h"
#include "support/load_profile.h"
#include "support/test.h"

#define THREADS 5
#define CHUNKS  200
#define SECOND  1000000000ull

static struct sp_plan plan = {.confidence = 0.9};
static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

/* ---- files as a writer makes them ---- */

struct event {
	uint64_t time_ns;
	uint64_t id;
	uint64_t size_bytes; /* 0: a free */
	uint64_t thread;
};

static struct event events[20000];
static size_t n_events;
static uint32_t header_flags = SP_HEADER_FREES;
static uint64_t header_period; /* 0: that of the samples */
static uint64_t status_ns;     /* what the file says of its duration */

SP_ORDER(compare_events, struct event,
	 SP_UP(time_ns) || SP_UP(id) || SP_BY(!x->size_bytes - !y->size_bytes));

/* Objects of many lives; some die at their birth, some at a moment when others
 * are born, some not at all. */
static void make_events(size_t objects, uint64_t step_ns)
{
	uint64_t now = 1;

	n_events = 0;
	for (uint64_t id = 1; id <= objects; id++) {
		const uint64_t size = 1ull << below(14);
		uint64_t life = below(4) ? below(20 * step_ns) : 0;

		now += below(3) * step_ns;
		events[n_events++] =
			(struct event){now, id, size, 1 + below(THREADS)};
		if (below(9) == 0)
			continue;
		events[n_events++] =
			(struct event){now + life, id, 0, 1 + below(THREADS)};
	}
	qsort(events, n_events, sizeof(events[0]), compare_events);
}

/* Every thread fills chunks of `per_chunk` records; chunks are numbered as they
 * are begun. */
static void write_events(uint64_t period_bytes, size_t per_chunk)
{
	static struct model_bytes records[CHUNKS];
	static struct model_chunk chunks[CHUNKS];
	size_t chunk_of[THREADS + 1] = {0}, filled[THREADS + 1] = {0}, n = 1;
	struct model_file file;

	/* Each thread's last may be part of one; and one is empty. */
	model_file_init(&file, 1 + n_events / per_chunk + THREADS + 1,
			header_period ? header_period : period_bytes);
	model_file_header(&file)->flags = header_flags;
	for (size_t i = 0; i < n_events; i++) {
		const struct event *e = &events[i];
		const uint64_t t = e->thread;
		struct sp_record r = {.type = SP_RECORD_SAMPLE};

		if (!chunk_of[t] || filled[t] == per_chunk) {
			assert_true(n < CHUNKS);
			chunk_of[t] = n++;
			filled[t] = 0;
			records[chunk_of[t]].n = 0;
			model_chunk_begin(&chunks[chunk_of[t]], file.file_id,
					  chunk_of[t]);
		}
		filled[t]++;
		r.u.sample = (struct sp_record_sample){
			.id = e->id,
			.time_ns = e->time_ns,
			.size_bytes = e->size_bytes,
			.offset_bytes =
				e->id % (e->size_bytes + !e->size_bytes),
			.period_bytes = period_bytes,
			.stack = 1 + e->id % 7,
			.thread = t};
		if (!e->size_bytes) {
			r.type = SP_RECORD_FREE;
			r.u.free =
				(struct sp_record_free){.id = e->id,
							.time_ns = e->time_ns,
							.thread = t,
							.has_age = e->id % 5,
							.age_bytes = e->id % 3};
		}
		model_encode(&records[chunk_of[t]], &chunks[chunk_of[t]], &r);
	}
	for (size_t i = 1; i < n; i++) {
		model_file_put(&file, i, &records[i]);
		model_done(&records[i]);
	}
	model_file_status(&file, 1)->time_ns = status_ns;
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&file.bytes);
}

static struct sp_profile *load(bool grouped)
{
	struct sp_profile *p = NULL;
	struct sp_error err;
	int r = grouped ? read_profile(scratch, &plan, &p, &err)
			: sp_profile_load(scratch, NULL, NULL, &p, &err);

	if (r != 0)
		fail_msg("%s", err.message);
	return p;
}

/* ---- the same answers ---- */

static uint64_t same_selections(const struct sp_profile *a,
				const struct sp_profile *b,
				const struct sp_selection *selection)
{
	struct sp_sums *x, *y;
	uint64_t samples;

	assert_int_equal(sp_sums_new(a, selection, &x, NULL), 0);
	assert_int_equal(sp_sums_new(b, selection, &y, NULL), 0);
	samples = y->all.all.samples;
	assert_same_acc(&x->all.all, &y->all.all);
	for (size_t i = 0; i < a->n_stacks; i++)
		assert_same_acc(&x->stacks[i].all, &y->stacks[i].all);
	for (size_t i = 0; i < a->n_thread_infos; i++)
		assert_same_acc(&x->threads[i].all, &y->threads[i].all);
	sp_sums_free(x, a);
	sp_sums_free(y, b);
	return samples;
}

static void same_tables(const struct sp_profile *a, const struct sp_profile *b)
{
	const enum sp_view views[] = {SP_VIEW_ALLOC, SP_VIEW_LIVE,
				      SP_VIEW_LEAKS};
	struct sp_selection all;

	sp_selection_init(&all);
	for (size_t i = 0; i < (a->has_frees ? 3 : 1); i++) {
		all.view = views[i];
		same_selections(a, b, &all);
	}
}

static void same_peaks(const struct sp_profile *a, const struct sp_profile *b)
{
	struct sp_selection all;
	struct sp_peak x, y;

	sp_selection_init(&all);
	assert_int_equal(sp_peak(a, &all, 0.9, &x, NULL), 0);
	assert_int_equal(sp_peak(b, &all, 0.9, &y, NULL), 0);
	assert_int_equal(x.time_ns, y.time_ns);
	assert_int_equal(x.samples, y.samples);
	assert_close(x.raw_bytes, y.raw_bytes, 1e-12);
	assert_close(x.bytes.value, y.bytes.value, 1e-9);
	assert_close(x.bytes.lo, y.bytes.lo, 1e-9);
	assert_close(x.bytes.hi, y.bytes.hi, 1e-9);
}

static void same(const struct sp_profile *grouped,
		 const struct sp_profile *full)
{
	size_t alive = 0;

	assert_int_equal(grouped->n_stacks, full->n_stacks);
	assert_int_equal(sp_profile_samples(grouped), full->n_samples);
	assert_int_equal(grouped->duration_ns, full->duration_ns);
	assert_int_equal(grouped->unmatched_frees, full->unmatched_frees);
	for (size_t i = 0; i < full->n_samples; i++) {
		if (full->samples[i].freed_ns != SP_NEVER)
			continue;
		assert_true(alive < grouped->n_samples);
		assert_memory_equal(&grouped->samples[alive++],
				    &full->samples[i],
				    sizeof(struct sp_sample));
	}
	assert_int_equal(alive, grouped->n_samples);
	same_tables(grouped, full);
	same_peaks(grouped, full);
}

static void load_both(struct sp_profile **ret_grouped,
		      struct sp_profile **ret_full)
{
	*ret_grouped = load(true);
	*ret_full = load(false);
	assert_non_null((*ret_grouped)->peak);
	assert_null((*ret_full)->peak);
	same(*ret_grouped, *ret_full);
}

static void free_both(struct sp_profile *grouped, struct sp_profile *full)
{
	sp_profile_free(grouped);
	sp_profile_free(full);
	plan = (struct sp_plan){.confidence = 0.9};
}

TEST(same)
{
	const unsigned int n_files = rounds_of(24);
	static const uint64_t steps_ns[] = {1, SECOND / 50, SECOND};

	for (unsigned int i = 0; i < n_files; i++) {
		struct sp_profile *grouped, *full;
		/* From many chunks a nanosecond apart to few a second apart. */
		make_events(20 + below(2000), steps_ns[i % 3]);
		header_period = i % 5 == 3; /* too small */
		write_events(i % 4 ? 64ull << below(8) : 1, 30 + below(60));
		load_both(&grouped, &full);
		free_both(grouped, full);
		header_period = 0;
	}
}

/* ---- what else a plan asks for ---- */

/* The same quantile of a class of lifetimes within 1/128. */
static void same_quantile(uint64_t grouped, uint64_t full)
{
	if (full == SP_NEVER || grouped == SP_NEVER)
		assert_true(grouped == full);
	else
		assert_close(grouped, full, 1.0 / 128);
}

static void same_lifetimes(const struct sp_profile *grouped,
			   const struct sp_profile *full)
{
	FREED uint32_t *rows = calloc(full->n_stacks, sizeof(*rows));
	struct sp_lifetime a[32], b[32];
	struct sp_selection all;

	assert_true(full->n_stacks <= 32);
	for (uint32_t i = 0; i < full->n_stacks; i++)
		rows[i] = i % 4;
	sp_selection_init(&all);
	assert_int_equal(sp_lifetimes(grouped, &all, rows, a, 4, NULL), 0);
	assert_int_equal(sp_lifetimes(full, &all, rows, b, 4, NULL), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(a[i].samples, b[i].samples);
		assert_int_equal(a[i].alive, b[i].alive);
		assert_close(a[i].alive_share, b[i].alive_share, 1e-12);
		same_quantile(a[i].median_ns, b[i].median_ns);
		same_quantile(a[i].p90_ns, b[i].p90_ns);
	}
}

TEST(lifetimes)
{
	const unsigned int n_files = rounds_of(24);

	for (unsigned int i = 0; i < n_files; i++) {
		struct sp_profile *grouped, *full;

		make_events(200 + below(2000), i % 2 ? 1 + below(99) : SECOND);
		write_events(i % 4 == 0 ? 1 : 64ull << below(8), 60);
		plan.has_lifetimes = true;
		load_both(&grouped, &full);
		same_lifetimes(grouped, full);
		free_both(grouped, full);
	}
}

/* Moments within the run, some of them those of events. */
static size_t make_cuts(uint64_t *cuts, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		cuts[i] = events[below(n_events)].time_ns + below(2);
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k && cuts[k] < cuts[k - 1]; k--) {
			const uint64_t cut = cuts[k];

			cuts[k] = cuts[k - 1];
			cuts[k - 1] = cut;
		}
	for (size_t i = 0; i < n; i++)
		if (!kept || cuts[i] > cuts[kept - 1])
			cuts[kept++] = cuts[i];
	return kept;
}

TEST(cuts)
{
	const unsigned int n_files = rounds_of(24);

	for (unsigned int i = 0; i < n_files; i++) {
		struct sp_profile *grouped, *full;
		struct sp_selection s;
		uint64_t cuts[SP_PLAN_CUTS_MAX], alive = 0;

		make_events(200 + below(2000), i % 2 ? 1 + below(9) : SECOND);
		write_events(64, 60);
		plan.n_cuts =
			make_cuts(cuts, i ? 1 + below(9) : SP_PLAN_CUTS_MAX);
		plan.cuts = cuts;
		load_both(&grouped, &full);
		sp_selection_init(&s);
		s.view = SP_VIEW_LIVE;
		for (size_t k = 0; k < plan.n_cuts; k++) {
			s.at_ns = cuts[k];
			alive += same_selections(grouped, full, &s);
		}
		assert_true(alive > 0);
		free_both(grouped, full);
	}
}

TEST(temporary)
{
	for (unsigned int i = 0; i < 12; i++) {
		struct sp_profile *grouped, *full;
		struct sp_selection s;

		make_events(500 + below(1000), i % 2 ? 1 + below(9) : SECOND);
		write_events(64, 60);
		sp_selection_init(&s);
		s.view = SP_VIEW_TEMPORARY;
		if (i % 3)
			s.within_bytes = i % 3 - 1;
		else
			s.within_ns = (i % 2 ? 5 : SECOND) * below(9);
		plan.has_temporary = true;
		plan.within_bytes = s.within_bytes;
		plan.within_ns = s.within_ns;
		load_both(&grouped, &full);
		assert_true(same_selections(grouped, full, &s) > 0);
		free_both(grouped, full);
	}
}

/* Also where the status of the file does not say how long the run was. */
TEST(points)
{
	const unsigned int n_files = test_rounds(6, 24);

	for (unsigned int i = 0; i < n_files; i++) {
		struct sp_timeline_point a[100], b[100];
		const struct sp_estimation p3 = {SP_METHOD_P3, 0.9, NULL, 0};
		const size_t n = 2 + below(99);
		struct sp_profile *grouped, *full;
		struct sp_selection all;

		make_events(20 + below(2000), i % 2 ? 1 + below(9) : SECOND);
		status_ns = i % 3 ? events[n_events - 1].time_ns + below(9) : 0;
		write_events(64ull << below(8), 60);
		plan.n_points = n;
		load_both(&grouped, &full);
		assert_int_equal(grouped->n_curve, n);
		sp_selection_init(&all);
		assert_int_equal(sp_timeline(grouped, &all, &p3, a, n, NULL),
				 0);
		assert_int_equal(sp_timeline(full, &all, &p3, b, n, NULL), 0);
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(a[k].time_ns, b[k].time_ns);
			assert_int_equal(a[k].samples, b[k].samples);
			assert_close(a[k].live_bytes.value,
				     b[k].live_bytes.value, 1e-12);
			assert_close(a[k].live_bytes.hi, b[k].live_bytes.hi,
				     1e-9);
			assert_close(a[k].live_objects.lo, b[k].live_objects.lo,
				     1e-9);
		}
		free_both(grouped, full);
	}
}

/* ---- one by one ---- */

struct walked {
	const struct sp_profile *full;
	bool *is_born, *is_settled; /* of each of its samples */
	size_t n_settled;
	uint64_t now_ns;
	size_t stop_at; /* so many settled; 0: not */
};

static int meet(void *arg, enum sp_sample_event event,
		const struct sp_sample *s)
{
	struct walked *w = arg;
	const size_t i = s->id - 1; /* ids are 1, 2, ... */
	const struct sp_sample *want = &w->full->samples[i];
	const bool is_born = event == SP_SAMPLE_BORN;
	const uint64_t at_ns = is_born ? s->born_ns : s->freed_ns;

	assert_true(i < w->full->n_samples && at_ns >= w->now_ns);
	w->now_ns = at_ns;
	assert_false(w->is_settled[i] || (is_born && w->is_born[i]));
	if (is_born) {
		assert_int_equal(s->freed_ns, SP_NEVER);
		assert_true(want->freed_ns > want->born_ns);
		w->is_born[i] = true;
		return 0;
	}
	assert_memory_equal(s, want, sizeof(*s));
	assert_true(w->is_born[i] == (s->freed_ns > s->born_ns));
	w->is_settled[i] = true;
	w->n_settled++;
	return w->n_settled == w->stop_at ? -EINTR : 0;
}

TEST(walk)
{
	for (unsigned int i = 0; i < 12; i++) {
		struct sp_profile *grouped, *full;
		struct walked w = {0};

		make_events(20 + below(1000), i % 2 ? 1 + below(9) : SECOND);
		write_events(64, 60);
		load_both(&grouped, &full);
		w.full = full;
		w.is_born = calloc(full->n_samples, sizeof(bool));
		w.is_settled = calloc(full->n_samples, sizeof(bool));
		w.stop_at = i == 7;
		assert_int_equal(
			sp_profile_walk(grouped, NULL, NULL, meet, &w, NULL),
			i == 7 ? -EINTR : 0);
		assert_int_equal(w.n_settled, i == 7 ? 1 : full->n_samples);
		free(w.is_born);
		free(w.is_settled);
		free_both(grouped, full);
	}
}

/* Memory goes by what is alive: groups by size, stack and thread. */
TEST(groups)
{
	struct sp_profile *p, *full;

	make_events(9000, SECOND / 1000);
	write_events(64, 120);
	load_both(&p, &full);
	assert_true(p->n_groups <= 14 * 7 * THREADS);
	assert_true(p->n_grouped > 6000);
	for (size_t i = 0; i < p->n_groups; i++)
		assert_true(p->groups[i].samples > 0);
	free_both(p, full);
}

/* What no writer does: groups say the same, also of the peak. */
static void check_same(bool is_unordered, uint64_t unmatched)
{
	struct sp_profile *grouped, *full;

	load_both(&grouped, &full);
	assert_true(grouped->n_groups > 0);
	assert_int_equal(grouped->is_unordered, is_unordered);
	assert_int_equal(grouped->unmatched_frees, unmatched);
	free_both(grouped, full);
}

TEST(odd_records)
{
	/* A free without its sample. */
	make_events(300, SECOND);
	events[n_events] =
		(struct event){events[n_events - 1].time_ns + 5, 99999, 0, 1};
	n_events++;
	write_events(64, 30);
	check_same(false, 1);
	/* A sample that comes twice. */
	make_events(300, SECOND);
	for (int i = 0; i < 2; i++) {
		events[n_events] = (struct event){
			events[n_events - 1].time_ns + 1, 500, 64, 1};
		n_events++;
	}
	write_events(64, 30);
	check_same(false, 0);
}

/* Chunks that begin long before those in front of them. */
TEST(out_of_order)
{
	/* A free before its sample, far from both. */
	make_events(300, SECOND);
	events[n_events++] = (struct event){5, 400, 64, 1};
	events[n_events++] = (struct event){1, 400, 0, 1};
	write_events(64, 30);
	check_same(true, 0);
	for (unsigned int i = 0; i < 12; i++) {
		make_events(50 + below(2000), SECOND);
		for (size_t k = n_events; --k;) {
			const size_t other = below(k + 1);
			const struct event e = events[k];

			events[k] = events[other];
			events[other] = e;
		}
		status_ns = 0;
		write_events(64ull << below(8), 30 + below(60));
		plan.n_points = i % 2 ? 20 : 0;
		plan.has_lifetimes = i % 3;
		check_same(true, 0);
	}
}

/* Without frees everything is counted, and nothing is kept. */
TEST(without_frees)
{
	struct sp_profile *grouped, *full;

	make_events(500, SECOND);
	header_flags = 0;
	write_events(64, 30);
	header_flags = SP_HEADER_FREES;
	grouped = load(true);
	full = load(false);
	assert_int_equal(grouped->n_samples, 0);
	assert_int_equal(grouped->n_grouped, full->n_samples);
	same_tables(grouped, full);
	sp_profile_free(grouped);
	sp_profile_free(full);
}

static int setup(void **state)
{
	sp_rng_init(&rng, 11, 0);
	return scratch_make(state);
}

TEST_MAIN(setup, scratch_remove)
