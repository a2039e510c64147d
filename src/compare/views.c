/* SPDX-License-Identifier: MIT */
/* The pages of the report with --base: which tables each of them has. */
#include "compare/views.h"

#include <errno.h>
#include <stdlib.h>

#include "compare/amount.h"
#include "compare/baseline.h"
#include "compare/diff.h"
#include "compare/inputs.h"
#include "read/load.h"
#include "report/load.h"
#include "symbols/pattern.h"
#include "report/phases.h"
#include "view/view.h"

struct views {
	const struct sp_options *options;
	struct sp_inputs inputs;
	struct sp_diff *diff;
	uint32_t *as; /* --granularity module; NULL: functions */
	struct sp_error *err;
};

static int add_diff(const struct views *v, const struct sp_diff_plan *plan)
{
	return sp_diff_add(v->diff, &v->inputs.pair, plan) < 0
		       ? sp_error_memory(v->err, NULL)
		       : 0;
}

/* ---- functions, call paths, trees ---- */

static int add_functions(const struct views *v)
{
	const struct sp_options *o = v->options;
	const bool by_cum = o->order == SP_AGGREGATE_BY_CUM;
	const bool by_count = o->order == SP_AGGREGATE_BY_COUNT;
	const bool by_module = v->as != NULL;
	const struct sp_diff_plan plan = {
		.key = by_cum     ? "cum"
		       : by_count ? "objects"
				  : "functions",
		.what = by_module  ? by_cum     ? "module (cum)"
				     : by_count ? "module (objects, flat)"
						: "module (flat)"
			: by_cum   ? "function (cum)"
			: by_count ? "function (objects, flat)"
				   : "function (flat)",
		.noun = by_module ? "modules" : "functions",
		.rows = by_cum ? SP_DIFF_CUM : SP_DIFF_FLAT,
		.of = {.table = v->diff->view,
		       .is_count = by_count,
		       .is_whole = by_cum},
		.as = v->as,
		.share = o->share,
		.order = o->order == SP_AGGREGATE_BY_NAME ? SP_DIFF_BY_NAME
							  : SP_DIFF_BY_CHANGE,
		.shown = o->top,
	};

	return add_diff(v, &plan);
}

static int add_paths(const struct views *v)
{
	const struct sp_diff_plan plan = {
		.key = "paths",
		.what = "call path",
		.noun = "call paths",
		.rows = SP_DIFF_PATHS,
		.of = {.table = v->diff->view},
		.shown = v->options->stacks,
	};

	return add_diff(v, &plan);
}

/* Functions or call paths; programs get what people choose from. */
static int add_report(const struct views *v)
{
	struct views cum = *v;
	struct sp_options options = *v->options;
	int r = options.json || !options.has_stacks ? add_functions(v) : 0;

	options.order = SP_AGGREGATE_BY_CUM;
	cum.options = &options;
	if (!r && options.json)
		r = add_functions(&cum);
	if (!r && (options.json || options.has_stacks))
		r = add_paths(v);
	return r;
}

static int add_tree(const struct views *v)
{
	const struct sp_diff_plan plan = {
		.key = "tree",
		.what = "place, callers above callees",
		.noun = "places",
		.rows = SP_DIFF_TREE,
		.of = {.table = v->diff->view},
		.as = v->as,
		.share = v->options->share,
	};

	return add_diff(v, &plan);
}

/* Frames whose function, or module, matches; to be freed. */
static int find_wanted(const struct views *v, bool **ret)
{
	const struct sp_paths *paths = &v->inputs.paths;
	const size_t n = paths->frames.n_entries;
	bool *wants = calloc(n + 1, sizeof(*wants)), is_any = false;
	struct sp_pattern *pattern = NULL;
	int r = wants ? sp_pattern_new("REGEX", v->options->pattern, &pattern,
				       v->err)
		      : sp_error_memory(v->err, NULL);

	for (uint32_t i = 0; r >= 0 && i < n; i++) {
		const char *name = sp_paths_name(paths, i);
		size_t bytes;

		if (v->as && v->as[i] != i)
			continue; /* a function, not a module */
		r = sp_paths_matches(
			pattern, v->as ? name : sp_paths_function(name, &bytes),
			v->err);
		wants[i] = r > 0;
		is_any |= r > 0;
	}
	sp_pattern_free(pattern);
	if (r >= 0 && !is_any)
		r = sp_error_set(v->err, -ENOENT, NULL,
				 "no function of either side matches %.80s",
				 v->options->pattern);
	if (r < 0) {
		free(wants);
		return r;
	}
	*ret = wants;
	return 0;
}

static int add_peek(const struct views *v)
{
	struct sp_diff_plan plan = {
		.key = "peek",
		.what = "callers above the line with the star, callees below",
		.noun = "rows",
		.rows = SP_DIFF_EDGES,
		.of = {.table = v->diff->view, .is_whole = true},
		.as = v->as,
		.share = v->options->share,
	};
	bool *wants;
	int r = find_wanted(v, &wants);

	if (r < 0)
		return r;
	plan.wants = wants;
	r = add_diff(v, &plan);
	free(wants);
	return r;
}

