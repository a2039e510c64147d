/* SPDX-License-Identifier: MIT */
/*
 * The lab's parts and each strategy, on traces small enough to see the right
 * result. Whether the strategies are what they are called is asked in
 * statistics.strategies.
 */
#include <errno.h>
#include <math.h>

#include "lab/trial.h"
#include "lab/workload.h"
#include "support/test.h"

#define MS 1000000ull

/* n objects, each of the next of the sizes, one in a millisecond; of two sites
 * and two threads by turns. */
static struct sp_lab_trace *new_trace(size_t n, const uint64_t *sizes,
				      size_t n_sizes)
{
	static const char *names[] = {"even", "odd"};
	static struct sp_lab_trace trace;

	trace = (struct sp_lab_trace){.name = "test",
				      .about = "",
				      .n_sites = 2,
				      .n_threads = 2,
				      .duration_ns = n * MS};
	trace.sites = calloc(2, sizeof(*trace.sites));
	assert_non_null(trace.sites);
	memcpy(trace.sites, names, sizeof(names));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			sp_lab_trace_add(&trace,
					 &(struct sp_lab_alloc){
						 i * MS, sizes[i % n_sizes],
						 i % 2, i % 2}),
			0);
	assert_int_equal(sp_lab_trace_finish(&trace), 0);
	return &trace;
}

TEST(trace)
{
	struct sp_lab_trace *t = new_trace(30, (uint64_t[]){50, 7, 50}, 3);

	assert_int_equal(t->bytes, 10 * 107);
	assert_int_equal(t->sizes.n, 2);
	assert_true(t->classes[0].size_bytes == 7);
	assert_true(t->classes[0].objects == 10);
	assert_true(t->classes[1].size_bytes == 50);
	assert_true(t->classes[1].objects == 20);
	assert_int_equal(sp_lab_trace_look_at(t, "nobody"), -ENOENT);
	assert_int_equal(t->focus, 0);
	assert_int_equal(sp_lab_trace_look_at(t, "odd"), 0);
	assert_int_equal(t->focus, 1);
	assert_int_equal(t->focus_bytes, 5 * 107);
	sp_lab_trace_free(t);
	/* All are of the first site. */
	t = new_trace(1, (uint64_t[]){50}, 1);
	assert_int_equal(sp_lab_trace_look_at(t, "odd"), -ENOENT);
	assert_int_equal(t->focus_bytes, 50);
	sp_lab_trace_free(t);
}

/* One run of a strategy: all samples together. */
static struct sp_acc run(const struct sp_lab_trace *trace, const char *name,
			 double parameter, uint64_t seed)
{
	static struct sp_acc sites[2];
	struct sp_lab_run r = {
		.trace = trace, .parameter = parameter, .sites = sites};
	struct sp_acc all;

	sp_acc_init(&sites[0], 1);
	sp_acc_init(&sites[1], 1);
	sp_rng_init(&r.rng, seed, 1);
	assert_non_null(sp_lab_strategy_find(name));
	assert_int_equal(sp_lab_strategy_find(name)->run(&r), 0);
	sp_acc_init(&all, 1);
	sp_acc_merge(&all, &sites[0]);
	sp_acc_merge(&all, &sites[1]);
	return all;
}

/* A stride of ten objects takes each tenth, which stands for all ten; only the
 * first does for more or less. */
TEST(stride)
{
	struct sp_lab_trace *t = new_trace(1000, (uint64_t[]){16}, 1);

	for (uint64_t seed = 1; seed < 50; seed++) {
		const struct sp_acc acc = run(t, "stride", 160, seed);

		assert_in_range(acc.samples, 99, 100);
		assert_true(fabs(acc.est_bytes - 16000) < 160 + 16);
		assert_int_equal(acc.size_bytes, 16 * acc.samples);
	}
	sp_lab_trace_free(t);
}

/* Two threads, a buffer of ten objects each: one event for each buffer. */
TEST(tlab)
{
	struct sp_lab_trace *t = new_trace(1000, (uint64_t[]){16}, 1);

	for (uint64_t seed = 1; seed < 50; seed++) {
		const struct sp_acc acc = run(t, "tlab", 160, seed);

		/* While a first buffer lasts that ends within an object, a few
		 * objects may be put outside, which stand for themselves. */
		assert_in_range(acc.samples, 98, 104);
		assert_true(fabs(acc.est_bytes - 16000) < 2 * 160 + 64);
	}
	sp_lab_trace_free(t);
	t = new_trace(1000, (uint64_t[]){1000, 16}, 2);
	/* What is larger than a buffer is outside, and stands for itself. */
	assert_true(run(t, "tlab", 160, 1).est_bytes >= 500 * 1000);
	sp_lab_trace_free(t);
}

/* Weights telescope: together they are what the threads had allocated at their
 * last samples. */
TEST(jfr)
{
	struct sp_lab_trace *t = new_trace(20000, (uint64_t[]){64}, 1);

	for (uint64_t seed = 1; seed < 20; seed++) {
		const struct sp_acc acc = run(t, "jfr", 10, seed);

		/* A target of 10/s for 20 s: two in each window, none in that
		 * of the first event. */
		assert_in_range(acc.samples, 150, 200);
		assert_true(acc.est_bytes <= (double)t->bytes);
		assert_true(acc.est_bytes > 0.9 * (double)t->bytes);
	}
	/* Up to nine per second the window is a second. */
	assert_in_range(run(t, "jfr", 5, 1).samples, 80, 100);
	assert_in_range(run(t, "jfr", 9, 1).samples, 140, 180);
	sp_lab_trace_free(t);
}

