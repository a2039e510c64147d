/* SPDX-License-Identifier: MIT */
#include "report/page.h"

#include "report/export_csv.h"
#include "report/export_json.h"
#include "report/view_notes.h"
#include "report/view_sizes.h"
#include "report/view_stacks.h"
#include "report/view_summary.h"
#include "report/view_timeline.h"
#include "report/view_top.h"

struct page {
	FILE *out;
	const struct sp_options *options;
	const struct sp_analysis *analysis;
	sp_progress_fn *progress;
	void *progress_arg;
};

static size_t shown(uint64_t asked, size_t there)
{
	return asked && asked < there ? (size_t)asked : there;
}

/* The longer of the two tables decides for both. */
static void hold_together(const struct sp_options *options,
			  struct sp_aggregate *aggregate)
{
	size_t n = shown(options->top, aggregate->n_functions);
	size_t n_stacks = shown(options->stacks, aggregate->n_stacks);

	if (!options->simultaneous)
		return;
	if (options->json)
		n = aggregate->n_functions;
	if ((options->has_stacks || options->json) && n_stacks > n)
		n = n_stacks;
	sp_aggregate_hold_together(aggregate, n);
}

static void print_next(const struct page *page, const char *arguments)
{
	const struct sp_profile *p = page->analysis->profile;

	sp_view_notes_print_completeness(page->out, p);
	if (*arguments || p->end == SP_PROFILE_END_RUNNING)
		sp_view_notes_print_next(page->out, p, page->options->program,
					 arguments);
}

static int print_text(const struct page *page,
		      const struct sp_aggregate *aggregate,
		      struct sp_error *err)
{
	const struct sp_options *options = page->options;
	int r;

	sp_view_summary_print_header(page->out, page->analysis);
	sp_view_summary_print_view(page->out, page->analysis, &aggregate->how,
				   aggregate->n_together);
	r = sp_view_top_print(page->out, aggregate, options->top,
			      options->columns, err);
	if (r >= 0 && options->has_stacks)
		r = sp_view_stacks_print(page->out, aggregate, options->stacks,
					 err);
	if (r < 0)
		return r;
	sp_view_notes_print(page->out, page->analysis, aggregate);
	print_next(page, !aggregate->n_functions ? ""
			 : options->has_stacks   ? "--json"
						 : "--stacks 10");
	return 0;
}

static int print_functions(const struct page *page, struct sp_error *err)
{
	const struct sp_options *options = page->options;
	struct sp_symbolizer *symbolizer;
	struct sp_aggregate *aggregate;
	int r = sp_symbolizer_new(page->analysis->profile, &options->symbols,
				  &symbolizer, err);

	if (r < 0)
		return r;
	r = sp_aggregate_new(page->analysis, symbolizer, page->progress,
			     page->progress_arg, &aggregate, err);
	if (r >= 0) {
		sp_aggregate_sort(aggregate, options->order);
		hold_together(options, aggregate);
		if (options->json)
			r = sp_export_json_write(page->out, aggregate, err);
		else if (options->csv)
			sp_export_csv_functions(page->out, aggregate,
						options->top);
		else
			r = print_text(page, aggregate, err);
		sp_aggregate_free(aggregate);
	}
	sp_symbolizer_free(symbolizer);
	return r;
}

static int print_timeline(const struct page *page, struct sp_error *err)
{
	const struct sp_analysis *a = page->analysis;
	int r;

	if (page->options->csv)
		return sp_export_csv_timeline(page->out, a, err);
	sp_view_summary_print_header(page->out, a);
	r = sp_view_timeline_print(page->out, a, page->options->ascii, err);
	if (r < 0)
		return r;
	sp_view_notes_print(page->out, a, NULL);
	print_next(page, "--view peak");
	return 0;
}

static void print_sizes_estimated(const struct page *page)
{
	const struct sp_analysis *a = page->analysis;

	if (page->options->csv) {
		sp_export_csv_sizes_estimated(page->out, a);
		return;
	}
	sp_view_summary_print_header(page->out, a);
	sp_view_summary_print_view(page->out, a, &a->how, 0);
	sp_view_sizes_print_estimated(page->out, a, page->options->ascii);
	sp_view_notes_print(page->out, a, NULL);
	print_next(page, "");
}

/* Exact of all that was allocated, of anything else estimated. */
static int print_sizes(const struct page *page, struct sp_error *err)
{
	const struct sp_analysis *a = page->analysis;
	int r;

	if (a->selection.view != SP_VIEW_ALLOC ||
	    sp_selection_is_subset(&a->selection)) {
		print_sizes_estimated(page);
		return 0;
	}
	r = sp_view_sizes_check(a->profile, err);
	if (r < 0)
		return r;
	if (page->options->csv) {
		sp_export_csv_sizes(page->out, a->profile);
		return 0;
	}
	sp_view_summary_print_header(page->out, a);
	sp_view_sizes_print(page->out, a->profile, page->options->ascii);
	sp_view_notes_print(page->out, a, NULL);
	print_next(page, "");
	return 0;
}

int sp_page_print(FILE *out, const struct sp_profile *profile,
		  const struct sp_options *options, sp_progress_fn *progress,
		  void *progress_arg, struct sp_error *err)
{
	const bool has_rows = !options->timeline && !options->sizes;
	enum sp_view fallback = has_rows ? sp_options_fallback(options, profile)
					 : SP_VIEW_ALLOC;
	struct sp_analysis *analysis;
	struct page page = {.out = out,
			    .options = options,
			    .progress = progress,
			    .progress_arg = progress_arg};
	int r = options->timeline
			? sp_question_needs_frees(profile, "--timeline", err)
			: 0;

	if (r < 0)
		return r;
	r = sp_analysis_new(profile, &options->question, fallback, &analysis,
			    err);
	if (r < 0)
		return r;
	page.analysis = analysis;
	if (options->timeline)
		r = print_timeline(&page, err);
	else if (options->sizes)
		r = print_sizes(&page, err);
	else
		r = print_functions(&page, err);
	sp_analysis_free(analysis);
	return r;
}
