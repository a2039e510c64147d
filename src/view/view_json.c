/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "report/function_json.h"
#include "report/ledgers.h"
#include "stats/timeline.h"
#include "text/json.h"
#include "view/view_json_frames.h"
#include "view/view_json_head.h"

/* Everything that is written, computed before the first byte is. */
struct document {
	const struct sp_aggregate *aggregate;
	const struct sp_info **infos;
	struct sp_json_frames *frames;
	/* With frees only: */
	struct sp_lifetime *functions;
	struct sp_lifetime *stacks;
	struct sp_timeline_point *timeline;
	struct sp_phases *phases;
};

static void put_health(struct sp_json *json, const struct sp_profile *p)
{
	sp_json_open(json, "losses", '{');
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		sp_json_u64(json, sp_loss_name(i), p->losses[i]);
	sp_json_close(json, '}');
	sp_json_open(json, "damage", '{');
	sp_json_u64(json, "records", p->damaged_records);
	sp_json_u64(json, "ignored_bytes", p->ignored_bytes);
	sp_json_string(json, "text", p->damage);
	sp_json_close(json, '}');
	sp_json_u64(json, "unfinished_records", p->unfinished_records);
}

static int compare_infos(const void *a, const void *b)
{
	const struct sp_info *ia = *(const struct sp_info *const *)a;
	const struct sp_info *ib = *(const struct sp_info *const *)b;
	int c = strcmp(ia->key, ib->key);

	return c ? c : (ia > ib) - (ia < ib);
}

/* By key, the first of several with one key: a JSON object has no doubles. */
static const struct sp_info **sort_infos(const struct sp_profile *p)
{
	const struct sp_info **infos = calloc(p->n_infos + 1, sizeof(*infos));

	if (!infos)
		return NULL;
	for (size_t i = 0; i < p->n_infos; i++)
		infos[i] = &p->infos[i];
	qsort(infos, p->n_infos, sizeof(*infos), compare_infos);
	return infos;
}

static void put_settings(struct sp_json *json, const struct sp_info **infos,
			 size_t n_infos)
{
	sp_json_open(json, "settings", '{');
	for (size_t i = 0; i < n_infos; i++)
		if (!sp_ledger_is_one(infos[i]) &&
		    (!i || strcmp(infos[i]->key, infos[i - 1]->key)))
			sp_json_string(json, infos[i]->key, infos[i]->value);
	sp_json_close(json, '}');
}

static void put_problem(void *arg, const struct sp_module *module,
			const char *reason)
{
	struct sp_json *json = arg;

	sp_json_open_flat(json, NULL, '{');
	sp_json_string(json, "module", module->path);
	sp_json_string(json, "reason", reason);
	sp_json_close(json, '}');
}

/* Null if nothing is known about them. */
static void put_lifetime(struct sp_json *json,
			 const struct sp_lifetime *lifetime)
{
	if (!lifetime || !lifetime->samples) {
		sp_json_null(json, "lifetime");
		return;
	}
	sp_json_open_flat(json, "lifetime", '{');
	sp_json_u64(json, "samples", lifetime->samples);
	sp_json_u64(json, "alive", lifetime->alive);
	sp_json_time(json, "median_ns", lifetime->median_ns);
	sp_json_time(json, "p90_ns", lifetime->p90_ns);
	sp_json_double(json, "alive_share", lifetime->alive_share);
	sp_json_close(json, '}');
}

static void put_live(struct sp_json *json, const struct sp_estimation *how,
		     const struct sp_class_sums *live)
{
	if (live) {
		sp_view_json_bytes(json, "live_bytes", how, live);
		sp_view_json_objects(json, "live_objects", how, live);
	} else {
		sp_json_null(json, "live_bytes");
		sp_json_null(json, "live_objects");
	}
}

static void put_share(struct sp_json *json, const char *key,
		      const struct sp_aggregate *g,
		      const struct sp_class_sums *sums)
{
	sp_json_interval(json, key,
			 sp_analysis_row_share(g->analysis, &g->how, sums));
}

static void put_function(struct sp_json *json, const struct document *d,
			 const struct sp_aggregate_function *f)
{
	const struct sp_aggregate *g = d->aggregate;

	sp_json_open(json, NULL, '{');
	sp_function_json(json, f);
	sp_view_json_bytes(json, "flat_bytes", &g->how, &f->flat);
	sp_view_json_bytes(json, "cum_bytes", &g->how, &f->cum);
	sp_view_json_objects(json, "flat_objects", &g->how, &f->flat);
	put_share(json, "flat_share", g, &f->flat);
	put_share(json, "cum_share", g, &f->cum);
	put_live(json, &g->how, g->analysis->live ? &f->live : NULL);
	put_lifetime(json, d->functions ? &d->functions[f->row] : NULL);
	sp_json_close(json, '}');
}

