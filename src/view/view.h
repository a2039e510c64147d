/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/aggregate.h"
#include "report/analysis.h"
#include "report/edges.h"
#include "report/listing.h"
#include "report/phases.h"
#include "report/stats.h"
#include "text/json.h"
#include "text/text.h"

/* The pages of the report, for people and for programs.  Write errors stay in
 * the stream. */

/* The text above and below the tables of the text report. */

/* The program, the exact total, live bytes, the peak, and RSS if live bytes are
 * shown: each once. */
void sp_view_summary_print_header(FILE *out,
				  const struct sp_analysis *analysis);

/* The name of the view below, and its total unless a line above has it. */
void sp_view_summary_print_view(FILE *out, const struct sp_analysis *analysis);

/* The patterns in force, and the rest of the view that they leave; nothing
 * without a filter. */
void sp_view_summary_print_filter(FILE *out,
				  const struct sp_analysis *analysis);

/* Below the tables: the meaning of the limits, the method, and its data. */
void sp_view_summary_print_method(FILE *out, const struct sp_analysis *analysis,
				  const struct sp_estimation *how);

/* The notes below the tables of the text report. */

/*
 * What limits the figures: no samples, exact totals that could not be used,
 * losses, damage, missing symbols.  `aggregate` is NULL if nothing was
 * symbolized.
 */
void sp_view_notes_print(FILE *out, const struct sp_analysis *analysis,
			 const struct sp_aggregate *aggregate);

/* The same for programs: "notes", each without the mark before it, and
 * "remedies", the commands below them; null without memory. */
void sp_view_notes_json(struct sp_json *json,
			const struct sp_analysis *analysis,
			const struct sp_aggregate *aggregate);

/* How complete the file is. */
void sp_view_notes_print_completeness(FILE *out,
				      const struct sp_profile *profile);

/* How many of the first n_max (0: all) are printed: those before the first one
 * that is 0 in the column of the order. */
size_t sp_view_top_rows(const struct sp_aggregate *aggregate, size_t n_max);

/*
 * The table of the first n_max functions (0: all) in the present order of the
 * aggregate: bytes with their intervals, shares as in pprof, samples, and if
 * `has_bars` a bar for the column of the order.  In order of flat the table
 * ends before the first function without flat bytes.  If the table would be
 * wider than `columns` (0: no limit), some of its columns are left out.  An
 * estimate of few samples shows its interval first.  Nothing if there are no
 * samples. 0 or -ENOMEM and *err.
 */
int sp_view_top_print(FILE *out, const struct sp_aggregate *aggregate,
		      size_t n_max, unsigned int columns, bool has_bars,
		      struct sp_error *err);

/* The n_max (0: all) call stacks with most estimated bytes, innermost frame
 * first, with the lifetimes of their objects if frees were recorded.  Unless
 * `is_whole`, one line replaces functions of libraries that follow each other
 * (report/calls.h).  Nothing if there are no samples. 0 or -ENOMEM and *err. */
int sp_view_stacks_print(FILE *out, const struct sp_aggregate *aggregate,
			 size_t n_max, bool is_whole, struct sp_error *err);

/*
 * The call tree, callers above callees, of the places with at least `share` of
 * the view, in [0, 1].  An only callee has the indentation of its caller.
 * Nothing if there are no samples. 0 or -ENOMEM and *err.
 */
int sp_view_tree_print(FILE *out, const struct sp_aggregate *aggregate,
		       double share, struct sp_error *err);

/*
 * The indentation of each of n places, given in depth-first order with depths
 * from 0.  A place without siblings is indented as its caller.  The caller
 * frees the result (free()); NULL without memory.
 */
int *sp_view_tree_indents(const uint32_t *depths, size_t n);

/* The n functions with their callers above and their callees below.  Callers
 * and callees with less than `share` of the view, in [0, 1], are summed up. 0
 * or -ENOMEM and *err. */
int sp_view_peek_print(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, double share,
		       struct sp_error *err);

/*
 * The listings with the text of their lines and of the lines around them, if
 * the source files are found; source_path is for sp_sourcefile_new().
 */
void sp_view_list_print(FILE *out, const struct sp_aggregate *functions,
			const struct sp_listings *listings,
			const char *source_path);

/* By entry points; then the n_max (0: all) functions with most bytes and those
 * with most objects, flat.  Leaves the aggregate in the latter order. */
void sp_view_stats_print(FILE *out, struct sp_aggregate *aggregate,
			 const struct sp_stats *stats, size_t n_max);

/* The view's estimate for each thread, most bytes first, with the exact total
 * that it allocated. 0 or -ENOMEM and *err. */
int sp_view_threads_print(FILE *out, const struct sp_analysis *analysis,
			  struct sp_error *err);

/*
 * The phases that the program named, with their exact totals and the estimates
 * from samples; nothing if it named none.  At most `rows`; 0: all. 0; -ENOMEM
 * and *err.
 */
int sp_view_phases_print(FILE *out, const struct sp_analysis *analysis,
			 size_t rows, struct sp_error *err);

