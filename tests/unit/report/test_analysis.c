/* SPDX-License-Identifier: MIT */
/* Which samples stand behind which figure of a report. */
#include <errno.h>
#include <math.h>

#include "report/analysis.h"
#include "stats/percentile.h"
#include "support/close.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R  4096
#define MS 1000000ull

/*
 * Stack 0: 3 samples that live from 1 s to 2 s, of thread 1.  Stack 1: 5 from
 * 500 ms on, of thread 2.  Stack 2: 7 freed at once, by the same.
 */
static int setup(void **state)
{
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, 0, "main", "main.c", 10);
	x->profile.has_frees = true;
	x->profile.n_thread_infos = 2;
	x->threads[0].index = 1;
	x->threads[1].index = 2;
	x->next.born_ns = 1000 * MS;
	x->next.freed_ns = 2000 * MS;
	x->next.thread = 0;
	fixture_stack(x, (size_t[]){0}, 1, 3, 100);
	x->next.born_ns = 500 * MS;
	x->next.freed_ns = SP_NEVER;
	x->next.thread = 1;
	fixture_stack(x, (size_t[]){0}, 1, 5, 2000);
	x->next.born_ns = 3000 * MS;
	x->next.freed_ns = 3000 * MS + 10;
	x->next.age_bytes = 0;
	x->next.freed_by = 1;
	fixture_stack(x, (size_t[]){0}, 1, 7, 100);
	*state = x;
	return 0;
}

static void assert_samples(const struct sp_sums *sums, uint64_t a, uint64_t b,
			   uint64_t c)
{
	assert_int_equal(sums->stacks[0].all.samples, a);
	assert_int_equal(sums->stacks[1].all.samples, b);
	assert_int_equal(sums->stacks[2].all.samples, c);
	assert_int_equal(sums->all.all.samples, a + b + c);
}

static const struct sp_analysis *ask(struct fixture *x, enum sp_view view)
{
	x->question.has_view = true;
	x->question.view = view;
	return fixture_analysis(x);
}

TEST_BETWEEN(alloc, setup, fixture_teardown)
{
	const struct sp_analysis *a = fixture_analysis(*test_state);

	assert_samples(a->view, 3, 5, 7);
	assert_ptr_equal(a->alloc, a->view);
	assert_samples(a->live, 0, 5, 0);
	assert_true(a->live_at_ns == SP_NEVER);
	assert_int_equal(a->peak.samples, 12);
	assert_true(a->peak.time_ns == 3000 * MS);
	assert_int_equal(a->population.all.all.samples, 15);
	assert_ptr_equal(a->how.population, &a->population);
}

TEST_OF(struct fixture *x, live_at, setup, fixture_teardown)
{
	const struct sp_analysis *a;

	assert_true(sp_moment_parse("1500ms", &x->question.at));
	a = ask(x, SP_VIEW_LIVE);
	assert_samples(a->view, 3, 5, 0);
	assert_ptr_equal(a->live, a->view);
	assert_samples(a->alloc, 3, 5, 7);
	assert_true(a->live_at_ns == 1500 * MS);
}

TEST_BETWEEN(peak, setup, fixture_teardown)
{
	const struct sp_analysis *a = ask(*test_state, SP_VIEW_PEAK);

	assert_true(a->selection.at_ns == 3000 * MS);
	assert_samples(a->view, 0, 5, 7);
	/* What is alive is still said of the end. */
	assert_samples(a->live, 0, 5, 0);
	assert_true(a->live_at_ns == SP_NEVER);
}

/* Summed up while samples came and went, and once more by rows. */
TEST_OF(struct fixture *x, peak_is_its_rows, setup, fixture_teardown)
{
	const struct sp_analysis *a;
	struct sp_interval rows;

	for (uint64_t i = 0; i < 300; i++) {
		x->next.born_ns = (4000 + i * 7 % 400) * MS;
		x->next.freed_ns = i % 3 ? x->next.born_ns + 90 * MS : SP_NEVER;
		fixture_stack(x, (size_t[]){0}, 1, 1 + i % 2, 33 + 37 * i);
	}
	a = ask(x, SP_VIEW_PEAK);
	rows = sp_estimate_bytes(&a->how, &a->view->all);
	assert_true(a->peak.rows_bytes.value == rows.value);
	assert_true(a->peak.rows_bytes.lo == rows.lo);
	assert_true(a->peak.rows_bytes.hi == rows.hi);
	assert_true(a->peak.bytes.hi >= rows.hi);
}

