/* SPDX-License-Identifier: MIT */
#include "cli/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/growth.h"
#include "cli/near_function.h"
#include "cli/next.h"
#include "read/load.h"
#include "report/answer.h"
#include "report/edges.h"
#include "text/lines.h"
#include "text/text.h"
#include "view/view.h"
#include "view/view_json_frames.h"

/* Of the table that comes before the functions. */
#define PHASES_SHOWN 12

struct page {
	FILE *out;
	char *const *text; /* what is in it after fflush() */
	const struct sp_options *options;
	struct sp_answer *answer;
	const struct sp_analysis *analysis; /* the answer's */
};

static void print_next(const struct page *page, FILE *out,
		       const char *arguments)
{
	const struct sp_next next = {arguments,
				     *arguments ? "" : "again, later"};
	const struct sp_profile *p = page->analysis->profile;

	if (*arguments || p->end == SP_PROFILE_END_RUNNING)
		sp_next_print(out, page->options, p, &next, 1);
}

/* What stands above the tables. */
static void print_head(const struct page *page)
{
	sp_view_summary_print_header(page->out, page->analysis);
	sp_view_summary_print_view(page->out, page->analysis);
}

/* ---- as high as the screen ---- */

/* What is left of a table, and of the commands, on a page that fits. */
#define ROWS_MIN   5
#define NEXT_MIN   1
#define ROWS_LEAST 2 /* where notes take much of the screen */
/* With less than that many lines phases are few, too. */
#define HIGH_ROWS      40
#define PHASES_ON_LOW  4
#define ROWS_UNLIMITED SIZE_MAX
#define NOTES_WHOLE    SIZE_MAX
#define NOTES_MOST     8

/* What there is on a page below its head. */
struct rows {
	size_t n, n_next;
	size_t n_notes; /* not NOTES_WHOLE: of all long lines the beginning */
};

/* Lines for a page: less, which has the last one, ends by itself if another
 * one is left. */
static size_t rows_of_screen(void)
{
	const unsigned int rows = sp_lines_rows();

	return rows > 2 ? rows - 2 : ROWS_UNLIMITED;
}

static bool is_note(const char *line)
{
	return strncmp(line, "  - ", 4) == 0;
}

/* The first `n_max`, without the commands below them. */
static void print_some_notes(FILE *out, char *text, size_t n_max)
{
	size_t n = 0;

	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n += is_note(at + 1);
	if (n > n_max)
		fprintf(out, "\nnotes, %zu of %zu, cut: see --top 0\n", n_max,
			n);
	else if (n)
		fputs("\nnotes, cut: see --top 0\n", out);
	for (char *line; n_max && (line = strsep(&text, "\n"));) {
		if (!is_note(line))
			continue;
		fprintf(out, "%s\n", line);
		n_max--;
	}
}

static void print_notes(const struct page *page, FILE *out,
			const struct sp_aggregate *aggregate, size_t n_notes)
{
	char *text = NULL;
	size_t size;
	FILE *notes =
		n_notes == NOTES_WHOLE ? out : open_memstream(&text, &size);

	if (notes)
		sp_view_notes_print(notes, page->analysis, aggregate);
	if (notes && notes != out && fclose(notes) == 0)
		print_some_notes(out, text, n_notes);
	free(text);
}

/* The table, the notes and the next commands. */
static int print_rows(const struct page *page, FILE *out,
		      const struct sp_aggregate *aggregate,
		      const struct rows *rows, struct sp_error *err)
{
	const struct sp_options *options = page->options;
	const struct sp_analysis *a = page->analysis;
	struct sp_next next[SP_NEXT_MAX];
	size_t n;
	int r = 0;

	if (!options->has_stacks)
		r = sp_view_top_print(out, aggregate, rows->n,
				      sp_lines_columns(),
				      sp_lines_is_terminal(), err);
	if (r < 0)
		return r;
	print_notes(page, out, aggregate, rows->n_notes);
	sp_view_summary_print_method(out, a, &aggregate->how);
	if (!aggregate->n_functions) {
		/* A process that was killed begins with what was alive. */
		print_next(page, out,
			   a->selection.view != SP_VIEW_ALLOC &&
					   !a->view->all.all.samples &&
					   sp_profile_samples(a->profile)
				   ? "--view alloc"
				   : "");
		return 0;
	}
	n = sp_next_after_report(options, a, next);
	sp_next_print(out, options, a->profile, next,
		      n < rows->n_next ? n : rows->n_next);
	return 0;
}

/* The lines of the page with that; 0 without memory. */
static size_t count_rows(const struct page *page,
			 const struct sp_aggregate *aggregate,
			 const struct rows *rows)
{
	struct sp_error err;
	char *text = NULL;
	size_t size, lines = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return 0;
	sp_lines_set_brief(rows->n_notes != NOTES_WHOLE);
	if (print_rows(page, out, aggregate, rows, &err) >= 0 &&
	    fflush(out) == 0)
		lines = sp_lines_count(*page->text) + sp_lines_count(text);
	fclose(out);
	free(text);
	return lines;
}

