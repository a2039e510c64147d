/* SPDX-License-Identifier: MIT */
/*
 * The cells of the page compared with the samples themselves: every window,
 * view and size; fewer bins; survivors; which samples are certain.
 */
#include "base/rng.h"
#include "export/html_cells.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R       4096
#define STACKS  12
#define RUN_NS  1000003ull
#define TAIL_NS 300000

static uint32_t identity[FIXTURE_STACKS];

/* Some time in the run from `least` on, often exactly at an edge. */
static uint64_t some_time(struct sp_rng *rng, uint64_t least)
{
	const uint64_t edge = sp_rng_next(rng) % (SP_HTML_BINS_MAX + 1);
	const uint64_t time_ns = RUN_NS * edge / SP_HTML_BINS_MAX;

	if (sp_rng_next(rng) % 2 && time_ns >= least)
		return time_ns;
	return least + sp_rng_next(rng) % (RUN_NS + 1 - least);
}

static int setup(void **state)
{
	struct fixture *x = fixture_new(R);
	struct sp_rng rng;

	sp_rng_init(&rng, 11, 0);
	x->profile.has_frees = true;
	x->profile.duration_ns = RUN_NS;
	for (size_t i = 0; i < STACKS; i++) {
		const size_t offset = i;

		fixture_symbol(x, i, "f", NULL, 0);
		fixture_stack(x, &offset, 1, 0, 1);
		identity[i] = (uint32_t)i;
	}
	for (uint64_t i = 0; i < 3000; i++) {
		x->next.id = i;
		x->next.born_ns = some_time(&rng, 0);
		x->next.freed_ns = SP_NEVER;
		if (sp_rng_next(&rng) % 3)
			x->next.freed_ns = some_time(&rng, x->next.born_ns);
		x->next.thread = x->next.freed_by = 0;
		x->next.age_bytes = sp_rng_next(&rng) % 3;
		fixture_samples(x, &x->stacks[sp_rng_next(&rng) % STACKS], 1,
				16 + sp_rng_next(&rng) % 4 * 10000);
	}
	x->profile.n_thread_infos = 1;
	x->threads[0].index = 1;
	*state = x;
	return 0;
}

/* Is it in that view, of what is born in the bins [from, to)?  As the page
 * asks. */
static bool page_has(const struct sp_html_cells *cells,
		     const struct sp_html_cell *c, enum sp_view view,
		     unsigned int from, unsigned int to)
{
	if (c->born < from || c->born >= to)
		return false;
	switch (view) {
	case SP_VIEW_LIVE:
		if (to == cells->n_bins)
			return c->flags & SP_HTML_AT_END;
		return !c->freed || c->freed - 1u > to;
	case SP_VIEW_PEAK:
		return c->flags & (SP_HTML_AT_PEAK | SP_HTML_CHOSE_PEAK);
	case SP_VIEW_LEAKS:
		return c->flags & SP_HTML_IS_LEAK;
	case SP_VIEW_TEMPORARY:
		return c->flags & SP_HTML_IS_TEMPORARY;
	case SP_VIEW_ALLOC:
		break;
	}
	return !(c->flags & SP_HTML_IS_SURVIVOR);
}

static uint64_t edge_ns(const struct sp_analysis *a,
			const struct sp_html_cells *cells, unsigned int edge)
{
	const uint64_t begin_ns = a->profile->window_ns;

	return begin_ns + (RUN_NS - begin_ns) * edge / cells->n_bins;
}

/* The same question, as the report asks it. */
static struct sp_selection selection(const struct sp_analysis *a,
				     const struct sp_html_cells *cells,
				     enum sp_view view, unsigned int from,
				     unsigned int to)
{
	struct sp_selection s = a->selection;

	s.view = view;
	s.from_ns = from ? edge_ns(a, cells, from) : 0;
	if (to < cells->n_bins)
		s.to_ns = edge_ns(a, cells, to);
	if (view == SP_VIEW_LIVE && to < cells->n_bins)
		s.at_ns = s.to_ns;
	if (view == SP_VIEW_PEAK)
		s.peak_ns = a->peak.rows_ns;
	s.tail_ns = TAIL_NS;
	s.within_bytes = 0;
	return s;
}

/* By stack and size, both ways. */
static void assert_same(const struct sp_analysis *a,
			const struct sp_html_cells *cells, enum sp_view view,
			unsigned int from, unsigned int to)
{
	const struct sp_profile *p = a->profile;
	const struct sp_selection s = selection(a, cells, view, from, to);
	uint64_t balance[STACKS][4] = {{0}}, n = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *sample = &p->samples[i];

		if (sp_selection_has(&s, p, sample)) {
			balance[sample->stack][sample->size_bytes / 10000]++;
			n++;
		}
	}
	for (size_t i = 0; i < cells->n_cells; i++) {
		const struct sp_html_cell *c = &cells->cells[i];

		if (page_has(cells, c, view, from, to)) {
			balance[c->stack][cells->kinds[c->kind].size_bytes /
					  10000] -= c->count;
			n -= c->count;
		}
	}
	assert_int_equal(n, 0);
	for (size_t i = 0; i < STACKS; i++)
		for (size_t k = 0; k < 4; k++)
			assert_int_equal(balance[i][k], 0);
}

