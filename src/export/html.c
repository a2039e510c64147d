/* SPDX-License-Identifier: MIT */
/*
 * The data of the page.  Its scripts select samples and compute intervals for
 * any selection.  So they get samples (html_cells), call stacks (html_paths),
 * and the sums of all samples for the exact totals (E17).  Figures that do not
 * depend on a selection are computed here.
 */
#include "base/order.h"
#include "export/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/html_asset.h"
#include "export/html_cells.h"
#include "export/html_columns.h"
#include "export/html_ledgers.h"
#include "export/html_paths.h"
#include "report/ledgers.h"
#include "report/phases.h"
#include "stats/adjust.h"
#include "stats/special.h"
#include "stats/timeline.h"
#include "text/json.h"
#include "text/lack.h"
#include "text/text.h"
#include "view/view.h"

struct place {
	uint32_t function;
	uint32_t file; /* number of a string */
	uint32_t line;
};

/* Everything that is written, computed before the first byte is. */
struct document {
	const struct sp_aggregate *aggregate;
	const struct sp_analysis *analysis;
	const struct sp_profile *profile;
	struct sp_selection births;
	struct sp_html_paths paths;
	struct sp_html_cells cells;
	struct sp_timeline_point *timeline; /* a point for each edge */
	struct place *places;
	size_t n_places;
	uint64_t tail_ns; /* of leaks */
	char *state;
	size_t n_folded; /* call paths that became one */
	double folded_bytes;
};

/* ---- what there is to say ---- */

/* The report's default tail of a leak. */
static int choose_tail(struct document *d, struct sp_error *err)
{
	struct sp_question question;
	struct sp_selection leaks;
	int r;

	if (!d->profile->has_frees)
		return 0;
	sp_question_init(&question);
	r = sp_question_select(&question, d->profile, SP_VIEW_LEAKS, &leaks,
			       err);
	d->tail_ns = leaks.tail_ns;
	return r;
}

/* A call path, and its size in the page. */
struct weight {
	uint32_t path;
	size_t n_cells;
	double bytes;
};

SP_ORDER(compare_weights, struct weight, SP_DOWN(bytes) || SP_UP(path));

/* Keep the largest paths that fit; the others are folded. */
static void choose_paths(struct document *d, struct weight *weights, bool *keep)
{
	const struct sp_profile *p = d->profile;
	size_t n_cells = 0, n_frames = 0;

	for (uint32_t i = 0; i < d->paths.n_paths; i++)
		weights[i].path = i;
	for (size_t i = 0; i < p->n_stacks; i++)
		if (d->aggregate->row_of_stack[i] != UINT32_MAX)
			weights[d->paths.of_stack[i]].bytes +=
				sp_adjusted(&d->analysis->how,
					    &d->analysis->alloc->stacks[i])
					.est_bytes;
	for (size_t i = 0; i < d->cells.n_cells; i++)
		weights[d->cells.cells[i].stack].n_cells++;
	qsort(weights, d->paths.n_paths, sizeof(*weights), compare_weights);
	for (size_t i = 0; i < d->paths.n_paths; i++) {
		const struct weight *w = &weights[i];

		n_cells += w->n_cells;
		n_frames += d->paths.paths[w->path].n_frames;
		keep[w->path] = n_cells <= SP_HTML_CELLS_MAX &&
				n_frames <= SP_EXPORT_HTML_FRAMES_MAX;
		d->n_folded += !keep[w->path];
		d->folded_bytes += keep[w->path] ? 0 : w->bytes;
	}
}

static int fold_document(struct document *d)
{
	const size_t n = d->paths.n_paths;
	struct weight *weights = calloc(n + 1, sizeof(*weights));
	bool *keep = calloc(n + 1, sizeof(*keep));
	uint32_t *place = calloc(n + 1, sizeof(*place));
	int r = weights && keep && place ? 0 : -ENOMEM;

	if (!r) {
		choose_paths(d, weights, keep);
		if (d->n_folded)
			r = sp_html_paths_fold(&d->paths, keep, place);
		if (d->n_folded && !r)
			sp_html_cells_renumber(&d->cells, place);
	}
	free(weights);
	free(keep);
	free(place);
	return r;
}