/* Rows that nobody asked for go until the page fits, then commands, then more
 * rows.  If that is not enough, so it is once more with long lines cut, and at
 * last notes go; if it does not fit at all, nothing.  What is left out is said.
 */
static int print_fitting(const struct page *page,
			 const struct sp_aggregate *aggregate,
			 struct sp_error *err)
{
	const struct sp_options *o = page->options;
	const size_t screen = rows_of_screen();
	const bool is_fixed = o->has_top || o->has_stacks || o->simultaneous;
	const struct rows whole = {(size_t)o->top, SP_NEXT_MAX, NOTES_WHOLE};
	struct rows rows = whole;
	size_t least = ROWS_MIN;
	const bool is_fitted = screen != ROWS_UNLIMITED && page->text &&
			       fflush(page->out) == 0;

	while (is_fitted) {
		const size_t lines = count_rows(page, aggregate, &rows);

		if (lines <= screen)
			break;
		if (!is_fixed) {
			const size_t shown =
				sp_view_top_rows(aggregate, rows.n);
			const size_t excess = lines - screen;

			rows.n =
				shown > least + excess ? shown - excess : least;
			if (shown > least)
				continue;
		}
		if (rows.n_next > NEXT_MIN) {
			rows.n_next--;
		} else if (!is_fixed && least > ROWS_LEAST) {
			least--;
		} else if (!is_fixed && rows.n_notes == NOTES_WHOLE) {
			rows = whole;
			rows.n_notes = NOTES_MOST;
			least = ROWS_MIN;
		} else if (!is_fixed && rows.n_notes > 1) {
			rows.n_notes--;
		} else {
			rows = whole;
			break;
		}
	}
	sp_lines_set_brief(rows.n_notes != NOTES_WHOLE);
	return print_rows(page, page->out, aggregate, &rows, err);
}

static int print_text(const struct page *page,
		      const struct sp_aggregate *aggregate,
		      struct sp_error *err)
{
	const struct sp_options *options = page->options;
	const struct sp_analysis *a = page->analysis;
	const size_t phases =
		rows_of_screen() < HIGH_ROWS ? PHASES_ON_LOW : PHASES_SHOWN;
	int r;

	sp_view_summary_print_header(page->out, a);
	r = sp_growth_print(page->out, options, a->profile,
			    page->answer->progress, page->answer->progress_arg,
			    err);
	if (r < 0)
		return r;
	sp_view_summary_print_view(page->out, a);
	if (options->has_stacks)
		r = sp_view_stacks_print(page->out, aggregate, options->stacks,
					 false, err);
	else if (!a->selection.phase)
		r = sp_view_phases_print(page->out, a, phases, err);
	return r < 0 ? r : print_fitting(page, aggregate, err);
}

/* What is temporary is many objects rather than many bytes. */
static enum sp_aggregate_order order_of(const struct page *page)
{
	const struct sp_options *o = page->options;
	const bool by_count =
		page->analysis->selection.view == SP_VIEW_TEMPORARY &&
		!o->has_order && !o->json && !o->csv;

	return by_count ? SP_AGGREGATE_BY_COUNT : o->order;
}

static unsigned int json_version(const struct sp_options *o)
{
	return o->json_old ? 1 : SP_VIEW_JSON_VERSION;
}

static int print_functions(const struct page *page, struct sp_error *err)
{
	const struct sp_options *options = page->options;
	const bool by_cum = order_of(page) == SP_AGGREGATE_BY_CUM &&
			    !options->json && !options->csv;
	struct sp_aggregate *aggregate;
	int r = sp_answer_aggregate(page->answer, options->granularity,
				    &aggregate, err);

	if (r < 0)
		return r;
	sp_aggregate_sort(aggregate, order_of(page));
	if (options->share > 0 || by_cum)
		r = sp_aggregate_drop(aggregate, options->share, by_cum, err);
	if (options->simultaneous)
		sp_aggregate_hold_together(aggregate);
	if (r >= 0 && options->json)
		r = sp_view_json_write(page->out, aggregate,
				       json_version(page->options), err);
	else if (r >= 0 && options->csv)
		sp_view_csv_functions(page->out, aggregate, options->top);
	else if (r >= 0)
		r = print_text(page, aggregate, err);
	sp_aggregate_free(aggregate);
	return r;
}

/* What stands below the pages of the commands. */
static void print_foot(const struct page *page,
		       const struct sp_aggregate *aggregate, const char *next)
{
	sp_view_notes_print(page->out, page->analysis, aggregate);
	sp_view_summary_print_method(page->out, page->analysis,
				     &page->analysis->how);
	print_next(page, page->out, next);
}