static void put_stack(struct sp_json *json, const struct document *d,
		      const struct sp_aggregate_stack *s)
{
	const struct sp_aggregate *g = d->aggregate;
	const struct sp_stack *stack = s->stack;

	sp_json_open(json, NULL, '{');
	sp_json_frames_of(json, d->frames, stack);
	sp_json_u64(json, "samples", s->sums->all.samples);
	sp_view_json_bytes(json, "flat_bytes", &g->how, s->sums);
	/* Nothing is called from inside a whole stack. */
	sp_view_json_bytes(json, "cum_bytes", &g->how, s->sums);
	sp_view_json_objects(json, "flat_objects", &g->how, s->sums);
	put_live(json, &g->how, s->live);
	put_lifetime(json,
		     d->stacks
			     ? &d->stacks[stack - g->analysis->profile->stacks]
			     : NULL);
	sp_json_bool(json, "truncated",
		     stack->flags & (SP_STACK_TRUNCATED | SP_STACK_NO_POINTER));
	sp_json_bool(json, "caller_only", stack->flags & SP_STACK_CALLER_ONLY);
	sp_json_close(json, '}');
}

static void put_thread(struct sp_json *json, const struct sp_aggregate *g,
		       size_t i)
{
	const struct sp_analysis *a = g->analysis;
	const struct sp_thread_info *thread = &a->profile->thread_infos[i];
	char name[SP_FORMAT_THREAD_NAME_MAX + 1] = "";

	memcpy(name, thread->name, sizeof(thread->name));
	sp_json_open(json, NULL, '{');
	sp_json_u64(json, "index", thread->index);
	sp_json_u64(json, "tid", thread->tid);
	sp_json_string(json, "name", name);
	sp_json_bool(json, "exited", thread->exited);
	if (thread->has_totals)
		sp_view_json_exact(json, thread->exact_alloc_bytes,
				   thread->exact_alloc_objects);
	else
		sp_json_null(json, "exact");
	sp_json_u64(json, "samples", a->alloc->threads[i].all.samples);
	sp_json_open(json, "estimate", '{');
	sp_view_json_bytes(json, "alloc_bytes", &g->how, &a->alloc->threads[i]);
	sp_view_json_objects(json, "alloc_objects", &g->how,
			     &a->alloc->threads[i]);
	put_live(json, &g->how, a->live ? &a->live->threads[i] : NULL);
	sp_json_close(json, '}');
	sp_json_close(json, '}');
}

static void put_percentiles(struct sp_json *json, const char *key,
			    const struct sp_profile *p, bool of_bytes)
{
	sp_json_open_flat(json, key, '{');
	sp_json_time(json, "p50",
		     sp_analysis_size_percentile(p, of_bytes, 0.5));
	sp_json_time(json, "p90",
		     sp_analysis_size_percentile(p, of_bytes, 0.9));
	sp_json_time(json, "p99",
		     sp_analysis_size_percentile(p, of_bytes, 0.99));
	sp_json_close(json, '}');
}

