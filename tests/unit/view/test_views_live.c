/* SPDX-License-Identifier: MIT */
/* The text report of what is alive: its lines, its timeline. */

#include "base/rng.h"
#include "report/stats.h"
#include "support/close.h"
#include "support/page.h"
#include "support/test.h"
#include "support/text_checks.h"
#include "view/view.h"

#define R  (512 * 1024)
#define MS 1000000ull

enum { G = NAMELESS + 1 };

/*
 * f: 100 samples of 64 bytes from 1 s to 2 s.  main: 40 from 500 ms on, which
 * is what is alive at the end.  g: 10 freed at once.  The run takes 3.25 s.
 */
static int setup(void **state)
{
	struct page *page = page_new(R);
	struct fixture *x = page->x;

	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_symbol(x, F, "f", "f.c", 20);
	fixture_symbol(x, G, "g", "g.c", 30);
	x->profile.has_frees = true;
	x->profile.exact_alloc_bytes = 75 << 20;
	x->next.born_ns = 500 * MS;
	fixture_stack(x, (size_t[]){MAIN}, 1, 40, 64);
	x->next.born_ns = 1000 * MS;
	x->next.freed_ns = 2000 * MS;
	fixture_stack(x, (size_t[]){F, MAIN}, 2, 100, 64);
	x->next.freed_ns = 1000 * MS + 500;
	x->next.age_bytes = 0;
	x->next.thread = 0;
	x->next.freed_by = 0;
	x->profile.n_thread_infos = 1;
	x->threads[0].index = 1;
	fixture_stack(x, (size_t[]){G, MAIN}, 2, 10, 64);
	*state = page;
	return 0;
}

enum part {
	HEADER,
	STACKS,
	NOTES,
	TIMELINE,
	TIMELINE_ASCII,
};

static const char *print(struct page *page, enum part part)
{
	struct sp_aggregate *a = fixture_aggregate(page->x);
	FILE *out = page_begin(page);
	switch (part) {
	case HEADER:
		sp_view_summary_print_header(out, a->analysis);
		sp_view_summary_print_view(out, a->analysis);
		break;
	case STACKS:
		assert_int_equal(sp_view_stacks_print(out, a, 0, true, NULL),
				 0);
		break;
	case NOTES:
		sp_view_notes_print(out, a->analysis, a);
		break;
	case TIMELINE:
	case TIMELINE_ASCII:
		assert_int_equal(sp_view_timeline_print(out, a->analysis,
							part == TIMELINE_ASCII,
							NULL),
				 0);
		break;
	}
	fclose(out);
	return page->text;
}

TEST_BETWEEN(alloc_shows_live_and_peak, setup, page_teardown)
{
	const char *text = print(*test_state, HEADER);

	assert_has(text, "\n  live      20.0 MiB [");
	assert_has(line_with(text, "  live  "), "] MiB in 327,700 objects [");
	assert_has(line_with(text, "  live  "), "] at the end");
	assert_has(line_with(text, "  peak  "), " MiB [");
	assert_has(line_with(text, "  peak  "), " at 1.000 s");
	assert_has(text, "  view      alloc: what was allocated\n");
	assert_has_not(text, "  rows ");
	assert_has_not(text, "RSS");
}

TEST_OF(struct page *page, live, setup, page_teardown)
{
	const char *text;

	page_choose(page, SP_VIEW_LIVE);
	text = print(page, HEADER);
	assert_has(text, "  view      live: what is alive at the end\n");
	assert_has_not(text, "  rows ");
	page->x->profile.end = SP_PROFILE_END_RUNNING;
	text = print(page, HEADER);
	assert_has(line_with(text, "  live  "), "] now");
	assert_has(text, "live: what is alive now\n");

	assert_true(sp_moment_parse("1500ms", &page->x->question.at));
	text = print(page, HEADER);
	assert_has(line_with(text, "  live  "), "  live      70.0 MiB [");
	assert_has(line_with(text, "  live  "), "] at 1.500 s");
	assert_has(text, "live: what is alive at 1.500 s\n");
}

static void assert_same(struct sp_interval a, struct sp_interval b)
{
	assert_close(a.value, b.value, 1e-9);
	assert_close(a.lo, b.lo, 1e-9);
	assert_close(a.hi, b.hi, 1e-9);
}

