/* SPDX-License-Identifier: MIT */
#include "base/parse.h"
#include "text/lack.h"
#include "view/view_json_head.h"
#include "view/view.h"

#include <inttypes.h>

void sp_view_json_exact(struct sp_json *json, uint64_t bytes, uint64_t objects)
{
	sp_json_open_flat(json, "exact", '{');
	sp_json_u64(json, "alloc_bytes", bytes);
	sp_json_u64(json, "alloc_objects", objects);
	sp_json_close(json, '}');
}

/* The same for a process, and how complete its data are. */
#define PUT_EXACT(json, of)                                                    \
	put_exact(json, (of)->exact_alloc_bytes, (of)->exact_alloc_objects,    \
		  (of)->missing_bytes_max == UINT64_MAX,                       \
		  (of)->is_cut ? SP_NEVER : (of)->missing_bytes_max,           \
		  sp_profile_has_ended((of)->end) && !(of)->has_unseen &&      \
			  !(of)->is_cut)

static void put_exact(struct sp_json *json, uint64_t bytes, uint64_t objects,
		      bool lacks_totals, uint64_t missing_bytes_max,
		      bool is_seen)
{
	sp_json_open_flat(json, "exact", '{');
	if (lacks_totals && !bytes) {
		sp_json_null(json, "alloc_bytes");
		sp_json_null(json, "alloc_objects");
	} else {
		sp_json_u64(json, "alloc_bytes", bytes);
		sp_json_u64(json, "alloc_objects", objects);
	}
	sp_json_bool(json, "is_complete", is_seen && !missing_bytes_max);
	sp_json_time(json, "missing_bytes_max", missing_bytes_max);
	sp_json_close(json, '}');
}

void sp_view_json_bytes(struct sp_json *json, const char *key,
			const struct sp_estimation *how,
			const struct sp_class_sums *sums)
{
	sp_json_interval(json, key, sp_estimate_bytes(how, sums));
}

void sp_view_json_objects(struct sp_json *json, const char *key,
			  const struct sp_estimation *how,
			  const struct sp_class_sums *sums)
{
	sp_json_interval(json, key, sp_estimate_objects(how, sums));
}

/* Another moment that may be the peak, or null. */
static void put_other_peak(struct sp_json *json, const struct sp_peak *peak)
{
	if (peak->other_ns == SP_NEVER) {
		sp_json_null(json, "other");
		return;
	}
	sp_json_open_flat(json, "other", '{');
	sp_json_limits(json, peak->other_bytes);
	sp_json_u64(json, "time_ns", peak->other_ns);
	sp_json_close(json, '}');
}

static void put_peak(struct sp_json *json, const struct sp_peak *peak,
		     bool is_least)
{
	sp_json_open_flat(json, "peak_bytes", '{');
	sp_json_limits(json, peak->bytes);
	sp_json_bool(json, "at_least", is_least);
	sp_json_double(json, "time", (double)peak->time_ns / 1e9);
	sp_json_u64(json, "time_ns", peak->time_ns);
	sp_json_u64(json, "samples", peak->samples);
	sp_json_double(json, "uncorrected", peak->raw_bytes);
	put_other_peak(json, peak);
	sp_json_close(json, '}');
}

/* Null for figures that need frees. */
static void put_estimate(struct sp_json *json, const struct sp_analysis *a)
{
	const struct sp_estimation total_how = sp_analysis_total_how(a);
	const struct sp_whole whole = sp_whole_of(a->profile);

	sp_json_open(json, "estimate", '{');
	sp_view_json_bytes(json, "alloc_bytes", &total_how, &a->alloc->all);
	sp_view_json_objects(json, "alloc_objects", &total_how, &a->alloc->all);
	if (a->live) {
		sp_view_json_bytes(json, "live_bytes", &a->how, &a->live->all);
		sp_view_json_objects(json, "live_objects", &a->how,
				     &a->live->all);
		put_peak(json, &a->peak, sp_whole_peak_is_least(&whole));
	} else {
		sp_json_null(json, "live_bytes");
		sp_json_null(json, "live_objects");
		sp_json_null(json, "peak_bytes");
	}
	sp_view_json_bytes(json, "view_bytes", &a->how, &a->view->all);
	sp_view_json_objects(json, "view_objects", &a->how, &a->view->all);
	sp_json_close(json, '}');
}