/* How complete the file is, as the text says it. */
static int take_state(struct document *d)
{
	size_t size;
	FILE *out = open_memstream(&d->state, &size);

	if (!out)
		return -ENOMEM;
	sp_view_notes_print_completeness(out, d->profile);
	return fclose(out) ? -ENOMEM : 0;
}

/* Where each function of the aggregate is in its source. */
static int find_places(struct document *d)
{
	const struct sp_aggregate *g = d->aggregate;

	d->places = calloc(g->n_functions + 1, sizeof(*d->places));
	if (!d->places)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_functions; i++) {
		const struct sp_aggregate_function *f = &g->functions[i];
		struct place *place = &d->places[d->n_places];

		if (!f->file)
			continue;
		place->line = f->line;
		if (sp_html_paths_function(&d->paths, f->name, f->module,
					   &place->function) < 0 ||
		    sp_intern_add(&d->paths.strings, f->file, strlen(f->file),
				  &place->file) < 0)
			return -ENOMEM;
		d->n_places++;
	}
	return 0;
}

static int prepare_document(struct document *d, struct sp_error *err)
{
	const struct sp_analysis *a = d->analysis;
	int r = choose_tail(d, err);

	if (r >= 0)
		r = sp_html_paths_init(&d->paths, d->aggregate, &d->births,
				       err);
	if (r >= 0)
		r = sp_html_cells_init(&d->cells, a, d->paths.of_stack,
				       d->tail_ns, SP_HTML_CELLS_MAX, err);
	if (r < 0)
		return r;
	d->timeline = calloc(SP_HTML_BINS_MAX + 1, sizeof(*d->timeline));
	if (fold_document(d) < 0 || take_state(d) < 0 || find_places(d) < 0 ||
	    !d->timeline)
		return sp_error_memory(err, d->profile->path);
	r = sp_timeline(d->profile, &a->selection, &a->how, d->timeline,
			SP_HTML_BINS_MAX + 1, err);
	/* Of coarser bins every other edge is left, or fewer. */
	for (unsigned int i = 0; i <= d->cells.n_bins; i++)
		d->timeline[i] =
			d->timeline[i * (SP_HTML_BINS_MAX / d->cells.n_bins)];
	return r;
}

/* ---- JSON ---- */

/* The question, except times, as command line options. */
static void put_chosen(struct sp_json *json, const struct sp_analysis *a)
{
	const struct sp_selection *s = &a->selection;

	sp_json_open(json, "chosen", '{');
	if (s->min_size_bytes > 1)
		sp_json_string(json, "at least",
			       sp_text_size(s->min_size_bytes).text);
	if (s->max_size_bytes != UINT64_MAX)
		sp_json_string(json, "at most",
			       sp_text_size(s->max_size_bytes).text);
	if (s->thread)
		sp_json_u64(json, "thread", s->thread);
	if (s->phase)
		sp_json_string(json, "phase", sp_phase_name(s->phase));
	for (unsigned int i = 0; a->filter && i < SP_FILTER_COUNT; i++) {
		const char *text = sp_filter_patterns_of(a->filter)->text[i];

		if (text && *text)
			sp_json_string(json,
				       sp_filter_name((enum sp_filter_kind)i),
				       text);
	}
	sp_json_close(json, '}');
}

static const char *main_module(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_modules; i++)
		if (p->modules[i].is_main)
			return p->modules[i].path;
	return "";
}

static void put_nameless(void *json, const struct sp_module *module,
			 const char *reason)
{
	(void)reason;
	sp_json_string(json, NULL, module->path);
}