TEST_OF(struct page *page, peak, setup, page_teardown)
{
	const struct sp_analysis *a;
	const char *text;

	page_choose(page, SP_VIEW_PEAK);
	text = print(page, HEADER);
	assert_has(text, "  view      peak: what was alive at the peak of live "
			 "bytes, at 1.000 s\n");
	/* The live line is still of the end. */
	assert_has(line_with(text, "  live  "), "] at the end");
	/* 150 samples, before g's go; the rows are the peak's. */
	a = page->x->analysis;
	assert_int_equal(a->view->all.all.samples, 150);
	assert_true(a->peak.rows_ns == 1000 * MS);
	assert_same(sp_estimate_bytes(&a->how, &a->view->all),
		    a->peak.rows_bytes);
	assert_close(a->peak.bytes.value, a->peak.rows_bytes.value, 1e-12);
	assert_close(a->peak.bytes.lo, a->peak.rows_bytes.lo, 1e-9);
	assert_true(a->peak.bytes.hi >= a->peak.rows_bytes.hi);
	/* One summit, of which no other moment is another. */
	assert_has_not(text, "  or  ");
	assert_has_not(print(page, NOTES), "rows do not add up");
}

/* Entry points, sizes and functions without samples are measured, too; exact
 * totals say nothing of it. */
static void assert_all_are_measured(const struct page *page)
{
	struct sp_aggregate *aggregate = fixture_aggregate(page->x);
	const struct sp_analysis *a = aggregate->analysis;
	const struct sp_interval all =
		sp_estimate_bytes(&a->how, &a->view->all);
	struct sp_class_sums none = {.is_measured = true};
	struct sp_stats stats;
	uint64_t samples;

	assert_true(a->population.has_totals);
	assert_int_equal(sp_stats_init(&stats, a, NULL), 0);
	assert_int_equal(stats.n_entries, 1);
	assert_same(sp_estimate_bytes(&a->how, &stats.entries[stats.order[0]]),
		    all);
	sp_stats_done(&stats);
	assert_same(
		sp_analysis_size_bytes(a, 0, SP_FORMAT_CLASSES - 1, &samples),
		all);
	sp_acc_init(&none.all, R);
	assert_same(sp_estimate_bytes(
			    &a->how,
			    &fixture_find(aggregate, "main", "/bin/app")->flat),
		    sp_estimate_bytes(&a->how, &none));
}

TEST_OF(struct page *page, peak_of_noise_is_corrected, setup, page_teardown)
{
	struct fixture *x = page->x;
	struct sp_rng rng;

	sp_rng_init(&rng, 5, 0);
	x->profile.n_samples = 0;
	for (int i = 0; i < 500; i++) {
		x->next.born_ns = sp_rng_next(&rng) % (3000 * MS);
		x->next.freed_ns = x->next.born_ns + 100 * MS;
		fixture_samples(x, &x->stacks[1], 1, 64);
	}
	x->profile.has_classes = true;
	x->profile.classes[sp_format_class(64)] =
		(struct sp_class_total){500 * R, 500 * R / 64};
	page_choose(page, SP_VIEW_PEAK);
	print(page, HEADER);
	assert_all_are_measured(page);
	assert_true(x->analysis->peak.raw_bytes >
		    x->analysis->peak.bytes.value);
	/* and the rows with it (E43) */
	assert_true(sp_selection_is_measured(&x->analysis->selection));
	assert_close(x->analysis->view->all.all.est_bytes,
		     x->analysis->peak.bytes.value, 1e-9);
}

/* What is alive at the end is known by its exact total, and is more than the
 * halves found: rows are of it, and add up to the peak. */
TEST_OF(struct page *page, peak_at_the_end, setup, page_teardown)
{
	struct fixture *x = page->x;
	const double total = 110 * R / 64 * 64;

	x->profile.n_samples = 0;
	x->next.freed_ns = SP_NEVER;
	fixture_samples(x, &x->stacks[1], 100, 64);
	x->profile.has_classes = true;
	x->profile.exact_alloc_bytes = (uint64_t)total;
	x->profile.classes[sp_format_class(64)] =
		(struct sp_class_total){(uint64_t)total, (uint64_t)total / 64};
	page_choose(page, SP_VIEW_PEAK);
	assert_has_not(print(page, NOTES), "rows do not add up");
	assert_false(sp_selection_is_measured(&x->analysis->selection));
	assert_close(x->analysis->peak.bytes.value, total, 1e-9);
	assert_close(sp_estimate_bytes_value(&x->analysis->how,
					     &x->analysis->view->all),
		     total, 1e-9);
}

