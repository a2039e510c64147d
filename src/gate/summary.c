/* SPDX-License-Identifier: MIT */
#include "gate/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/array.h"
#include "profile/estimate.h"
#include "report/aggregate.h"
#include "report/analysis.h"
#include "report/filter.h"
#include "report/text.h"

#define UNKNOWN "[unknown]"

/* ---- paths ---- */

void sp_paths_done(struct sp_paths *paths)
{
	sp_intern_done(&paths->frames);
	sp_intern_done(&paths->paths);
}

int sp_paths_add(struct sp_paths *paths, const uint32_t *frames, size_t n,
		 uint32_t *ret_path)
{
	uint32_t *kept = malloc((n + 1) * sizeof(*kept));
	size_t n_kept = 0;
	int r;

	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!n_kept || kept[n_kept - 1] != frames[i])
			kept[n_kept++] = frames[i];
	r = sp_intern_add(&paths->paths, kept, n_kept * sizeof(*kept),
			  ret_path);
	free(kept);
	return r;
}

size_t sp_paths_depth(const struct sp_paths *paths, uint32_t path)
{
	return paths->paths.entries[path].length / sizeof(uint32_t);
}

uint32_t sp_paths_frame(const struct sp_paths *paths, uint32_t path,
			size_t depth)
{
	uint32_t frame;

	/* the bytes are not aligned */
	memcpy(&frame,
	       sp_intern_bytes(&paths->paths, path) + depth * sizeof(frame),
	       sizeof(frame));
	return frame;
}

const char *sp_paths_name(const struct sp_paths *paths, uint32_t frame)
{
	return sp_intern_bytes(&paths->frames, frame);
}

const char *sp_paths_function(const char *name, size_t *ret_bytes)
{
	const char *mark = strchr(name, '!');

	*ret_bytes = mark ? (size_t)(mark - name) : 0;
	return mark ? mark + 1 : name;
}

char *sp_paths_text(const struct sp_paths *paths, uint32_t path)
{
	const size_t depth = sp_paths_depth(paths, path);
	size_t bytes = 1;
	char *text, *at;

	for (size_t i = 0; i < depth; i++)
		bytes += 3 + strlen(sp_paths_name(
				     paths, sp_paths_frame(paths, path, i)));
	text = malloc(bytes);
	if (!text)
		return NULL;
	at = text;
	*at = '\0';
	for (size_t i = 0; i < depth; i++)
		at = stpcpy(
			stpcpy(at, i ? " < " : ""),
			sp_paths_name(paths, sp_paths_frame(paths, path, i)));
	return text;
}

/* ---- rows ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct sp_path_row *ra = a, *rb = b;

	return (ra->path > rb->path) - (ra->path < rb->path);
}

void sp_path_rows_settle(struct sp_path_rows *rows)
{
	size_t n = 0;

	if (!rows->n)
		return;
	qsort(rows->at, rows->n, sizeof(*rows->at), compare_rows);
	for (size_t i = 1; i < rows->n; i++) {
		if (rows->at[n].path == rows->at[i].path)
			sp_acc_merge(&rows->at[n].acc, &rows->at[i].acc);
		else
			rows->at[++n] = rows->at[i];
	}
	rows->n = n + 1;
}

/* ---- one profile ---- */

struct taker {
	const struct sp_profile *profile;
	struct sp_symbolizer *symbolizer;
	struct sp_filter *filter;      /* NULL: none */
	const struct sp_stack *stacks; /* that the filter left */
	struct sp_paths *paths;
	struct sp_summary *summary;
	/* of the stack at hand */
	uint32_t *frames;
	size_t n_frames, room;
	char *name;
	size_t name_room;
};

static int reserve_name(struct taker *t, size_t bytes)
{
	char *grown;

	if (bytes <= t->name_room)
		return 0;
	grown = realloc(t->name, bytes);
	if (!grown)
		return -ENOMEM;
	t->name = grown;
	t->name_room = bytes;
	return 0;
}

/* At most three bytes for each of `text`: a byte that is not UTF-8 becomes
 * U+FFFD, as it would in a baseline.  Returns the end. */
static char *put_utf8(char *to, const char *text)
{
	while (*text) {
		uint32_t code;
		const unsigned int n = sp_text_decode_utf8(text, &code);

		to = n ? (char *)mempcpy(to, text, n)
		       : (char *)mempcpy(to, "\xef\xbf\xbd", 3);
		text += n ? n : 1;
	}
	return to;
}