TEST_OF(struct fixture *x, leaks, setup, fixture_teardown)
{
	const struct sp_analysis *a;

	assert_samples(ask(x, SP_VIEW_LEAKS)->view, 0, 5, 0);
	assert_true(sp_moment_parse("2s", &x->question.at));
	assert_true(sp_moment_parse("1600ms", &x->question.tail));
	a = ask(x, SP_VIEW_LEAKS);
	assert_samples(a->view, 0, 0, 0);
	/* The tail takes nothing from what is alive. */
	assert_samples(a->live, 0, 5, 0);
	assert_true(a->live_at_ns == 2000 * MS);
}

TEST_BETWEEN(temporary, setup, fixture_teardown)
{
	assert_samples(ask(*test_state, SP_VIEW_TEMPORARY)->view, 0, 0, 7);
}

/* Whose free was lost may have been temporary: there may be more. */
TEST_OF(struct fixture *x, temporary_without_frees, setup, fixture_teardown)
{
	const struct sp_analysis *a = ask(x, SP_VIEW_TEMPORARY);

	assert_true(isfinite(sp_estimate_bytes(&a->how, &a->view->all).hi));
	x->profile.losses[SP_LOSS_FREE_DROPPED] = x->profile.n_samples;
	a = ask(x, SP_VIEW_TEMPORARY);
	assert_true(isinf(sp_estimate_bytes(&a->how, &a->view->all).hi) ||
		    sp_estimate_bytes(&a->how, &a->view->all).hi ==
			    a->population.most_bytes);
	assert_true(sp_estimate_bytes(&a->how, &a->view->all).lo > 0);
	/* what was allocated is as known as before */
	a = ask(x, SP_VIEW_ALLOC);
	assert_false(a->view->all.is_least);
}

/* A subset is one of every figure but of the population. */
TEST_OF(struct fixture *x, subset, setup, fixture_teardown)
{
	const struct sp_analysis *a;

	x->question.thread = "2";
	a = ask(x, SP_VIEW_LIVE);
	assert_samples(a->view, 0, 5, 0);
	assert_samples(a->alloc, 0, 5, 7);
	assert_int_equal(a->peak.samples, 12);
	assert_int_equal(a->population.all.all.samples, 15);
	x->question.max_size_bytes = 100;
	a = ask(x, SP_VIEW_ALLOC);
	assert_samples(a->alloc, 0, 0, 7);
	assert_samples(a->live, 0, 0, 0);
	assert_int_equal(a->peak.samples, 7);
}

TEST_OF(struct fixture *x, total_is_from_the_samples_alone, setup,
	fixture_teardown)
{
	const struct sp_analysis *a = fixture_analysis(x);

	assert_int_equal(a->how.method, SP_METHOD_P3T);
	assert_int_equal(sp_analysis_total_how(a).method, SP_METHOD_P3);
	/* Of a part, nothing exact stands beside it. */
	x->question.method = SP_METHOD_P3T;
	x->question.max_size_bytes = 100;
	a = fixture_analysis(x);
	assert_int_equal(sp_analysis_total_how(a).method, SP_METHOD_P3T);
}

TEST_OF(struct fixture *x, errors_are_passed_on, setup, fixture_teardown)
{
	struct sp_analysis *a = (struct sp_analysis *)x;
	struct sp_error err = {0};

	x->question.thread = "9";
	assert_int_equal(sp_analysis_new(&x->profile, &x->question,
					 SP_VIEW_ALLOC, &a, &err),
			 -ENOENT);
	assert_ptr_equal(a, x);
	assert_true(err.message[0]);
}

TEST_BETWEEN(share, setup, fixture_teardown)
{
	const struct sp_analysis *a = fixture_analysis(*test_state);
	const struct sp_acc *all = &a->view->all.all;
	const struct sp_acc *part = &a->view->stacks[0].all;
	struct sp_interval share = sp_analysis_share(part, all, 0.95);
	struct sp_interval wider = sp_analysis_share(part, all, 0.99);

	assert_close(share.value, part->est_bytes / all->est_bytes, 1e-12);
	assert_true(0 < share.lo && share.lo < share.value);
	assert_true(share.value < share.hi && share.hi < 1);
	assert_true(wider.lo < share.lo && wider.hi > share.hi);
	share = sp_analysis_share(all, all, 0.95);
	assert_true(share.value == 1 && share.hi == 1 && share.lo < 1);
}