static void put_part(struct sp_json *json, const struct sp_profile *p,
		     uint16_t i)
{
	const struct sp_part *part = &p->parts[i];

	sp_json_open(json, NULL, '{');
	sp_json_string(json, "file", part->path);
	sp_json_string(json, "program", part->program);
	sp_json_string(json, "command", part->command);
	sp_json_u64(json, "pid", part->pid);
	sp_json_u64(json, "start_ns", part->start_ns);
	sp_json_u64(json, "stop_ns", sp_part_stop_ns(p, i));
	sp_json_string(json, "end", sp_lack_end_name(part->end, part->is_cut));
	sp_json_bool(json, "cut", part->is_cut);
	sp_json_u64(json, "period_bytes", part->period_bytes);
	PUT_EXACT(json, part);
	sp_json_close(json, '}');
}

/* The files that were read, even if it is but one. */
static void put_parts(struct sp_json *json, const struct sp_profile *p)
{
	sp_json_open(json, "profiles", '[');
	for (size_t i = 0; i < p->n_parts; i++)
		put_part(json, p, (uint16_t)i);
	sp_json_close(json, ']');
}

static void put_labels(struct sp_json *json, const struct sp_profile *p)
{
	const char *key, *value;

	sp_json_open_flat(json, "labels", '{');
	for (size_t i = 0; (key = sp_profile_label(p, i, &value)); i++)
		sp_json_string(json, key, value);
	sp_json_close(json, '}');
}

/* Of a process that was running before; nothing of any other. */
static void put_attached(struct sp_json *json, const struct sp_profile *p)
{
	const char *age = sp_profile_info(p, "attached.age_ms");
	const char *before = sp_profile_info(p, "attached.before_bytes");
	uint64_t number;

	if (!age || !sp_parse_u64(age, &number))
		return;
	sp_json_u64(json, "attached_age_ms", number);
	if (before && sp_parse_u64(before, &number))
		sp_json_u64(json, "attached_before_bytes", number);
	else
		sp_json_null(json, "attached_before_bytes");
}

/* null: the file has no record of any. */
static void put_mapped(struct sp_json *json, const struct sp_profile *p)
{
	const struct sp_mapped *m = &p->mapped;

	if (!m->is_known) {
		sp_json_null(json, "mapped");
		return;
	}
	sp_json_open_flat(json, "mapped", '{');
	sp_json_u64(json, "bytes", m->bytes);
	sp_json_u64(json, "mappings", m->live);
	sp_json_u64(json, "reserved_bytes", m->reserved_bytes);
	sp_json_u64(json, "made_bytes", m->made_bytes);
	sp_json_u64(json, "made_mappings", m->made);
	if (p->n_parts == 1) {
		sp_json_u64(json, "peak_bytes", m->peak_bytes);
		sp_json_u64(json, "peak_ns", m->peak_ns);
	} else {
		sp_json_null(json, "peak_bytes");
		sp_json_null(json, "peak_ns");
	}
	sp_json_close(json, '}');
}

static void put_run(struct sp_json *json, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;
	const struct sp_whole whole = sp_whole_of(p);
	char seed[24];

	snprintf(seed, sizeof(seed), "%" PRIu64, p->seed);
	sp_json_u64(json, "format_version", p->format_version);
	sp_json_string(json, "file", p->path);
	sp_json_string(json, "program", p->program);
	sp_json_string(json, "command", p->command);
	sp_json_string(json, "host", p->host);
	put_labels(json, p);
	sp_json_string(json, "container", sp_profile_info(p, "container"));
	sp_json_double(json, "fraction", sp_profile_fraction(p));
	sp_json_u64(json, "pid", p->pid);
	sp_json_u64(json, "start_unix_ns", p->start_unix_ns);
	put_attached(json, p);
	sp_json_u64(json, "duration_ns", p->duration_ns);
	sp_json_u64(json, "time_error_ns", p->time_error_ns);
	sp_json_string(json, "end", sp_lack_end_name(p->end, p->is_cut));
	sp_json_u64(json, "period_bytes", p->period_bytes);
	sp_json_string(json, "law",
		       p->law.is_dotnet ? "dotnet" : "exponential");
	sp_json_string(json, "seed", seed);
	sp_json_u64(json, "check_in_bytes", p->check_in_bytes);
	sp_json_u64(json, "max_file_bytes", p->max_file_bytes);
	sp_json_u64(json, "samples", sp_profile_samples(p));
	sp_json_u64(json, "threads", p->threads);
	sp_json_bool(json, "has_frees", p->has_frees);
	sp_json_u64(json, "unmatched_frees", p->unmatched_frees);
	PUT_EXACT(json, p);
	sp_lack_json(json, &whole);
	sp_json_string(json, "unseen",
		       sp_lack_unseen_name(sp_profile_unseen(p)));
	sp_json_u64(json, "unsampled_bytes", p->unsampled_bytes);
	sp_json_u64(json, "unsampled_objects", p->unsampled_objects);
	sp_json_u64(json, "discarded_bytes", p->discarded_bytes);
	sp_json_u64(json, "discarded_objects", p->discarded_objects);
	sp_json_u64(json, "window_from_ns", p->window_ns);
	put_mapped(json, p);
	put_parts(json, p);
	put_estimate(json, a);
}