/* "module!function", "function" or "!function" */
static int add_frame(struct taker *t, const struct sp_symbol *symbol,
		     const struct sp_module *module)
{
	const bool is_program = !module || module->is_main;
	const char *base = is_program ? "" : sp_text_base_name(module->path);
	const char *function = symbol->is_fallback ? UNKNOWN : symbol->function;
	const bool is_bare = is_program && !strchr(function, '!');
	void *array = t->frames;
	uint32_t number;
	char *end;

	if (reserve_name(t, 3 * (strlen(base) + strlen(function)) + 1) < 0 ||
	    sp_array_reserve(&array, &t->room, t->n_frames,
			     sizeof(*t->frames)) < 0)
		return -ENOMEM;
	t->frames = array;
	end = put_utf8(t->name, base);
	/* the first '!' ends the module */
	for (char *c = t->name; c < end; c++)
		if (*c == '!')
			*c = '_';
	*end++ = '!';
	end = put_utf8(end, function);
	if (sp_intern_add(&t->paths->frames, t->name + is_bare,
			  (size_t)(end - t->name) - is_bare, &number) < 0)
		return -ENOMEM;
	t->frames[t->n_frames++] = number;
	return 0;
}

/* From the function that the stack is flat for outwards; what is further in
 * only passes the allocation on. */
static int add_path(struct taker *t, const struct sp_aggregate *aggregate,
		    const struct sp_aggregate_function *flat,
		    const struct sp_stack *stack, uint32_t *ret_path)
{
	bool is_inside = flat->name != NULL && stack->n_frames > 0;

	t->n_frames = 0;
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct sp_frame frame = stack->frames[i];
		const struct sp_symbols symbols =
			sp_aggregate_symbols(aggregate, frame);
		const struct sp_module *module =
			sp_profile_module(t->profile, frame.module);

		for (size_t k = 0; k < symbols.count; k++) {
			if (strcmp(symbols.symbol[k].function, flat->name) == 0)
				is_inside = false;
			if (!is_inside &&
			    add_frame(t, &symbols.symbol[k], module) < 0)
				return -ENOMEM;
		}
	}
	if (!t->n_frames) {
		const struct sp_symbol none = {.function =
						       SP_AGGREGATE_NO_STACK};

		if (add_frame(t, &none, NULL) < 0)
			return -ENOMEM;
	}
	return sp_paths_add(t->paths, t->frames, t->n_frames, ret_path);
}

static int take_rows(struct taker *t, const struct sp_aggregate *aggregate,
		     struct sp_path_rows *rows)
{
	const struct sp_aggregate_function **functions =
		sp_aggregate_by_row(aggregate);
	int r = 0;

	rows->at = calloc(aggregate->n_stacks + 1, sizeof(*rows->at));
	if (!functions || !rows->at)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < aggregate->n_stacks; i++) {
		const struct sp_aggregate_stack *s = &aggregate->stacks[i];
		const size_t at = (size_t)(s->stack - t->stacks);
		struct sp_path_row *row = &rows->at[rows->n];

		r = add_path(t, aggregate,
			     functions[aggregate->row_of_stack[at]], s->stack,
			     &row->path);
		row->acc = s->tally->all;
		rows->n += !r;
	}
	sp_path_rows_settle(rows);
	free(functions);
	return r < 0 ? -ENOMEM : 0;
}

static void take_bytes(struct sp_summary *s, enum sp_view view,
		       const struct sp_analysis *a)
{
	s->bytes[view] = view == SP_VIEW_PEAK
				 ? a->peak.bytes
				 : sp_estimate_bytes(&a->how, &a->view->all);
}

static int take_view(struct taker *t, const struct sp_question *question,
		     enum sp_view view, struct sp_error *err)
{
	struct sp_question q = *question;
	struct sp_analysis *analysis;
	struct sp_aggregate *aggregate;
	int r;

	q.has_view = true;
	q.view = view;
	q.confidence = t->summary->level;
	r = sp_analysis_new_filtered(t->profile, &q, t->filter, view, &analysis,
				     err);
	if (r < 0)
		return r;
	t->stacks = analysis->profile->stacks;
	r = sp_aggregate_new(analysis, t->symbolizer, NULL, NULL, &aggregate,
			     err);
	if (r >= 0) {
		take_bytes(t->summary, view, analysis);
		r = take_rows(t, aggregate, &t->summary->rows[view]);
		if (r < 0)
			sp_error_set(err, r, t->profile->path,
				     "not enough memory for %zu call paths",
				     aggregate->n_stacks);
		sp_aggregate_free(aggregate);
	}
	sp_analysis_free(analysis);
	t->summary->has_rows[view] = r >= 0;
	return r;
}