/* A row says one thing: limits of its share are those of its bytes, over what
 * was allocated; and where those have no upper one the share has none. */
TEST_OF(struct fixture *x, share_of_a_row, setup, fixture_teardown)
{
	const struct sp_analysis *a;
	struct sp_interval share, bytes;
	double whole;

	x->profile.has_classes = true;
	x->profile.classes[sp_format_class(100)] =
		(struct sp_class_total){40000, 400};
	x->profile.classes[sp_format_class(2000)] =
		(struct sp_class_total){24000, 12};
	x->profile.exact_alloc_bytes = 64000;
	x->profile.exact_alloc_objects = 412;
	a = fixture_analysis(x);
	assert_true(a->population.has_totals);
	whole = (double)x->profile.exact_alloc_bytes;
	bytes = sp_estimate_bytes(&a->how, &a->view->stacks[0]);
	share = sp_analysis_row_share(a, &a->how, &a->view->stacks[0]);
	assert_close(share.value, bytes.value / whole, 1e-12);
	assert_close(share.lo, bytes.lo / whole, 1e-12);
	assert_close(share.hi, fmin(bytes.hi / whole, 1), 1e-12);

	x->profile.damaged_records = 1;
	a = fixture_analysis(x);
	bytes = sp_estimate_bytes(&a->how, &a->view->stacks[0]);
	assert_true(isinf(bytes.hi));
	share = sp_analysis_row_share(a, &a->how, &a->view->stacks[0]);
	assert_true(share.lo == 0 && share.hi == 1);
}

TEST_BETWEEN(rss, setup, fixture_teardown)
{
	struct sp_rss rss[] = {{10, 1}, {20, 5}, {20, 4}, {30, 2}};
	struct fixture *x = *test_state;
	uint64_t bytes = 77;

	assert_int_equal(sp_analysis_peak_rss(&x->profile), 0);
	assert_false(sp_analysis_rss_at(&x->profile, 10, &bytes));
	x->profile.rss = rss;
	x->profile.n_rss = 4;
	assert_int_equal(sp_analysis_peak_rss(&x->profile), 5);
	assert_false(sp_analysis_rss_at(&x->profile, 9, &bytes));
	assert_int_equal(bytes, 77);
	for (uint64_t t = 10; t < 40; t++) {
		uint64_t want = t < 20 ? 1 : t < 30 ? 4 : 2;

		assert_true(sp_analysis_rss_at(&x->profile, t, &bytes));
		assert_int_equal(bytes, want);
	}
}

TEST_OF(struct fixture *x, percentiles, setup, fixture_teardown)
{
	struct sp_profile *p = &x->profile;

	assert_int_equal(sp_analysis_size_percentile(p, false, 0.5), 0);
	p->has_classes = true;
	assert_int_equal(sp_analysis_size_percentile(p, false, 0.5), 0);
	p->classes[0] = (struct sp_class_total){160, 10};
	p->classes[3] = (struct sp_class_total){640, 10};
	p->classes[SP_FORMAT_CLASSES - 1] = (struct sp_class_total){200, 1};
	assert_int_equal(sp_analysis_size_percentile(p, false, 0.01), 16);
	assert_int_equal(sp_analysis_size_percentile(p, false, 10 / 21.0), 16);
	assert_int_equal(sp_analysis_size_percentile(p, false, 0.5), 64);
	assert_true(sp_analysis_size_percentile(p, false, 1) == UINT64_MAX);
	assert_int_equal(sp_analysis_size_percentile(p, true, 0.16), 16);
	assert_int_equal(sp_analysis_size_percentile(p, true, 0.17), 64);
	assert_int_equal(sp_analysis_size_percentile(p, true, 0.8), 64);
	assert_true(sp_analysis_size_percentile(p, true, 0.81) == UINT64_MAX);
}

/* ---- sizes of the view ---- */