static void put_run(struct sp_json *json, const struct document *d)
{
	const struct sp_profile *p = d->profile;
	const struct sp_selection *s = &d->analysis->selection;
	const struct sp_whole whole = sp_whole_of(p);

	sp_json_string(json, "file", p->path);
	sp_json_u64(json, "files", p->n_parts);
	sp_json_string(json, "main_module", main_module(p));
	sp_json_open(json, "nameless", '[');
	sp_symbolizer_problems(d->aggregate->symbolizer, put_nameless, json);
	sp_json_close(json, ']');
	sp_json_string(json, "program", p->program);
	sp_json_string(json, "command", p->command);
	sp_json_string(json, "host", p->host);
	sp_json_u64(json, "pid", p->pid);
	sp_json_double(json, "start_ms", (double)p->start_unix_ns / 1e6);
	sp_json_u64(json, "duration_ns", p->duration_ns);
	sp_json_string(json, "end", sp_lack_end_of(p).text);
	sp_json_u64(json, "threads", p->threads);
	sp_json_u64(json, "samples", sp_profile_samples(p));
	sp_json_u64(json, "period_bytes", p->period_bytes);
	sp_json_bool(json, "is_dotnet", p->law.is_dotnet);
	sp_json_bool(json, "has_frees", p->has_frees);
	sp_json_u64(json, "exact_bytes", p->exact_alloc_bytes);
	sp_json_u64(json, "exact_objects", p->exact_alloc_objects);
	sp_json_u64(json, "discarded_bytes", p->discarded_bytes);
	sp_json_u64(json, "window_ns", p->window_ns);
	sp_json_string(json, "when", sp_lack_when(p, SP_NEVER).text);
	sp_lack_json(json, &whole);
	sp_json_bool(json, "is_exact", sp_profile_is_exact(p));
	sp_json_bool(json, "is_subset", sp_selection_is_subset(s));
	sp_json_u64(json, "tail_ns", d->tail_ns);
	sp_view_notes_json(json, d->analysis, d->aggregate);
	sp_json_string(json, "state", d->state);
}

static void put_method(struct sp_json *json, const struct document *d)
{
	const struct sp_estimation *how = &d->analysis->how;
	const double half = (1 - how->confidence) / 2;

	sp_json_string(json, "method", sp_method_name(how->method));
	sp_json_double(json, "confidence", how->confidence);
	/* The normal distribution's quantiles at both limits. */
	sp_json_double(json, "normal_lo", sp_special_normal_quantile(half));
	sp_json_double(json, "normal_hi", sp_special_normal_quantile(1 - half));
}

static struct sp_text_cell peak_moment(const struct document *d)
{
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "at %.60s",
		 sp_text_moment_within(d->analysis->peak.rows_ns,
				       d->profile->time_error_ns)
			 .text);
	return cell;
}

/* The head of the report. */
static void put_estimates(struct sp_json *json, const struct document *d)
{
	const struct sp_analysis *a = d->analysis;
	const struct sp_estimation how = sp_analysis_total_how(a);
	const struct sp_class_sums *alloc = &a->alloc->all;
	const struct sp_whole whole = sp_whole_of(d->profile);

	sp_json_interval(json, "alloc_bytes", sp_estimate_bytes(&how, alloc));
	sp_json_u64(json, "alloc_samples", alloc->all.samples);
	if (!a->live) {
		sp_json_null(json, "live_bytes");
		sp_json_null(json, "peak_bytes");
		return;
	}
	sp_json_interval(json, "live_bytes",
			 sp_estimate_bytes(&a->how, &a->live->all));
	sp_json_u64(json, "live_samples", a->live->all.all.samples);
	sp_json_interval(json, "peak_bytes", a->peak.bytes);
	sp_json_bool(json, "peak_is_least", sp_whole_peak_is_least(&whole));
	sp_json_u64(json, "peak_samples", a->peak.samples);
	sp_json_u64(json, "peak_ns", a->peak.time_ns);
	sp_json_string(json, "peak_when",
		       a->peak.rows_ns == SP_NEVER
			       ? sp_lack_when(d->profile, SP_NEVER).text
			       : peak_moment(d).text);
	sp_json_bool(json, "peak_is_measured", a->peak.rows_ns != SP_NEVER);
}

/* An accumulator, in the order that estimate.js reads it in. */
static void put_acc(struct sp_json *json, const struct sp_acc *acc)
{
	sp_json_u64(json, NULL, acc->samples);
	sp_json_u64(json, NULL, acc->size_bytes);
	sp_json_u64(json, NULL, acc->sure_samples);
	sp_json_double(json, NULL, acc->est_bytes);
	sp_json_double(json, NULL, acc->k2);
	sp_json_double(json, NULL, acc->k3);
	sp_json_double(json, NULL, acc->kz);
	sp_json_double(json, NULL, acc->est_count);
	sp_json_double(json, NULL, acc->c2);
	sp_json_double(json, NULL, acc->c3);
	sp_json_u64(json, NULL, acc->period_bytes);
}