/* Everything is taken with a probability of one. */
TEST(certain)
{
	struct sp_lab_trace *t = new_trace(100, (uint64_t[]){5000, 7000}, 2);
	struct sp_interval interval;
	struct sp_acc acc;

	acc = run(t, "objects", 1, 1);
	assert_int_equal(acc.samples, 100);
	assert_true(acc.est_bytes == 600000 && acc.k2 == 0);
	acc = run(t, "best", 5000, 1);
	assert_int_equal(acc.samples, 100);
	assert_true(acc.est_bytes == 600000 && acc.k2 == 0);
	/* Of 4.6 periods and more: exactly its size. */
	acc = run(t, "heapprofd-cut", 1000, 1);
	assert_int_equal(acc.samples, 100);
	assert_true(acc.est_bytes == 600000);
	interval =
		sp_lab_strategy_find("heapprofd-cut")->bytes(&acc, 1000, 0.95);
	assert_true(interval.lo == 600000 && interval.value == 600000);
	/* No hit of anything else. */
	assert_true(fabs(interval.hi - 600000 - 3689) < 1);
	acc = run(t, "sampleprof", 1000, 1);
	assert_int_equal(acc.samples, 100);
	assert_true(acc.est_bytes == 600000 && acc.k2 == 0);
	sp_lab_trace_free(t);
}

/* Objects that are small against the period: all hits are of other objects, so
 * that a count of hits and a division of a sum are as good as any. */
TEST(small_objects_agree)
{
	struct sp_lab_trace *t = new_trace(50000, (uint64_t[]){16}, 1);

	for (uint64_t seed = 1; seed < 5; seed++) {
		const struct sp_acc summed =
			run(t, "jemalloc-summed", 16000, seed);
		const struct sp_acc hits = run(t, "heapprofd", 16000, seed);

		assert_true(summed.samples > 0 && hits.samples > 0);
		assert_true(fabs(summed.est_bytes / (double)summed.samples -
				 16008) < 0.1);
		assert_true(hits.est_bytes / (double)hits.samples >= 16000);
		assert_true(hits.est_bytes / (double)hits.samples < 17000);
	}
	sp_lab_trace_free(t);
}

/* ---- trials ---- */

TEST(same_seed)
{
	struct sp_lab_trace *t = new_trace(5000, (uint64_t[]){16, 400, 48}, 3);
	struct sp_lab_trial trial = {50, 20, 1};

	for (const struct sp_lab_strategy *s = sp_lab_strategies; s->name;
	     s++) {
		struct sp_lab_result a, b, c;

		trial.seed = 1;
		assert_int_equal(sp_lab_try(&trial, t, s, &a), 0);
		assert_int_equal(sp_lab_try(&trial, t, s, &b), 0);
		trial.seed = 2;
		assert_int_equal(sp_lab_try(&trial, t, s, &c), 0);
		assert_memory_equal(&a.total, &b.total, sizeof(a.total));
		assert_memory_equal(&a.focus, &b.focus, sizeof(a.focus));
		assert_true(a.samples == b.samples);
		assert_true(a.focus.bias != c.focus.bias);
		/* The budget is kept, but for those that only aim at it. */
		assert_true(a.samples > 30 && a.samples < 70);
	}
	sp_lab_trace_free(t);
}

/* An estimate that is always the same. */
static int run_constant(struct sp_lab_run *run)
{
	sp_lab_add_weight(sp_lab_take(run, &run->trace->allocs[0]), 16, 1584);
	return 0;
}

TEST(figures)
{
	const struct sp_lab_strategy constant = {"constant", "",
						 SP_LAB_FIT_CHANCE,
						 run_constant, sp_lab_counted};
	struct sp_lab_trace *t = new_trace(100, (uint64_t[]){16}, 1);
	const struct sp_lab_trial trial = {10, 4, 1};
	struct sp_lab_result r;

	assert_int_equal(sp_lab_try(&trial, t, &constant, &r), 0);
	assert_true(fabs(r.total.bias + 0.01) < 1e-12);
	assert_true(r.total.sd < 1e-12);
	/* One sample: the truth may be 5.6 times as much. */
	assert_true(r.total.coverage == 1);
	assert_true(sp_lab_is_biased(&r.total));
	assert_true(fabs(r.focus.bias - 0.98) < 1e-12);
	assert_true(fabs(r.objects.bias + 0.01) < 1e-12);
	assert_true(isnan(r.objects.coverage));
	assert_true(r.samples == 1 && r.most_in_second == 1);
	sp_lab_trace_free(t);
}

TEST(workloads)
{
	for (const struct sp_lab_workload *w = sp_lab_workloads; w->name; w++) {
		FREED_BY(sp_lab_trace_free) struct sp_lab_trace t;
		uint64_t last_ns = 0;

		assert_ptr_equal(sp_lab_workload_find(w->name), w);
		assert_int_equal(sp_lab_workload_make(w, 100, 1, &t), 0);
		assert_true(t.n_allocs >= 1000);
		for (size_t i = 0; i < t.n_allocs; i++) {
			assert_true(t.allocs[i].time_ns >= last_ns);
			assert_true(t.allocs[i].time_ns < t.duration_ns);
			assert_true(t.allocs[i].site < t.n_sites);
			assert_true(t.allocs[i].thread < t.n_threads);
			assert_true(t.allocs[i].size_bytes >= 1);
			last_ns = t.allocs[i].time_ns;
		}
		assert_true(t.focus_bytes > t.bytes / 100);
	}
	assert_null(sp_lab_workload_find("nothing"));
	assert_null(sp_lab_strategy_find("nothing"));
}

TEST_MAIN(NULL, NULL)