/* 90,000 bytes of three sizes: 16, 100 and 2000. */
static void add_totals(struct sp_profile *p)
{
	p->has_classes = true;
	p->exact_alloc_bytes = 90000;
	p->classes[sp_format_class(16)] = (struct sp_class_total){160, 10};
	p->classes[sp_format_class(100)] = (struct sp_class_total){49840, 498};
	p->classes[sp_format_class(2000)] = (struct sp_class_total){40000, 20};
}

static void assert_same(struct sp_interval a, struct sp_interval b)
{
	assert_true(a.value == b.value && a.lo == b.lo && a.hi == b.hi);
}

TEST_OF(struct fixture *x, bytes_of_sizes, setup, fixture_teardown)
{
	const struct sp_analysis *a = ask(x, SP_VIEW_TEMPORARY);
	const unsigned int small = sp_format_class(100);
	uint64_t samples;

	assert_same(sp_analysis_size_bytes(a, small, small, &samples),
		    sp_estimate_bytes(&a->how, &a->view->stacks[2]));
	assert_int_equal(samples, 7);
	a = ask(x, SP_VIEW_ALLOC);
	assert_same(
		sp_analysis_size_bytes(a, 0, SP_FORMAT_CLASSES - 1, &samples),
		sp_estimate_bytes(&a->how, &a->view->all));
	assert_int_equal(samples, 15);
	assert_same(sp_analysis_size_bytes(a, small + 1, SP_FORMAT_CLASSES - 1,
					   &samples),
		    sp_estimate_bytes(&a->how, &a->view->stacks[1]));
	assert_int_equal(samples, 5);
	assert_close(sp_analysis_size_bytes(a, 0, small - 1, &samples).hi,
		     3.6888794541139363 * R, 1e-9);
	assert_int_equal(samples, 0);
}

/* There is no more of a size than was allocated of it. */
TEST_OF(struct fixture *x, bytes_of_sizes_with_totals, setup, fixture_teardown)
{
	const unsigned int large = sp_format_class(2000);
	const struct sp_analysis *a;
	struct sp_interval bytes;
	uint64_t samples;

	add_totals(&x->profile);
	a = ask(x, SP_VIEW_LIVE);
	assert_true(a->population.has_totals);
	assert_same(sp_analysis_size_bytes(a, 0, 0, &samples),
		    (struct sp_interval){0, 0, 160});
	assert_same(sp_analysis_size_bytes(a, 1, 1, &samples),
		    (struct sp_interval){0, 0, 0});
	bytes = sp_analysis_size_bytes(a, large, large, &samples);
	assert_int_equal(samples, 5);
	assert_true(10000 <= bytes.lo && bytes.lo < bytes.value);
	assert_true(bytes.value < bytes.hi && bytes.hi <= 40000);

	x->profile.class_slack_bytes = 100;
	a = ask(x, SP_VIEW_LIVE);
	assert_same(sp_analysis_size_bytes(a, 1, 1, &samples),
		    (struct sp_interval){0, 0, 100});
	x->question.method = SP_METHOD_P3;
	a = ask(x, SP_VIEW_LIVE);
	assert_true(sp_analysis_size_bytes(a, 1, 1, &samples).hi > 3 * R);
}

TEST_OF(struct fixture *x, sizes_that_there_can_be, setup, fixture_teardown)
{
	const struct sp_analysis *a;

	x->question.min_size_bytes = 48;
	x->question.max_size_bytes = 1025;
	for (int with_totals = 0; with_totals < 2; with_totals++) {
		a = fixture_analysis(x);
		for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
			bool want = i >= sp_format_class(48) &&
				    i <= sp_format_class(1025);

			if (with_totals)
				want = i == sp_format_class(100);
			assert_int_equal(sp_analysis_may_have_size(a, i), want);
		}
		add_totals(&x->profile);
	}
	x->profile.class_slack_bytes = 100;
	a = fixture_analysis(x);
	assert_true(sp_analysis_may_have_size(a, sp_format_class(48)));
}

static double end_of(double size)
{
	return isinf(size) ? size
			   : (double)sp_format_class_max(
				     sp_format_class((uint64_t)size));
}

static double begin_of(double size)
{
	const uint32_t class =
		isinf(size) ? 0 : sp_format_class((uint64_t)size);

	return class ? (double)sp_format_class_max(class - 1) + 1 : 1;
}

