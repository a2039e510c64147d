/* SPDX-License-Identifier: MIT */
/* Rows by call stack and size, each against a search through all samples. */
#include "base/rng.h"
#include "export/rows.h"
#include "support/close.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R 4096

static int setup(void **state)
{
	struct fixture *x = fixture_new(R);
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 0);
	x->profile.has_frees = true;
	for (size_t i = 0; i < 20; i++) {
		const size_t offset = i;

		fixture_symbol(x, i, "f", NULL, 0);
		fixture_stack(x, &offset, 1, 0, 1);
	}
	for (uint64_t i = 0; i < 2000; i++) {
		const bool is_alive = sp_rng_next(&rng) % 3 == 0;

		x->next.id = i;
		x->next.born_ns = i * 1000000;
		x->next.freed_ns = is_alive ? SP_NEVER : 2 * i * 1000000;
		x->next.thread = x->next.freed_by = 0;
		x->next.age_bytes = sp_rng_next(&rng) % 100;
		fixture_samples(x, &x->stacks[sp_rng_next(&rng) % 19], 1,
				16 + sp_rng_next(&rng) % 20 * 100);
	}
	x->profile.n_thread_infos = 1;
	x->threads[0].index = 1;
	*state = x;
	return 0;
}

static void assert_sum(const struct sp_row *rows, size_t n, bool of_inuse,
		       const struct sp_acc *want)
{
	struct sp_acc sum;

	sp_acc_init(&sum, R);
	for (size_t i = 0; i < n; i++)
		sp_acc_merge(&sum, of_inuse ? &rows[i].inuse : &rows[i].alloc);
	assert_int_equal(sum.samples, want->samples);
	assert_int_equal(sum.size_bytes, want->size_bytes);
	assert_close(sum.est_bytes, want->est_bytes, 1e-12);
	assert_close(sum.k2, want->k2, 1e-12);
}

/* Each row against a search through all samples. */
static void assert_rows(const struct fixture *x, const struct sp_row *rows,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t samples = 0, alive = 0;

		for (size_t k = 0; k < x->profile.n_samples; k++) {
			const struct sp_sample *s = &x->profile.samples[k];

			if (s->stack != rows[i].stack ||
			    s->size_bytes != rows[i].size_bytes)
				continue;
			samples++;
			alive += s->freed_ns == SP_NEVER;
		}
		assert_int_equal(rows[i].alloc.samples, samples);
		assert_int_equal(rows[i].inuse.samples, alive);
		assert_true(i == 0 || rows[i].stack > rows[i - 1].stack ||
			    (rows[i].stack == rows[i - 1].stack &&
			     rows[i].size_bytes > rows[i - 1].size_bytes));
	}
}

TEST_OF(struct fixture *x, all, setup, fixture_teardown)
{
	const struct sp_analysis *a = fixture_analysis(x);
	FREED struct sp_row *rows;
	size_t n;

	assert_int_equal(sp_rows_new(a, &rows, &n, NULL), 0);
	assert_in_range(n, 300, 380);
	assert_rows(x, rows, n);
	assert_sum(rows, n, false, &a->alloc->all.all);
	assert_sum(rows, n, true, &a->live->all.all);
}

TEST_BETWEEN(views, setup, fixture_teardown)
{
	static const enum sp_view views[] = {SP_VIEW_LIVE, SP_VIEW_PEAK,
					     SP_VIEW_LEAKS, SP_VIEW_TEMPORARY};
	struct fixture *x = *test_state;

	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++) {
		const struct sp_analysis *a;
		struct sp_acc none;
		FREED struct sp_row *rows;
		size_t n;

		x->question.has_view = true;
		x->question.view = views[i];
		x->question.min_size_bytes = 200;
		if (views[i] == SP_VIEW_TEMPORARY)
			x->question.within_bytes = 50;
		a = fixture_analysis(x);
		sp_acc_init(&none, R);
		assert_int_equal(sp_rows_new(a, &rows, &n, NULL), 0);
		assert_true(a->view->all.all.samples > 50);
		if (views[i] == SP_VIEW_TEMPORARY) {
			assert_sum(rows, n, false, &a->view->all.all);
			assert_sum(rows, n, true, &none);
		} else {
			assert_sum(rows, n, false, &a->alloc->all.all);
			assert_sum(rows, n, true, &a->view->all.all);
		}
	}
}

TEST_OF(struct fixture *x, nothing, setup, fixture_teardown)
{
	FREED struct sp_row *rows;
	size_t n;

	x->profile.n_samples = 0;
	assert_int_equal(sp_rows_new(fixture_analysis(x), &rows, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(sp_rows_fold(rows, &n, 1, false), 0);
}

/* A row says the size of its objects, or that they have several. */
static void assert_sizes(const struct sp_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_true(rows[i].size_bytes == 0 ||
			    rows[i].size_bytes * rows[i].alloc.samples ==
				    rows[i].alloc.size_bytes);
}

/* Nothing is lost, and what stays apart has at least as much as what does
 * not. */
TEST_OF(struct fixture *x, fold, setup, fixture_teardown)
{
	const struct sp_analysis *a = fixture_analysis(x);
	const size_t n_stacks = 19;

	for (size_t max = 0; max <= n_stacks + 1; max++)
		for (int by_inuse = 0; by_inuse < 2; by_inuse++) {
			FREED struct sp_row *rows;
			size_t n, n_all, n_folded;

			assert_int_equal(sp_rows_new(a, &rows, &n_all, NULL),
					 0);
			n = n_all;
			n_folded = sp_rows_fold(rows, &n, max, by_inuse);
			assert_sum(rows, n, false, &a->alloc->all.all);
			assert_sum(rows, n, true, &a->live->all.all);
			assert_sizes(rows, n);
			if (max == 0) {
				assert_int_equal(n, n_all);
			} else if (max >= n_stacks) {
				assert_int_equal(n, n_stacks);
				assert_int_equal(n_folded, 0);
			} else {
				assert_int_equal(n, max);
				assert_int_equal(n_folded, n_stacks - max + 1);
				assert_int_equal(rows[max - 1].stack,
						 SP_ROWS_OTHER);
			}
			for (size_t i = 1; n_folded && i + 1 < max; i++)
				assert_true(
					by_inuse ? rows[i].inuse.est_bytes <=
							   rows[i - 1]
								   .inuse
								   .est_bytes
						 : rows[i].alloc.est_bytes <=
							   rows[i - 1]
								   .alloc
								   .est_bytes);
		}
}

TEST_MAIN(NULL, NULL)