static int print_tree(const struct page *page, struct sp_aggregate *aggregate,
		      struct sp_error *err)
{
	const struct sp_options *o = page->options;
	int r;

	if (o->json || o->csv)
		return sp_view_data_tree(page->out, aggregate, o->share, o->csv,
					 err);
	print_head(page);
	r = sp_view_tree_print(page->out, aggregate, o->share, err);
	if (r >= 0)
		print_foot(page, aggregate, "traces");
	return r;
}

static int print_peek(const struct page *page, struct sp_aggregate *aggregate,
		      struct sp_error *err)
{
	const struct sp_options *o = page->options;
	struct sp_edges *edges;
	size_t n;
	int r = sp_edges_match(aggregate, o->pattern, &edges, &n, err);

	if (r == -ENOENT)
		return sp_near_function_error(aggregate, "", o->pattern, err);
	if (r < 0)
		return r;
	if (o->json || o->csv) {
		sp_view_data_peek(page->out, aggregate, edges, n, o->csv);
	} else {
		print_head(page);
		r = sp_view_peek_print(page->out, aggregate, edges, n, o->share,
				       err);
	}
	sp_edges_free(edges, n);
	if (r >= 0 && !o->json && !o->csv)
		print_foot(page, aggregate, "tree");
	return r;
}

static int print_list(const struct page *page, struct sp_aggregate *aggregate,
		      struct sp_error *err)
{
	const struct sp_options *o = page->options;
	struct sp_listings listings;
	struct sp_aggregate *lines;
	int r = sp_answer_aggregate(page->answer, SP_BY_LINE, &lines, err);

	if (r >= 0 && o->share > 0)
		r = sp_aggregate_drop(aggregate, o->share, false, err);
	if (r < 0)
		return r;
	r = sp_listings_init(&listings, aggregate, lines, o->pattern, err);
	if (r == -ENOENT && !aggregate->n_dropped)
		sp_near_function_error(aggregate, "", o->pattern, err);
	if (r >= 0 && (o->json || o->csv)) {
		sp_view_data_list(page->out, aggregate, &listings, o->csv);
	} else if (r >= 0) {
		print_head(page);
		sp_view_list_print(page->out, aggregate, &listings,
				   o->source_path);
		print_foot(page, aggregate, "--granularity line");
	}
	sp_listings_done(&listings);
	sp_aggregate_free(lines);
	return r;
}

static int print_traces(const struct page *page, struct sp_aggregate *aggregate,
			struct sp_error *err)
{
	const struct sp_options *o = page->options;
	int r;

	if (o->json)
		return sp_view_data_traces(page->out, aggregate, o->stacks,
					   json_version(page->options), err);
	print_head(page);
	r = sp_view_stacks_print(page->out, aggregate, o->stacks, true, err);
	if (r >= 0)
		print_foot(page, aggregate, "tree");
	return r;
}

static void print_sizes_of(const struct page *page);

static int print_stats(const struct page *page, struct sp_aggregate *aggregate,
		       struct sp_error *err)
{
	const struct sp_options *o = page->options;
	struct sp_stats stats;
	int r = sp_stats_init(&stats, page->analysis, err);

	if (r < 0)
		return r;
	if (o->json) {
		sp_view_data_stats(page->out, aggregate, &stats, o->top);
	} else {
		print_head(page);
		print_sizes_of(page);
		sp_view_stats_print(page->out, aggregate, &stats, o->top);
		print_foot(page, aggregate, "top");
	}
	sp_stats_done(&stats);
	return 0;
}

static int print_command(const struct page *page, struct sp_error *err)
{
	static int (*const prints[])(const struct page *page,
				     struct sp_aggregate *aggregate,
				     struct sp_error *err) = {
		[SP_PAGE_TREE] = print_tree,   [SP_PAGE_PEEK] = print_peek,
		[SP_PAGE_LIST] = print_list,   [SP_PAGE_TRACES] = print_traces,
		[SP_PAGE_STATS] = print_stats,
	};
	struct sp_aggregate *aggregate;
	int r = sp_answer_aggregate(page->answer, page->options->granularity,
				    &aggregate, err);

	if (r < 0)
		return r;
	r = prints[page->options->page](page, aggregate, err);
	sp_aggregate_free(aggregate);
	return r;
}

static int print_threads(const struct page *page, struct sp_error *err)
{
	int r;

	if (page->options->csv) {
		sp_view_data_threads(page->out, page->analysis);
		return 0;
	}
	print_head(page);
	r = sp_view_threads_print(page->out, page->analysis, err);
	if (r >= 0)
		print_foot(page, NULL, "");
	return r;
}