static void check_windows(struct fixture *x, size_t cells_max,
			  unsigned int n_bins)
{
	const struct sp_analysis *a = fixture_analysis(x);
	FREED_BY(sp_html_cells_done) struct sp_html_cells cells;
	struct sp_rng rng;

	sp_rng_init(&rng, 3, 0);
	assert_int_equal(sp_html_cells_init(&cells, a, identity, TAIL_NS,
					    cells_max, NULL),
			 0);
	assert_int_equal(cells.n_bins, n_bins);
	assert_int_equal(cells.n_kinds, 4);
	assert_int_equal(cells.n_periods, 1);
	assert_int_equal(cells.periods[0], R);
	for (int view = 0; view <= SP_VIEW_TEMPORARY; view++) {
		assert_same(a, &cells, (enum sp_view)view, 0, n_bins);
		for (unsigned int i = 0; i < test_rounds(8, 40); i++) {
			const unsigned int from =
				(unsigned int)(sp_rng_next(&rng) % n_bins);
			const unsigned int to =
				from + 1 +
				(unsigned int)(sp_rng_next(&rng) %
					       (n_bins - from));

			assert_same(a, &cells, (enum sp_view)view, from, to);
		}
	}
}

TEST_BETWEEN(windows, setup, fixture_teardown)
{
	check_windows(*test_state, SIZE_MAX, SP_HTML_BINS_MAX);
}

/* Fewer bins say the same of what begins and ends at theirs. */
TEST_BETWEEN(coarse, setup, fixture_teardown)
{
	check_windows(*test_state, 1, SP_HTML_BINS_MIN);
}

/* What survived the discarding of old samples was alive, and not allocated. */
TEST_OF(struct fixture *x, survivors, setup, fixture_teardown)
{
	x->profile.window_ns = RUN_NS / 3;
	check_windows(x, SIZE_MAX, SP_HTML_BINS_MAX);
	check_windows(x, 1, SP_HTML_BINS_MIN);
}

TEST_BETWEEN(order, setup, fixture_teardown)
{
	const struct sp_analysis *a = fixture_analysis(*test_state);
	FREED_BY(sp_html_cells_done) struct sp_html_cells cells;
	uint64_t counts[4] = {0}, n = 0;

	assert_int_equal(
		sp_html_cells_init(&cells, a, identity, TAIL_NS, 1, NULL), 0);
	for (size_t i = 0; i < cells.n_cells; i++) {
		const struct sp_html_cell *c = &cells.cells[i];

		counts[c->kind] += c->count;
		n += c->count;
		assert_true(!i || c[-1].stack <= c->stack);
		assert_true(!i ||
			    memcmp(&c[-1], c,
				   offsetof(struct sp_html_cell, count)) != 0);
	}
	assert_int_equal(n, a->profile->n_samples);
	for (int i = 1; i < 4; i++)
		assert_true(counts[i - 1] >= counts[i]);
}

/* All paths become one: what was counted stays. */
TEST_BETWEEN(renumber, setup, fixture_teardown)
{
	static const uint32_t one[STACKS];
	const struct sp_analysis *a = fixture_analysis(*test_state);
	FREED_BY(sp_html_cells_done) struct sp_html_cells cells;
	size_t before;
	uint64_t n = 0;

	assert_int_equal(
		sp_html_cells_init(&cells, a, identity, TAIL_NS, 1, NULL), 0);
	before = cells.n_cells;
	sp_html_cells_renumber(&cells, one);
	assert_true(cells.n_cells < before);
	for (size_t i = 0; i < cells.n_cells; i++) {
		assert_int_equal(cells.cells[i].stack, 0);
		n += cells.cells[i].count;
	}
	assert_int_equal(n, a->profile->n_samples);
}

/* What is certain (E16) is told from what is left to chance. */
TEST_OF(struct fixture *x, sure, setup, fixture_teardown)
{
	FREED_BY(sp_html_cells_done) struct sp_html_cells cells;

	x->profile.law.always_large = true;
	assert_int_equal(sp_html_cells_init(&cells, fixture_analysis(x),
					    identity, TAIL_NS, 1, NULL),
			 0);
	for (size_t i = 0; i < cells.n_kinds; i++)
		assert_int_equal(cells.kinds[i].is_sure,
				 cells.kinds[i].size_bytes >=
					 sp_format_always_bytes(R));
}

TEST_MAIN(NULL, NULL)