static void put_gain(struct sp_json *json, const struct sp_gain *gain)
{
	sp_json_double(json, NULL, gain->by_k2);
	sp_json_double(json, NULL, gain->k2);
	sp_json_double(json, NULL, gain->k3);
}

static void put_population(struct sp_json *json, const struct document *d)
{
	const struct sp_population *p = &d->analysis->population;

	sp_json_open(json, "population", '{');
	sp_json_bool(json, "has_totals", p->has_totals);
	sp_json_u64(json, "period_bytes", p->all.all.period_bytes);
	sp_json_u64(json, "slack_bytes", p->slack_bytes);
	sp_json_double(json, "most_bytes", p->most_bytes);
	sp_json_double(json, "most_objects", p->most_objects);
	sp_json_double(json, "gap_bytes", p->gap_bytes);
	sp_json_double(json, "gap_objects", p->gap_objects);
	/* Class, accumulator, gains of bytes and objects (E46). */
	sp_json_open(json, "samples", '[');
	for (uint32_t i = 0; i < p->all.n_classes; i++) {
		sp_json_open_flat(json, NULL, '[');
		sp_json_u64(json, NULL, p->all.classes[i].class);
		put_acc(json, &p->all.classes[i].acc);
		put_gain(json, &p->bytes_gain[p->all.classes[i].class]);
		put_gain(json, &p->objects_gain[p->all.classes[i].class]);
		sp_json_close(json, ']');
	}
	sp_json_close(json, ']');
	/* Bytes, objects, stratum, largest size of each class. */
	sp_json_open(json, "classes", '[');
	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++) {
		sp_json_open_flat(json, NULL, '[');
		sp_json_u64(json, NULL, p->low[i].bytes);
		sp_json_u64(json, NULL, p->low[i].objects);
		sp_json_u64(json, NULL, p->stratum[i]);
		sp_json_double(json, NULL, (double)sp_format_class_max(i));
		sp_json_close(json, ']');
	}
	sp_json_close(json, ']');
	sp_json_bool(json, "has_classes", d->profile->has_classes);
	sp_json_close(json, '}');
}

static void put_timeline(struct sp_json *json, const struct document *d)
{
	sp_json_open(json, "timeline", '[');
	for (unsigned int i = 0; i <= d->cells.n_bins; i++) {
		const struct sp_timeline_point *t = &d->timeline[i];
		uint64_t rss = 0;

		/* Time, samples, bytes (value, lo, hi), objects, RSS. */
		sp_json_open_flat(json, NULL, '[');
		sp_json_u64(json, NULL, t->time_ns);
		sp_json_u64(json, NULL, t->samples);
		sp_json_double(json, NULL, t->live_bytes.value);
		sp_json_double(json, NULL, t->live_bytes.lo);
		sp_json_double(json, NULL, t->live_bytes.hi);
		sp_json_double(json, NULL, t->live_objects.value);
		sp_json_double(json, NULL, t->live_objects.lo);
		sp_json_double(json, NULL, t->live_objects.hi);
		if (sp_analysis_rss_at(d->profile, t->time_ns, &rss))
			sp_json_u64(json, NULL, rss);
		else
			sp_json_null(json, NULL);
		sp_json_close(json, ']');
	}
	sp_json_close(json, ']');
}

/* Names, and by function the numbers of its name and its module. */
static void put_functions(struct sp_json *json, const struct document *d)
{
	const struct sp_html_paths *paths = &d->paths;

	sp_json_open(json, "strings", '[');
	for (uint32_t i = 0; i < paths->strings.n_entries; i++)
		sp_json_string(json, NULL, sp_intern_bytes(&paths->strings, i));
	sp_json_close(json, ']');
	sp_json_open_flat(json, "functions", '[');
	for (uint32_t i = 0; i < paths->functions.n_entries; i++) {
		const struct sp_html_function f = sp_html_paths_at(paths, i);

		sp_json_u64(json, NULL, f.name);
		sp_json_u64(json, NULL, f.module);
	}
	sp_json_close(json, ']');
	sp_json_open_flat(json, "unnamed", '[');
	for (uint32_t i = 0; i < paths->unnamed.n_entries; i++) {
		const uint32_t function =
			*SP_INTERN_AT(&paths->unnamed, i, uint32_t);

		sp_json_u64(json, NULL, function);
	}
	sp_json_close(json, ']');
}