/* The smaller one of two objects chooses its moment, and the peak is no less
 * than the larger. */
TEST_OF(struct page *page, peak_at_its_limit, setup, page_teardown)
{
	struct fixture *x = page->x;
	unsigned int noted = 0;

	x->profile.n_samples = 0;
	for (unsigned int i = 0; i < 2; i++) {
		x->next.born_ns = i * 20 * MS;
		x->next.freed_ns = x->next.born_ns + 10 * MS;
		fixture_samples(x, &x->stacks[1], 1, i ? 64 : 3 * R);
	}
	page_choose(page, SP_VIEW_PEAK);
	for (x->profile.seed = 0; x->profile.seed < 20; x->profile.seed++)
		noted += !!strstr(print(page, NOTES),
				  "rows do not add up to the peak above: the "
				  "peak was moved to the nearer of its limits");
	assert_in_range(noted, 1, 19);
}

TEST_OF(struct page *page, peak_at_least, setup, page_teardown)
{
	page->x->profile.discarded_bytes = 1;
	page->x->profile.window_ns = 900 * MS;
	/* nothing bounds it */
	assert_has(line_with(print(page, HEADER), "  peak  "),
		   "  peak      at least 62.0 MiB at 1.000 s; before 900 ms it "
		   "is not known");
}

/* Two hills of different functions: rows are of one of them, and the head says
 * how to see those of the other. */
TEST_OF(struct page *page, two_moments, setup, page_teardown)
{
	struct fixture *x = page->x;
	const struct sp_analysis *a;
	const char *text;
	char want[64];
	uint64_t named[2];

	x->profile.n_samples = 0;
	for (unsigned int i = 0; i < 2; i++) {
		x->next.born_ns = (1 + i) * 1000 * MS;
		x->next.freed_ns = x->next.born_ns + 10 * MS;
		fixture_samples(x, &x->stacks[1 + i], 100, 64);
	}
	page_choose(page, SP_VIEW_PEAK);
	text = print(page, HEADER);
	a = x->analysis;
	named[0] = a->peak.rows_ns;
	named[1] = a->peak.other_ns;
	assert_int_equal(named[0] + named[1], 3000 * MS);
	assert_int_equal(a->view->all.all.samples, 100);
	assert_int_equal(a->view->stacks[named[0] / (1000 * MS)].all.samples,
			 100);
	snprintf(want, sizeof(want), ", see --view peak --at %uns",
		 (unsigned int)named[1]);
	assert_has(line_with(text, "  or  "), want);
	x->question.at = (struct sp_moment){SP_MOMENT_TIME, named[1], 0, NULL};
	text = print(page, HEADER);
	a = x->analysis;
	assert_int_equal(a->view->stacks[named[1] / (1000 * MS)].all.samples,
			 100);
	assert_same(sp_estimate_bytes(&a->how, &a->view->all),
		    a->peak.other_bytes);
	assert_has_not(text, "  or  ");
}

TEST_OF(struct page *page, leaks, setup, page_teardown)
{
	const char *text;

	page_choose(page, SP_VIEW_LEAKS);
	text = print(page, HEADER);
	assert_has(text, "leaks: what is older than 325.0 ms and alive "
			 "at the end\n");
	assert_has(line_with(text, "  rows  "), "  rows      20.0 MiB [");
	assert_true(sp_moment_parse("3s", &page->x->question.tail));
	text = print(page, HEADER);
	assert_has(line_with(text, "  rows  "), "  rows      <= 1.85 MiB");
	assert_has(print(page, NOTES),
		   "  - nothing in this view was sampled: it has at most "
		   "1.85 MiB with 97.5 %\n");
}

TEST_OF(struct page *page, temporary, setup, page_teardown)
{
	const char *text;

	page_choose(page, SP_VIEW_TEMPORARY);
	text = print(page, HEADER);
	assert_has(text, "temporary: freed before its thread allocated "
			 "anything else\n");
	assert_has(line_with(text, "  rows  "), "  rows      5.00 MiB [");
	assert_has(line_with(text, "  rows  "),
		   ", 6.7% of the allocated bytes");
	page->x->question.within_bytes = 65536;
	assert_has(print(page, HEADER),
		   "freed by its own thread within 64 KiB of allocations\n");
	page->x->question.within_bytes = SP_NEVER;
	page->x->question.within_ns = 10 * MS;
	assert_has(print(page, HEADER),
		   "freed by its own thread within 10.00 ms\n");
}