static int print_phases(const struct page *page, struct sp_error *err)
{
	int r;

	if (page->options->csv)
		return sp_view_phases_csv(page->out, page->analysis, err);
	print_head(page);
	r = sp_view_phases_print_view(page->out, page->analysis, err);
	if (r >= 0)
		print_foot(page, NULL, "");
	return r;
}

static int print_timeline(const struct page *page, struct sp_error *err)
{
	const struct sp_analysis *a = page->analysis;
	int r;

	if (page->options->csv)
		return sp_view_csv_timeline(page->out, a, err);
	sp_view_summary_print_header(page->out, a);
	r = sp_view_timeline_print(page->out, a, page->options->ascii, err);
	if (r < 0)
		return r;
	print_foot(page, NULL, "--view peak");
	return 0;
}

/* Are the exact totals those of the view?  Not of a part of it. */
static bool has_exact_sizes(const struct sp_analysis *a)
{
	return a->selection.view == SP_VIEW_ALLOC &&
	       !sp_selection_is_subset(&a->selection);
}

static void print_sizes_of(const struct page *page)
{
	const struct sp_analysis *a = page->analysis;

	if (has_exact_sizes(a) && a->profile->has_classes)
		sp_view_sizes_print(page->out, a->profile,
				    page->options->ascii);
	else
		sp_view_sizes_print_estimated(page->out, a,
					      page->options->ascii);
}

/* Exact of all that was allocated, of anything else estimated. */
static int print_sizes(const struct page *page, struct sp_error *err)
{
	const struct sp_analysis *a = page->analysis;
	const bool is_exact =
		has_exact_sizes(a) && page->options->rows != SP_ROWS_BY_SIZE;
	int r = is_exact ? sp_view_sizes_check(a->profile, err) : 0;

	if (r < 0)
		return r;
	if (page->options->csv && is_exact) {
		sp_view_csv_sizes(page->out, a->profile);
	} else if (page->options->csv) {
		sp_view_csv_sizes_estimated(page->out, a);
	} else if (is_exact) {
		sp_view_summary_print_header(page->out, a);
		print_sizes_of(page);
		print_foot(page, NULL, "");
	} else {
		print_head(page);
		sp_view_sizes_print_estimated(page->out, a,
					      page->options->ascii);
		print_foot(page, NULL, "");
	}
	return 0;
}

static int print_page(const struct page *page, struct sp_error *err)
{
	const struct sp_options *o = page->options;

	if (o->page != SP_PAGE_REPORT && o->page != SP_PAGE_TOP)
		return print_command(page, err);
	if (o->timeline)
		return print_timeline(page, err);
	if (o->sizes || o->rows == SP_ROWS_BY_SIZE)
		return print_sizes(page, err);
	if (o->rows == SP_ROWS_BY_THREAD)
		return print_threads(page, err);
	if (o->rows == SP_ROWS_BY_PHASE)
		return print_phases(page, err);
	return print_functions(page, err);
}

/* The text fitted to the screen. */
static int print_fitted(struct page *page, struct sp_error *err)
{
	FILE *const out = page->out;
	char *lines = NULL;
	size_t size;
	int r, close_error;

	page->out = open_memstream(&lines, &size);
	if (!page->out)
		return sp_error_memory(err, NULL);
	page->text = &lines;
	sp_lines_begin_page();
	r = print_page(page, err);
	close_error = sp_lines_close_page(out, page->out, &lines);
	page->out = out;
	page->text = NULL;
	return r < 0 || close_error >= 0 ? r : sp_error_memory(err, NULL);
}

int sp_page_print(FILE *out, const struct sp_profile *profile,
		  const struct sp_options *options, sp_progress_fn *progress,
		  void *progress_arg, struct sp_error *err)
{
	const bool is_text = !options->json && !options->csv;
	const bool has_rows = !options->timeline && !options->sizes;
	enum sp_view fallback = has_rows ? sp_options_fallback(options, profile)
					 : SP_VIEW_ALLOC;
	struct sp_symbolizer_options symbols = options->symbols;
	struct sp_answer answer = {.profile = profile,
				   .question = &options->question,
				   .symbols = &symbols,
				   .progress = progress,
				   .progress_arg = progress_arg};
	struct page page = {.out = out, .options = options, .answer = &answer};
	int r = options->timeline
			? sp_question_needs_frees(profile, "--timeline", err)
			: 0;

	if (r < 0)
		return r;
	symbols.prefers_files = options->page == SP_PAGE_LIST;
	sp_text_set_unit(options->unit);
	/* Programs want names as they are, whatever the locale. */
	sp_text_set_ascii(options->ascii && is_text);
	r = sp_answer_analyse(&answer, fallback, err);
	page.analysis = answer.analysis;
	if (r >= 0 && is_text)
		r = sp_near_filter_error(&answer, fallback, err);
	if (r >= 0)
		r = is_text ? print_fitted(&page, err) : print_page(&page, err);
	sp_answer_done(&answer);
	return r;
}