static const char *why_incomplete(const struct sp_profile *profile)
{
	if (profile->damaged_records || profile->ignored_bytes)
		return "the file is damaged";
	if (profile->end == SP_PROFILE_END_RUNNING)
		return "the process still runs";
	if (profile->end == SP_PROFILE_END_KILLED)
		return "the process was killed, or left without exit()";
	if (!profile->exact_alloc_bytes && profile->n_samples)
		return "the file has no exact totals";
	return NULL;
}

static const char *why_doubtful(const struct sp_profile *profile)
{
	if (sp_profile_lost_samples(profile) > profile->n_samples / 1000)
		return "more than 0.1 % of the samples were lost";
	return NULL;
}

/* ---- phases ---- */

const struct sp_phase_sum *sp_summary_phase(const struct sp_summary *summary,
					    const char *name)
{
	for (size_t i = 0; i < summary->n_phases; i++)
		if (strcmp(summary->phases[i].name, name) == 0)
			return &summary->phases[i];
	return NULL;
}

struct sp_phase_sum *sp_summary_add_phase(struct sp_summary *summary,
					  const char *name)
{
	struct sp_phase_sum *grown = realloc(
		summary->phases, (summary->n_phases + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	summary->phases = grown;
	grown += summary->n_phases;
	*grown = (struct sp_phase_sum){.name = strdup(name)};
	if (!grown->name)
		return NULL;
	summary->n_phases++;
	return grown;
}

/* What was allocated before the first phase has no name. */
static int take_phases(struct taker *t)
{
	for (size_t i = 0; i < t->profile->n_stretches; i++) {
		const struct sp_stretch *s = &t->profile->stretches[i];
		struct sp_phase_sum *phase;
		const struct sp_phase_sum *known =
			sp_summary_phase(t->summary, s->phase);

		if (!*s->phase)
			continue;
		phase = known ? &t->summary->phases[known - t->summary->phases]
			      : sp_summary_add_phase(t->summary, s->phase);
		if (!phase)
			return -ENOMEM;
		phase->exact_alloc_bytes += s->alloc_bytes;
		phase->exact_alloc_objects += s->alloc_objects;
		phase->slack_bytes += s->slack_bytes;
	}
	return 0;
}

static int take_head(struct taker *t, struct sp_error *err)
{
	const struct sp_profile *p = t->profile;
	struct sp_summary *s = t->summary;

	s->program = strdup(sp_text_base_name(p->program ? p->program : ""));
	if (!s->program || take_phases(t) < 0)
		return sp_error_set(err, -ENOMEM, p->path, "not enough memory");
	s->period_bytes = p->period_bytes;
	s->law = p->law;
	s->exact_alloc_bytes = p->exact_alloc_bytes;
	s->exact_alloc_objects = p->exact_alloc_objects;
	s->why_incomplete = why_incomplete(p);
	s->why_doubtful = why_doubtful(p);
	s->has_frees = p->has_frees;
	s->level = SP_SUMMARY_LEVEL;
	return 0;
}

int sp_summary_take(const struct sp_profile *profile,
		    const struct sp_symbolizer_options *symbols,
		    const struct sp_question *question, unsigned int views,
		    struct sp_paths *paths, struct sp_summary **ret_summary,
		    struct sp_error *err)
{
	struct taker t = {.profile = profile, .paths = paths};
	int r;

	t.summary = calloc(1, sizeof(*t.summary));
	if (!t.summary)
		return sp_error_set(err, -ENOMEM, profile->path,
				    "not enough memory");
	r = take_head(&t, err);
	if (r >= 0)
		r = sp_symbolizer_new(profile, symbols, &t.symbolizer, err);
	if (r >= 0 && sp_filter_is_given(&question->filter))
		r = sp_filter_new(profile, t.symbolizer, &question->filter,
				  NULL, NULL, &t.filter, err);
	for (unsigned int v = 0; r >= 0 && v < SP_SUMMARY_VIEWS; v++)
		if ((views & (1u << v)) &&
		    (v == SP_VIEW_ALLOC || profile->has_frees))
			r = take_view(&t, question, (enum sp_view)v, err);
	sp_filter_free(t.filter);
	if (t.symbolizer)
		sp_symbolizer_free(t.symbolizer);
	free(t.frames);
	free(t.name);
	if (r < 0) {
		sp_summary_free(t.summary);
		return r;
	}
	*ret_summary = t.summary;
	return 0;
}

void sp_summary_free(struct sp_summary *summary)
{
	if (!summary)
		return;
	for (unsigned int v = 0; v < SP_SUMMARY_VIEWS; v++)
		free(summary->rows[v].at);
	for (size_t i = 0; i < summary->n_phases; i++)
		free(summary->phases[i].name);
	free(summary->phases);
	free(summary->program);
	free(summary);
}