/* Of sizes of different classes, they are those of the sizes; the limits
 * contain the sizes. */
TEST_BETWEEN(percentiles_of_view, setup, fixture_teardown)
{
	static const uint64_t sizes[] = {20, 100, 900, 3000, 20000};
	struct fixture *x = *test_state;
	struct sp_value_group groups[5];
	const struct sp_law_used law = {0};
	const struct sp_analysis *a;

	x->profile.n_samples = 0;
	for (size_t i = 0; i < 5; i++) {
		groups[i].value = (double)sizes[i];
		sp_acc_init(&groups[i].acc, R);
		for (size_t k = 0; k < 6 + i; k++)
			sp_acc_add(&groups[i].acc, &law, sizes[i], 0, R);
		fixture_samples(x, &x->stacks[0], 6 + i, sizes[i]);
	}
	a = fixture_analysis(x);
	for (double share = 0.01; share < 1; share += 0.01) {
		struct sp_interval got;
		struct sp_interval want = sp_percentile(groups, 5, share, 0.95);

		assert_true(sp_analysis_view_percentile(a, share, &got));
		assert_close(got.value, want.value, 1e-12);
		assert_true(got.lo == begin_of(want.lo));
		assert_true(got.hi == end_of(want.hi));
	}
}

static struct sp_interval percentile(const struct sp_analysis *a, double share)
{
	struct sp_interval size;

	assert_true(sp_analysis_view_percentile(a, share, &size));
	return size;
}

/* Of 2000 bytes, in the class that ends with 2048. */
static void assert_limits(const struct sp_analysis *a, double lo, double end,
			  double hi)
{
	const struct sp_interval few = percentile(a, 0.01);
	const struct sp_interval most = percentile(a, 0.99);

	assert_close(few.value, 2000, 1e-12);
	assert_close(most.value, 2000, 1e-12);
	assert_true(few.lo == lo && few.hi == end);
	assert_true(most.lo == 1793 && most.hi == hi);
}

/* Five samples of one size, and what was not seen. */
TEST_OF(struct fixture *x, percentile_limits, setup, fixture_teardown)
{
	struct sp_interval size = {1, 2, 3};

	assert_limits(ask(x, SP_VIEW_LIVE), 1, 2048, INFINITY);
	x->question.max_size_bytes = UINT64_MAX - 1;
	assert_limits(ask(x, SP_VIEW_LIVE), 1, 2048, INFINITY);
	/* Unseen is only what was asked for... */
	x->question.min_size_bytes = 1000;
	x->question.max_size_bytes = 5000;
	assert_limits(ask(x, SP_VIEW_LIVE), 1000, 2048, 5000);
	x->question.max_size_bytes = 2000;
	assert_limits(ask(x, SP_VIEW_LIVE), 1000, 2000, 2000);
	/* ... and was allocated. */
	add_totals(&x->profile);
	assert_limits(ask(x, SP_VIEW_LIVE), 1793, 2000, 2000);
	sp_question_init(&x->question);
	assert_limits(ask(x, SP_VIEW_LIVE), 1, 2048, 2048);

	x->question.max_size_bytes = 10;
	assert_false(
		sp_analysis_view_percentile(ask(x, SP_VIEW_LIVE), 0.5, &size));
	assert_same(size, (struct sp_interval){1, 2, 3});
}

/* Every size is the percentile of the share at which it stands. */
TEST_BETWEEN(percentile_is_exact_at_period_1, setup, fixture_teardown)
{
	struct fixture *x = fixture_new(1);
	const struct sp_analysis *a;
	uint64_t total = 0, below = 0;

	fixture_symbol(x, 0, "main", "main.c", 10);
	fixture_stack(x, (size_t[]){0}, 1, 0, 1);
	for (uint64_t size = 7; size < 10000; size += 77) {
		fixture_samples(x, &x->stacks[0], 1, size);
		total += size;
	}
	a = fixture_analysis(x);
	for (uint64_t size = 7; size < 10000; size += 77) {
		const double middle = (double)below + (double)size / 2;
		const double want = (double)size;
		struct sp_interval got;

		assert_true(sp_analysis_view_percentile(
			a, middle / (double)total, &got));
		assert_same(got, (struct sp_interval){want, want, want});
		below += size;
	}
	fixture_free(x);
}

TEST_MAIN(NULL, NULL)