TEST_OF(struct page *page, subset, setup, page_teardown)
{
	struct sp_question *q = &page->x->question;
	const char *text;

	assert_true(sp_moment_parse("600ms", &q->from));
	assert_true(sp_moment_parse("2s", &q->to));
	q->min_size_bytes = 64;
	q->max_size_bytes = 1024;
	text = print(page, HEADER);
	assert_has(text, "  chosen    55.0 MiB [");
	assert_has(line_with(text, "  chosen  "), "] of that");
	assert_has(text, "alloc: what was allocated, born from 600.0 ms on, "
			 "born before 2.000 s, of 64 B and more, of 1 KiB at "
			 "most\n");
	/* Of main's, which were born earlier, nothing is alive here. */
	assert_has(line_with(text, "  live  "), "  live      <= 1.85");
	q->thread = "1";
	assert_has(print(page, HEADER), ", by thread 1\n");
}

TEST_BETWEEN(rss, setup, page_teardown)
{
	struct sp_rss rss[] = {
		{100, 30 << 20}, {200, 90 << 20}, {300, 1 << 20}};
	struct page *page = *test_state;

	page_choose(page, SP_VIEW_LIVE);
	assert_has_not(print(page, HEADER), "RSS");
	page->x->profile.rss = rss;
	page->x->profile.n_rss = 3;
	assert_has(print(page, HEADER), "\n  RSS       90.0 MiB at its peak, "
					"1.00 MiB last: what it has beyond "
					"live bytes is allocator overhead, ");
	page_choose(page, SP_VIEW_ALLOC);
	assert_has_not(print(page, HEADER), "RSS");
	/* frees were lost: there is nothing to compare with */
	page_choose(page, SP_VIEW_LIVE);
	page->x->profile.losses[SP_LOSS_FREE_DROPPED] = UINT32_MAX;
	assert_has_not(print(page, HEADER), "beyond live bytes");
	assert_has(page->text, "\n  RSS       90.0 MiB at its peak, "
			       "1.00 MiB last\n");
}

TEST_BETWEEN(lifetimes, setup, page_teardown)
{
	const char *text = print(*test_state, STACKS);

	assert_has(text, "    lifetime: median 1.000 s, 90 % at most 1.000 s, "
			 "0% alive at the end\n"
			 "    f  f.c:20");
	assert_has(text,
		   "    lifetime: median longer than the run, 100.0% alive "
		   "at the end\n"
		   "    main  main.c:10");
	((struct page *)*test_state)->x->profile.has_frees = false;
	assert_has_not(print(*test_state, STACKS), "lifetime");
}

/* Below the step of the library's clock a lifetime is no number of its. */
TEST_BETWEEN(lifetimes_within_a_step_of_the_clock, setup, page_teardown)
{
	struct page *page = *test_state;
	size_t n = 0;

	for (size_t i = 0; i < page->x->profile.n_samples; i++) {
		struct sp_sample *s = &page->x->profile.samples[i];

		if (s->freed_ns != SP_NEVER)
			s->freed_ns = s->born_ns + (n++ % 3 ? 1 : 1100);
	}
	assert_has(print(page, STACKS),
		   "    lifetime: median < 1 us, 90 % at most 1.100 us, ");
	for (size_t i = 0; i < page->x->profile.n_samples; i++) {
		struct sp_sample *s = &page->x->profile.samples[i];

		if (s->freed_ns != SP_NEVER)
			s->freed_ns = s->born_ns + 999;
	}
	assert_has(print(page, STACKS),
		   "    lifetime: median < 1 us, 90 % < 1 us, ");
}