static void put_places(struct sp_json *json, const struct document *d)
{
	sp_json_open_flat(json, "places", '[');
	for (size_t i = 0; i < d->n_places; i++) {
		sp_json_u64(json, NULL, d->places[i].function);
		sp_json_u64(json, NULL, d->places[i].file);
		sp_json_u64(json, NULL, d->places[i].line);
	}
	sp_json_close(json, ']');
}

static void put_settings(struct sp_json *json, const struct sp_profile *p)
{
	sp_json_open(json, "settings", '[');
	for (size_t i = 0; i < p->n_infos; i++) {
		if (sp_ledger_is_one(&p->infos[i]))
			continue;
		sp_json_open_flat(json, NULL, '[');
		sp_json_string(json, NULL, p->infos[i].key);
		sp_json_string(json, NULL, p->infos[i].value);
		sp_json_close(json, ']');
	}
	sp_json_close(json, ']');
}

static int put_columns(struct sp_json *json, const struct document *d)
{
	sp_json_u64(json, "bins", d->cells.n_bins);
	sp_json_u64(json, "n_paths", d->paths.n_paths);
	sp_json_u64(json, "n_kinds", d->cells.n_kinds);
	sp_json_u64(json, "n_cells", d->cells.n_cells);
	sp_json_u64(json, "folded_paths", d->n_folded);
	sp_json_double(json, "folded_bytes", d->folded_bytes);
	sp_json_open_flat(json, "periods", '[');
	for (size_t i = 0; i < d->cells.n_periods; i++)
		sp_json_u64(json, NULL, d->cells.periods[i]);
	sp_json_close(json, ']');
	if (sp_html_columns_paths(json, &d->paths) < 0 ||
	    sp_html_columns_kinds(json, &d->cells) < 0)
		return -ENOMEM;
	return sp_html_columns_cells(json, &d->cells, d->paths.n_paths);
}

static int put_side(struct sp_json *json, const struct document *d)
{
	put_run(json, d);
	put_method(json, d);
	put_estimates(json, d);
	put_chosen(json, d->analysis);
	put_population(json, d);
	put_timeline(json, d);
	sp_html_ledgers_put(json, d->profile);
	put_settings(json, d->profile);
	put_functions(json, d);
	put_places(json, d);
	return put_columns(json, d);
}

/* The profile, and as "base" the one it is compared with. */
static int put_document(struct sp_json *json, const struct document *d,
			const struct document *base)
{
	int r;

	sp_json_open(json, NULL, '{');
	sp_json_string(json, "generator", "sampleprof-report " SP_VERSION);
	r = put_side(json, d);
	if (base) {
		sp_json_open(json, "base", '{');
		if (put_side(json, base) < 0)
			r = -ENOMEM;
		sp_json_close(json, '}');
	}
	sp_json_close(json, '}');
	return r;
}

static int document_init(struct document *d,
			 const struct sp_aggregate *aggregate,
			 struct sp_error *err)
{
	int r;

	*d = (struct document){
		.aggregate = aggregate,
		.analysis = aggregate->analysis,
		.profile = aggregate->analysis->profile,
	};
	r = sp_selection_births(&d->analysis->selection, d->profile, "the page",
				&d->births, err);
	return r < 0 ? r : prepare_document(d, err);
}

static void document_done(struct document *d)
{
	sp_html_paths_done(&d->paths);
	sp_html_cells_done(&d->cells);
	free(d->timeline);
	free(d->places);
	free(d->state);
}

int sp_export_html_write(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err)
{
	struct document d = {0}, base = {0};
	struct sp_json json = {.out = out, .is_first = true};
	int r = document_init(&d, aggregate, err);

	if (r >= 0 && options->base)
		r = document_init(&base, options->base, err);
	if (r >= 0) {
		fputs(sp_html_asset_head, out);
		if (put_document(&json, &d, options->base ? &base : NULL) < 0)
			r = sp_error_memory(err, d.profile->path);
		fputs(sp_html_asset_tail, out);
	}
	document_done(&base);
	document_done(&d);
	return r < 0 ? r : 0;
}