/* --by phase: the view's estimate for each phase. 0; -ENOMEM and *err. */
int sp_view_phases_print_view(FILE *out, const struct sp_analysis *analysis,
			      struct sp_error *err);
int sp_view_phases_csv(FILE *out, const struct sp_analysis *analysis,
		       struct sp_error *err);

/* Members "phases", "stretches" and "snapshots" of an open object. */
void sp_view_phases_json(struct sp_json *json,
			 const struct sp_analysis *analysis,
			 const struct sp_phases *phases);

/* One for each power of two: sizes up to 16 << row, the last without end. */
#define SP_VIEW_SIZES_ROWS 49

/* The row of a size class, and the name of a row: "64 B", "larger". */
size_t sp_view_sizes_row(unsigned int class);
struct sp_text_cell sp_view_sizes_row_name(size_t row);

/* -ENODATA and *err if the profile has no totals per size class, else 0. */
int sp_view_sizes_check(const struct sp_profile *profile, struct sp_error *err);

/*
 * Exact objects and bytes by object size, in steps of powers of two, with bars
 * for the bytes in Unicode or, if `ascii`, in ASCII; then percentiles.  The
 * profile has totals per size class.
 */
void sp_view_sizes_print(FILE *out, const struct sp_profile *profile,
			 bool ascii);

/*
 * The view's estimates in the same steps: bytes, samples, bars; then
 * percentiles of the bytes.
 */
void sp_view_sizes_print_estimated(FILE *out,
				   const struct sp_analysis *analysis,
				   bool ascii);

/* Points of the picture. */
#define SP_VIEW_TIMELINE_COLUMNS 64

/*
 * Live bytes over time with their limits, 80 columns wide: blocks of Unicode,
 * or ASCII if `ascii`; the peak is marked, and RSS if it was recorded.  The
 * profile must have frees. 0 or -ENOMEM and *err.
 */
int sp_view_timeline_print(FILE *out, const struct sp_analysis *analysis,
			   bool ascii, struct sp_error *err);

/* Tables as CSV (text/table.h). */

/* The head of the table of functions, and one row. */
void sp_view_csv_functions_head(FILE *out);
void sp_view_csv_function(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_aggregate_function *f);

/* The first n_max functions (0: all) in the present order. */
void sp_view_csv_functions(FILE *out, const struct sp_aggregate *aggregate,
			   size_t n_max);

/* Live bytes and objects over time, SP_VIEW_TIMELINE_POINTS rows.  The
 * profile has frees.  0, or -ENOMEM and *err with nothing written. */
int sp_view_csv_timeline(FILE *out, const struct sp_analysis *analysis,
			 struct sp_error *err);

/* The view's estimate for each size class with a sample. */
void sp_view_csv_sizes_estimated(FILE *out, const struct sp_analysis *analysis);

/* The exact totals of each size class that has any. */
void sp_view_csv_sizes(FILE *out, const struct sp_profile *profile);

/*
 * The output of the commands tree, peek, list, traces and stats for programs:
 * one JSON object that begins like that of sp_view_json_write(), or a table as
 * CSV.  docs/guide.md has the keys and columns.
 */

/* The places of sp_tree_new(), in its order, with their depths.  0 or -ENOMEM
 * and *err, with nothing written. */
int sp_view_data_tree(FILE *out, const struct sp_aggregate *aggregate,
		      double share, bool as_csv, struct sp_error *err);

/* The n functions with their callers and callees. */
void sp_view_data_peek(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, bool as_csv);

void sp_view_data_list(FILE *out, const struct sp_aggregate *functions,
		       const struct sp_listings *listings, bool as_csv);

/* The n_max (0: all) stacks with most bytes, in that version of the JSON.  0 or
 * -ENOMEM and *err, with nothing written. */
int sp_view_data_traces(FILE *out, const struct sp_aggregate *aggregate,
			size_t n_max, unsigned int version,
			struct sp_error *err);

/* The n_max (0: all) functions with most bytes and with most objects.  Leaves
 * the aggregate in the latter order. */
void sp_view_data_stats(FILE *out, struct sp_aggregate *aggregate,
			const struct sp_stats *stats, size_t n_max);

/* CSV: every thread, in the order of the file. */
void sp_view_data_threads(FILE *out, const struct sp_analysis *analysis);

/* Points of the timeline, ends included: every half percent of the run. */
#define SP_VIEW_TIMELINE_POINTS 201

/*
 * Everything in the profile as one JSON object, of a version up to
 * SP_VIEW_JSON_VERSION (view/view_json_frames.h); keys may be added.  Functions
 * are in the present order of the aggregate.  Figures that need frees are null
 * without them.
 *
 * Exact numbers are integers, estimates are numbers with a fraction or an
 * exponent.  The seed is a string, because most JSON readers lose the low bits
 * of a 64-bit number.  Strings: see sp_json_string().
 *
 * 0 or -ENOMEM and *err, with nothing written.
 */
int sp_view_json_write(FILE *out, const struct sp_aggregate *aggregate,
		       unsigned int version, struct sp_error *err);