TEST_OF(struct page *page, notes, setup, page_teardown)
{
	struct sp_profile *p = &page->x->profile;

	assert_has_not(print(page, NOTES), "fork");
	assert_has_not(print(page, NOTES), "frees are of");
	page->x->infos[0] = (struct sp_info){"forked", "1"};
	p->n_infos = 1;
	p->unmatched_frees = p->n_samples / 1000;
	assert_has_not(print(page, NOTES), "frees are of");
	p->unmatched_frees = 12345;
	assert_has(print(page, NOTES), "  - this is a forked child: its live "
				       "bytes do not contain what its parent "
				       "had allocated before the fork\n");
	assert_has(print(page, NOTES), "  - 12,345 frees are of samples that "
				       "the file does not have\n");
}

/* ---- timeline ---- */

/* Lines of `text` that begin a row of the plot. */
static int plot_rows(const char *text)
{
	int n = 0;

	for (const char *p = text; (p = strchr(p, '|')); p++)
		n++;
	return n;
}

/* The characters of the plot's row number `row` from the top. */
static const char *plot_row(const char *text, int row)
{
	static char line[512];

	for (; row >= 0; row--, text++)
		text = strchr(text, '|');
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
	return line;
}

TEST_OF(struct page *page, timeline, setup, page_teardown)
{
	const char *text = print(page, TIMELINE_ASCII);
	const char *bottom;

	assert_has(text, "\nLive bytes over time:\n\n");
	assert_int_equal(plot_rows(text), 12);
	/* Points are 3250 / 63 ms apart: main begins at number 10, the rest is
	 * there from 20 to 38. */
	bottom = plot_row(text, 11);
	assert_int_equal(strlen(bottom), 64);
	assert_int_equal(strspn(bottom, "-"), 10);
	assert_int_equal(strspn(bottom + 10, "#"), 54);
	assert_int_equal(strspn(plot_row(text, 0), " "), 20);
	assert_int_equal(strlen(plot_row(text, 0)), 39);
	/* Below the first point that has it. */
	assert_int_equal(strlen(line_with(text, "^ peak")), 14 + 20 + 6);
	assert_has(text, "\n           0 +-----");
	assert_has(text, "  0 s                         1.625 s");
	assert_has(text, " 3.250 s\n");
	assert_has(text, "# at least, = estimated, - at most, at each moment "
			 "by itself\n");
	assert_has_not(text, "RSS");
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (*p >= 32 && *p < 127));
}

TEST_BETWEEN(timeline_in_unicode, setup, page_teardown)
{
	const char *text = print(*test_state, TIMELINE);

	assert_has(text, "\u2588\u2588\u2588");
	assert_has(text, "\u2591");
	assert_has(text, "\u2514\u2500\u2500");
	assert_has(text, "\u25b2 peak\n");
	assert_has_not(text, "#");
}

TEST_BETWEEN(timeline_fits_80_columns, setup, page_teardown)
{
	const char *text = print(*test_state, TIMELINE_ASCII);
	int lines = 0;

	for (const char *p = text; *p; p += strcspn(p, "\n") + 1, lines++)
		assert_in_range(strcspn(p, "\n"), 0, 80);
	assert_in_range(lines, 18, 24);
}

TEST_BETWEEN(timeline_with_rss, setup, page_teardown)
{
	struct sp_rss rss[] = {{1, 100 << 20}, {1600 * MS, 150 << 20}};
	struct page *page = *test_state;
	const char *text;

	page->x->profile.rss = rss;
	page->x->profile.n_rss = 2;
	text = print(page, TIMELINE_ASCII);
	assert_has(text, "; o RSS\n");
	/* Nothing at the first point, then 100, then 150 MiB, the scale's
	 * end. */
	assert_string_equal(plot_row(text, 0),
			    "                                oooooooooooooooo"
			    "oooooooooooooooo");
	assert_string_equal(plot_row(text, 4) + 1,
			    "ooooooooooooooooooooooooooooooo");
	rss[1].rss_bytes = 4000ull << 20;
	text = print(page, TIMELINE_ASCII);
	assert_has_not(text, "o RSS");
	assert_has(text, "RSS is beyond the scale, 3.91 GiB at most");
}

TEST_OF(struct page *page, timeline_of_a_window, setup, page_teardown)
{
	const char *text;

	assert_true(sp_moment_parse("2s", &page->x->question.from));
	assert_true(sp_moment_parse("3s", &page->x->question.to));
	text = print(page, TIMELINE_ASCII);
	assert_has(text, " 2.000 s ");
	assert_has(text, " 3.000 s\n");
	assert_has_not(text, "peak");
}

TEST_MAIN(NULL, NULL)