static void put_selection(struct sp_json *json, const struct sp_analysis *a)
{
	const struct sp_selection *s = &a->selection;
	const bool is_leaks = s->view == SP_VIEW_LEAKS;
	const bool is_temporary = s->view == SP_VIEW_TEMPORARY;
	const bool has_moment =
		is_leaks || s->view == SP_VIEW_LIVE || s->view == SP_VIEW_PEAK;

	sp_json_string(json, "view", sp_view_name_of(a->profile, s->view));
	if (a->profile->resident)
		sp_json_string(json, "metric", "resident");
	sp_json_open(json, "selection", '{');
	sp_json_u64(json, "from_ns", s->from_ns);
	sp_json_time(json, "to_ns", s->to_ns);
	sp_json_time(json, "at_ns", has_moment ? s->at_ns : SP_NEVER);
	sp_json_u64_if(json, "tail_ns", is_leaks, s->tail_ns);
	sp_json_time(json, "within_bytes",
		     is_temporary ? s->within_bytes : SP_NEVER);
	sp_json_time(json, "within_ns", is_temporary ? s->within_ns : SP_NEVER);
	sp_json_u64_if(json, "min_size_bytes", s->min_size_bytes > 1,
		       s->min_size_bytes);
	sp_json_u64_if(json, "max_size_bytes", s->max_size_bytes != UINT64_MAX,
		       s->max_size_bytes);
	sp_json_u64_if(json, "thread", s->thread != 0, s->thread);
	sp_json_string(json, "phase", s->phase);
	sp_json_close(json, '}');
}

void sp_view_json_filter(struct sp_json *json, const struct sp_filter *filter)
{
	const struct sp_filter_patterns *patterns;

	if (!filter) {
		sp_json_null(json, "filter");
		return;
	}
	patterns = sp_filter_patterns_of(filter);
	sp_json_open_flat(json, "filter", '{');
	for (int i = 0; i < SP_FILTER_COUNT; i++)
		sp_json_string(json, sp_filter_name((enum sp_filter_kind)i) + 2,
			       patterns->text[i]);
	sp_json_close(json, '}');
}

static void put_method(struct sp_json *json, const struct sp_aggregate *g)
{
	const struct sp_analysis *a = g->analysis;
	const struct sp_population *population = &a->population;
	const char *why = population->why_without;

	sp_json_string(json, "method", sp_method_name(a->how.method));
	sp_json_string(json, "method_assumes",
		       sp_method_assumes(a->how.method));
	sp_json_double(json, "confidence", a->how.confidence);
	/* Of functions, stacks and threads. */
	sp_json_double(json, "row_confidence", g->how.confidence);
	sp_json_string(json, "granularity",
		       sp_granularity_name(g->granularity));
	sp_json_bool(json, "has_class_totals", population->has_totals);
	sp_json_string(json, "why_no_class_totals",
		       population->has_totals ? NULL : why);
}

void sp_view_json_head(struct sp_json *json,
		       const struct sp_aggregate *aggregate)
{
	const struct sp_analysis *a = aggregate->analysis;

	put_run(json, a);
	put_selection(json, a);
	sp_view_json_filter(json, a->filter);
	put_method(json, aggregate);
	sp_view_notes_json(json, a, aggregate);
}
