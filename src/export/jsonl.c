/* SPDX-License-Identifier: MIT */
#include "export/format.h"

#include <string.h>

#include "model/walk.h"
#include "text/json.h"
#include "text/lack.h"
#include "view/view_json_frames.h"

/* Each line is a document of its own. */
static struct sp_json begin_line(FILE *out, const char *type)
{
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open_flat(&json, NULL, '{');
	sp_json_string(&json, "type", type);
	return json;
}

static void put_totals(struct sp_json *json, const struct sp_profile *p)
{
	const struct sp_whole whole = sp_whole_of(p);

	sp_json_open(json, "exact", '{');
	sp_json_u64(json, "alloc_bytes", p->exact_alloc_bytes);
	sp_json_u64(json, "alloc_objects", p->exact_alloc_objects);
	sp_json_bool(json, "is_complete", sp_profile_is_exact(p));
	sp_json_time(json, "missing_bytes_max",
		     p->is_cut ? SP_NEVER : p->missing_bytes_max);
	sp_json_close(json, '}');
	sp_lack_json(json, &whole);
	sp_json_open(json, "losses", '{');
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		if (p->losses[i])
			sp_json_u64(json, sp_loss_name(i), p->losses[i]);
	sp_json_close(json, '}');
}

static void put_header(FILE *out, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;
	struct sp_json json = begin_line(out, "header");

	sp_json_string(&json, "schema", "sampleprof-samples");
	sp_json_u64(&json, "version", SP_EXPORT_JSONL_VERSION);
	sp_json_string(&json, "file", p->path);
	sp_json_string(&json, "program", p->program);
	sp_json_string(&json, "command", p->command);
	sp_json_string(&json, "host", p->host);
	sp_json_u64(&json, "pid", p->pid);
	sp_json_u64(&json, "start_unix_ns", p->start_unix_ns);
	sp_json_u64(&json, "duration_ns", p->duration_ns);
	sp_json_u64(&json, "period_bytes", p->period_bytes);
	sp_json_string(&json, "law",
		       p->law.is_dotnet ? "dotnet" : "exponential");
	sp_json_bool(&json, "always_large", p->law.always_large);
	sp_json_bool(&json, "has_frees", p->has_frees);
	sp_json_u64(&json, "unmatched_frees", p->unmatched_frees);
	sp_json_string(&json, "view",
		       sp_view_name_of(a->profile, a->selection.view));
	sp_json_u64(&json, "samples", a->view->all.all.samples);
	put_totals(&json, p);
	sp_json_string(&json, "damage", *p->damage ? p->damage : NULL);
	sp_json_end(&json);
}

static void put_threads(FILE *out, const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_thread_infos; i++) {
		const struct sp_thread_info *thread = &p->thread_infos[i];
		struct sp_json json = begin_line(out, "thread");
		char name[SP_FORMAT_THREAD_NAME_MAX + 1] = "";

		memcpy(name, thread->name, sizeof(thread->name));
		sp_json_u64(&json, "index", thread->index);
		sp_json_u64(&json, "tid", thread->tid);
		sp_json_string(&json, "name", name);
		sp_json_end(&json);
	}
}

static void put_stacks(FILE *out, const struct sp_aggregate *g)
{
	for (size_t i = 0; i < g->n_stacks; i++) {
		const struct sp_stack *stack = g->stacks[i].stack;
		struct sp_json json = begin_line(out, "stack");

		sp_json_u64(&json, "id", stack->id);
		sp_json_bool(&json, "truncated",
			     stack->flags & (SP_STACK_TRUNCATED |
					     SP_STACK_NO_POINTER));
		sp_json_bool(&json, "caller_only",
			     stack->flags & SP_STACK_CALLER_ONLY);
		sp_json_frames_whole(&json, g, stack);
		sp_json_end(&json);
	}
}

static void put_thread(struct sp_json *json, const char *key,
		       const struct sp_profile *p, uint32_t thread)
{
	if (thread == UINT32_MAX)
		sp_json_null(json, key);
	else
		sp_json_u64(json, key, p->thread_infos[thread].index);
}

static void put_sample(FILE *out, const struct sp_analysis *a,
		       const struct sp_sample *s)
{
	const struct sp_profile *p = a->profile;
	const struct sp_acc part = sp_analysis_part(a, &a->selection, s);
	struct sp_json json = begin_line(out, "sample");
	struct sp_acc one;

	sp_acc_init(&one, s->period_bytes);
	sp_acc_add(&one, &p->law, s->size_bytes, s->offset_bytes,
		   s->period_bytes);
	sp_json_u64(&json, "id", s->id);
	sp_json_u64(&json, "size", s->size_bytes);
	sp_json_u64(&json, "offset", s->offset_bytes);
	sp_json_u64(&json, "period_bytes", s->period_bytes);
	sp_json_double(&json, "p", 1 / one.est_count);
	sp_json_double(&json, "weight_bytes", one.est_bytes);
	sp_json_double(&json, "weight_count", one.est_count);
	sp_json_double(&json, "value_bytes", part.est_bytes);
	sp_json_double(&json, "value_count", part.est_count);
	sp_json_u64(&json, "born_ns", s->born_ns);
	sp_json_time(&json, "freed_ns", s->freed_ns);
	sp_json_bool(&json, "free_missed", s->free_missed);
	sp_json_time(&json, "age_bytes", s->age_bytes);
	put_thread(&json, "thread", p, s->thread);
	put_thread(&json, "freed_by", p, s->freed_by);
	sp_json_string(&json, "entry", sp_entry_name(s->entry));
	sp_json_u64(&json, "stack", p->stacks[s->stack].id);
	sp_json_end(&json);
}

struct document {
	FILE *out;
	const struct sp_analysis *analysis;
};

static int take_event(void *arg, enum sp_sample_event event,
		      const struct sp_sample *s)
{
	const struct document *d = arg;
	const struct sp_profile *p = d->analysis->profile;

	if (event == SP_SAMPLE_SETTLED &&
	    sp_selection_has(&d->analysis->selection, p, s))
		put_sample(d->out, d->analysis, s);
	return 0;
}

int sp_export_jsonl_write(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_export_options *options,
			  struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	const struct sp_profile *p = a->profile;
	struct document d = {out, a};

	(void)options;
	put_header(out, a);
	put_threads(out, p);
	put_stacks(out, aggregate);
	return sp_profile_walk(p, NULL, NULL, take_event, &d, err);
}