/* ---- sizes, entries, threads, phases ---- */

static const char *size_name(size_t i)
{
	static struct sp_text_cell cell;

	if (i == SP_VIEW_SIZES_ROWS)
		return NULL;
	cell = sp_view_sizes_row_name(i);
	return cell.text;
}

static int add_table(const struct views *v, unsigned int table, const char *key,
		     const char *what, const char *noun)
{
	const bool is_size = table == SP_SUMMARY_BY_SIZE;
	const struct sp_diff_plan plan = {
		.key = key,
		.what = what,
		.noun = noun,
		.rows = SP_DIFF_FLAT,
		.of = {.table = table},
		.order = is_size ? SP_DIFF_AS_LISTED : SP_DIFF_BY_CHANGE,
		.name = size_name,
	};

	return add_diff(v, &plan);
}

/* What the run has of the sizes of one row. */
static struct sp_runs size_sum(const struct sp_summary *run, size_t row)
{
	struct sp_runs runs;
	double sum = 0;

	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++)
		if (sp_view_sizes_row(i) == row)
			sum += (double)run->classes[i].bytes;
	sp_runs_exact(&runs, &sum, 1);
	return runs;
}

static int add_exact_sizes(const struct views *v)
{
	const struct sp_pair *pair = &v->inputs.pair;
	struct sp_diff_table *table =
		sp_diff_add_exact(v->diff, "sizes", "size up to (EXACT)", true,
				  SP_VIEW_SIZES_ROWS);
	size_t n = 0;

	if (!table)
		return sp_error_memory(v->err, NULL);
	table->n = 0;
	for (size_t row = 0; row < SP_VIEW_SIZES_ROWS; row++) {
		const struct sp_runs old = size_sum(pair->old.run[0], row);
		const struct sp_runs new = size_sum(pair->new.run[0], row);

		if (!(old.mean + new.mean > 0))
			continue;
		if (sp_diff_row_set(v->diff, &table->rows[n],
				    sp_view_sizes_row_name(row).text, &old,
				    &new) < 0)
			return sp_error_memory(v->err, NULL);
		table->n = ++n;
	}
	return 0;
}

/* Exact of all that was allocated, else estimated. */
static int add_sizes(const struct views *v)
{
	const struct sp_pair *pair = &v->inputs.pair;
	const bool has_exact =
		pair->old.run[0]->classes && pair->new.run[0]->classes &&
		v->diff->view == SP_VIEW_ALLOC &&sp_question_is_whole(
					 &v->options->question);

	if (has_exact && v->options->rows != SP_ROWS_BY_SIZE)
		return add_exact_sizes(v);
	return add_table(v, SP_SUMMARY_BY_SIZE, "sizes", "size up to", "sizes");
}

/* Number i of the phases of both runs, each name once; NULL behind the last. */
static const char *phase_name(const struct sp_pair *pair, size_t i)
{
	const struct sp_summary *old = pair->old.run[0];
	const struct sp_summary *new = pair->new.run[0];

	if (i < old->n_phases)
		return old->phases[i].name;
	i -= old->n_phases;
	for (size_t k = 0; k < new->n_phases; k++)
		if (!sp_summary_phase(old, new->phases[k].name) && !i--)
			return new->phases[k].name;
	return NULL;
}

static int add_phases_of(const struct views *v, bool is_bytes)
{
	const enum sp_limit_kind kind =
		is_bytes ? SP_LIMIT_ALLOC_BYTES : SP_LIMIT_ALLOC_OBJECTS;
	const struct sp_pair *pair = &v->inputs.pair;
	struct sp_diff_table *table = sp_diff_add_exact(
		v->diff, is_bytes ? "phases" : "phases_objects",
		is_bytes ? "phase (EXACT bytes)" : "phase (EXACT objects)",
		is_bytes,
		pair->old.run[0]->n_phases + pair->new.run[0]->n_phases);
	const char *name;

	if (!table)
		return sp_error_memory(v->err, NULL);
	table->n = 0;
	for (size_t i = 0; (name = phase_name(pair, i)); i++) {
		struct sp_runs old, new;

		if (sp_amount_sum(&pair->old, pair->paths, kind, name, NULL,
				  &old) < 0 ||
		    sp_amount_sum(&pair->new, pair->paths, kind, name, NULL,
				  &new) < 0 ||
		    sp_diff_row_set(v->diff, &table->rows[i], name, &old,
				    &new) < 0)
			return sp_error_memory(v->err, NULL);
		table->n = i + 1;
	}
	return 0;
}

static int add_phases(const struct views *v)
{
	int r;

	if (!phase_name(&v->inputs.pair, 0))
		return sp_error_set(v->err, -ENODATA, NULL,
				    "neither side has phases: the program "
				    "marked none (sampleprof_mark, sampleprof "
				    "ctl mark)");
	r = add_phases_of(v, true);
	return r ? r : add_phases_of(v, false);
}