static void put_view_percentiles(struct sp_json *json,
				 const struct sp_analysis *a)
{
	static const double shares[] = {0.5, 0.9, 0.99};
	struct sp_interval size;

	sp_json_open(json, "view_size_percentiles", '[');
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		if (!sp_analysis_view_percentile(a, shares[i], &size))
			break;
		sp_json_open_flat(json, NULL, '{');
		sp_json_double(json, "share", shares[i]);
		sp_json_limits(json, size);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

/* Exact; only classes with something in them. */
static void put_sizes(struct sp_json *json, const struct sp_profile *p)
{
	if (!p->has_classes) {
		sp_json_null(json, "size_classes");
		sp_json_null(json, "size_percentiles");
		return;
	}
	sp_json_open(json, "size_classes", '[');
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		if (!p->classes[i].objects)
			continue;
		sp_json_open_flat(json, NULL, '{');
		sp_json_time(json, "max_bytes", sp_format_class_max(i));
		sp_json_u64(json, "alloc_bytes", p->classes[i].bytes);
		sp_json_u64(json, "alloc_objects", p->classes[i].objects);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
	sp_json_open(json, "size_percentiles", '{');
	put_percentiles(json, "objects", p, false);
	put_percentiles(json, "bytes", p, true);
	sp_json_u64(json, "unclassified_bytes_max", p->class_slack_bytes);
	sp_json_close(json, '}');
}

static void put_timeline(struct sp_json *json, const struct document *d)
{
	const struct sp_profile *p = d->aggregate->analysis->profile;

	if (!d->timeline) {
		sp_json_null(json, "timeline");
		return;
	}
	sp_json_open(json, "timeline", '[');
	for (size_t i = 0; i < SP_VIEW_TIMELINE_POINTS; i++) {
		const struct sp_timeline_point *point = &d->timeline[i];
		uint64_t rss = 0;
		bool has_rss = sp_analysis_rss_at(p, point->time_ns, &rss);

		sp_json_open_flat(json, NULL, '{');
		sp_json_u64(json, "time_ns", point->time_ns);
		sp_json_u64(json, "samples", point->samples);
		sp_json_interval(json, "live_bytes", point->live_bytes);
		sp_json_interval(json, "live_objects", point->live_objects);
		sp_json_u64_if(json, "rss_bytes", has_rss, rss);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

static void put_rss(struct sp_json *json, const struct sp_profile *p)
{
	sp_json_open(json, "rss", '[');
	for (size_t i = 0; i < p->n_rss; i++) {
		sp_json_open_flat(json, NULL, '{');
		sp_json_u64(json, "time_ns", p->rss[i].time_ns);
		sp_json_u64(json, "rss_bytes", p->rss[i].rss_bytes);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

/* Of the control group of the process, or null. */
static void put_limit(struct sp_json *json, const struct sp_profile *p)
{
	const uint64_t limit = sp_profile_memory_limit(p);

	sp_json_u64_if(json, "memory_limit_bytes", limit != SP_NEVER, limit);
	sp_json_bool(json, "is_killed_for_memory",
		     sp_profile_is_killed_for_memory(p));
}

static void put_rows(struct sp_json *json, const struct document *d)
{
	const struct sp_aggregate *g = d->aggregate;
	const struct sp_profile *p = g->analysis->profile;

	sp_json_open(json, "functions", '[');
	for (size_t i = 0; i < g->n_functions; i++)
		put_function(json, d, &g->functions[i]);
	sp_json_close(json, ']');
	sp_json_frames_all(json, d->frames);
	sp_json_open(json, "stacks", '[');
	for (size_t i = 0; i < g->n_stacks; i++)
		put_stack(json, d, &g->stacks[i]);
	sp_json_close(json, ']');
	sp_json_open(json, "thread_infos", '[');
	for (size_t i = 0; i < p->n_thread_infos; i++)
		put_thread(json, g, i);
	sp_json_close(json, ']');
}

static void put_document(struct sp_json *json, const struct document *d)
{
	const struct sp_aggregate *g = d->aggregate;
	const struct sp_profile *p = g->analysis->profile;

	sp_json_open(json, NULL, '{');
	sp_json_frames_version(json, d->frames);
	sp_view_json_head(json, g);
	put_health(json, p);
	put_settings(json, d->infos, p->n_infos);
	sp_json_open(json, "symbol_problems", '[');
	sp_symbolizer_problems(g->symbolizer, put_problem, json);
	sp_json_close(json, ']');
	put_rows(json, d);
	put_sizes(json, p);
	put_view_percentiles(json, g->analysis);
	put_timeline(json, d);
	put_limit(json, p);
	put_rss(json, p);
	sp_view_phases_json(json, g->analysis, d->phases);
	sp_json_end(json);
}

static int prepare_document(struct document *d, unsigned int version,
			    struct sp_error *err)
{
	const struct sp_analysis *a = d->aggregate->analysis;
	int r;

	d->infos = sort_infos(a->profile);
	if (!d->infos)
		return sp_error_memory(err, a->profile->path);
	r = sp_json_frames_new(d->aggregate, d->aggregate->n_stacks, version,
			       &d->frames, err);
	if (r >= 0)
		r = sp_phases_new(a, false, &d->phases, err);
	if (r < 0 || !a->profile->has_frees)
		return r;
	r = sp_aggregate_lifetimes(d->aggregate, &d->functions, &d->stacks,
				   err);
	if (r < 0)
		return r;
	d->timeline = calloc(SP_VIEW_TIMELINE_POINTS, sizeof(*d->timeline));
	if (!d->timeline)
		return sp_error_memory(err, a->profile->path);
	return sp_timeline(a->profile, &a->selection, &a->how, d->timeline,
			   SP_VIEW_TIMELINE_POINTS, err);
}

int sp_view_json_write(FILE *out, const struct sp_aggregate *aggregate,
		       unsigned int version, struct sp_error *err)
{
	struct document d = {.aggregate = aggregate};
	struct sp_json json = {.out = out, .is_first = true};
	int r = prepare_document(&d, version, err);

	if (r >= 0)
		put_document(&json, &d);
	free(d.infos);
	sp_json_frames_free(d.frames);
	free(d.functions);
	free(d.stacks);
	free(d.timeline);
	sp_phases_free(d.phases);
	return r < 0 ? r : 0;
}