static int add_stats(const struct views *v)
{
	struct sp_options options = *v->options;
	struct views of = *v;
	int r = add_sizes(v);

	of.options = &options;
	if (!r)
		r = add_table(v, SP_SUMMARY_BY_ENTRY, "entries", "called",
			      "entries");
	options.share = 0;
	if (!r)
		r = add_functions(&of);
	options.order = SP_AGGREGATE_BY_COUNT;
	return r ? r : add_functions(&of);
}

/* ---- pages ---- */

static bool wants_tables(const struct sp_options *o)
{
	return o->page == SP_PAGE_STATS || o->sizes ||
	       o->rows == SP_ROWS_BY_SIZE || o->rows == SP_ROWS_BY_THREAD;
}

static int add_all(const struct views *v)
{
	static int (*const pages[])(const struct views *v) = {
		[SP_PAGE_REPORT] = add_report, [SP_PAGE_TOP] = add_report,
		[SP_PAGE_TREE] = add_tree,     [SP_PAGE_PEEK] = add_peek,
		[SP_PAGE_TRACES] = add_paths,  [SP_PAGE_STATS] = add_stats,
	};
	const struct sp_options *o = v->options;

	if (o->sizes || o->rows == SP_ROWS_BY_SIZE)
		return add_sizes(v);
	if (o->rows == SP_ROWS_BY_THREAD)
		return add_table(v, SP_SUMMARY_BY_THREAD, "threads", "thread",
				 "threads");
	if (o->rows == SP_ROWS_BY_PHASE)
		return add_phases(v);
	return pages[o->page](v);
}

static int load_old(struct views *v)
{
	const struct sp_options *o = v->options;
	struct sp_profile *profile;
	int r;

	if (o->n_base == 1 && sp_inputs_is_baseline(o->base[0]))
		return sp_inputs_load(&v->inputs, false, o->base, 1, v->err);
	r = sp_profile_load_many(o->base, o->n_base, NULL, NULL, &profile,
				 v->err);
	if (r < 0)
		return r;
	r = sp_load_weigh(o->base, o->n_base, &o->question, profile, v->err);
	if (r >= 0)
		r = sp_inputs_take(&v->inputs, false, profile, v->err);
	if (r < 0)
		v->err->file = o->base[0]; /* not the profile's, which goes */
	sp_profile_free(profile);
	return r;
}

/* The new side first: it says which view there is to be. */
static int load_views(struct views *v, enum sp_view *ret_view)
{
	const struct sp_options *o = v->options;
	const bool whole = sp_question_is_whole(&o->question);
	struct sp_profile *profile;
	int r = sp_profile_load_many(o->files, o->n_files, NULL, NULL, &profile,
				     v->err);

	if (r < 0)
		return r;
	*ret_view = o->question.has_view ? o->question.view
					 : sp_options_fallback(o, profile);
	v->inputs.wish = (struct sp_summary_wish){
		.views = 1u << *ret_view |
			 (whole && o->page == SP_PAGE_REPORT ? SP_BASELINE_VIEWS
							     : 0),
		.tables = wants_tables(o),
		.tables_of = *ret_view};
	r = sp_load_weigh(o->files, o->n_files, &o->question, profile, v->err);
	if (r >= 0)
		r = sp_inputs_take(&v->inputs, true, profile, v->err);
	if (r < 0)
		v->err->file = o->files[0];
	sp_profile_free(profile);
	return r < 0 ? r : load_old(v);
}

static int make_views(struct views *v)
{
	const struct sp_options *o = v->options;
	enum sp_view view;
	int r = load_views(v, &view);

	if (r >= 0)
		r = sp_inputs_see_through(&v->inputs, v->err);
	if (r >= 0)
		r = sp_inputs_need(&v->inputs, view, v->err);
	if (r >= 0)
		r = sp_diff_new(&v->inputs.pair, view, o->question.confidence,
				sp_question_is_whole(&o->question), &v->diff,
				v->err);
	if (r >= 0 && v->inputs.n_old == 1 && o->n_base != o->n_files)
		sp_caveats_note(&v->diff->caveats,
				"%zu files against %zu: the sums of each "
				"are compared, not the means",
				o->n_base, o->n_files);
	/* once all functions have the names that they are compared by */
	if (r >= 0 && o->granularity == SP_BY_MODULE &&
	    sp_keys_modules(&v->inputs.paths, &v->as) < 0)
		r = sp_error_memory(v->err, NULL);
	return r < 0 ? r : add_all(v);
}

int sp_views_print(FILE *out, const struct sp_options *o, struct sp_error *err)
{
	struct views v = {
		.options = o,
		.inputs = {.question = &o->question, .symbols = &o->symbols},
		.err = err};
	int r;

	sp_text_set_unit(o->unit);
	sp_text_set_ascii(o->ascii && !o->json && !o->csv);
	r = make_views(&v);
	if (r >= 0 && o->json)
		sp_diff_json_write(out, v.diff);
	else if (r >= 0 && o->csv)
		sp_diff_csv_write(out, v.diff);
	else if (r >= 0)
		sp_diff_text_write(out, v.diff);
	sp_diff_free(v.diff);
	free(v.as);
	sp_inputs_done(&v.inputs);
	return r < 0 ? r : 0;
}
