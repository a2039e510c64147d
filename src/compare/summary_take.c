/* SPDX-License-Identifier: MIT */
/* What a comparison keeps of one profile (summary.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/stack_paths.h"
#include "compare/summary.h"
#include "model/profile.h"
#include "report/aggregate.h"
#include "report/analysis.h"
#include "report/filter.h"
#include "stats/adjust.h"
#include "stats/estimate.h"
#include "text/lack.h"
#include "text/text.h"
#include "view/view.h"

#define UNNAMED  "[unnamed]"
#define NO_PHASE UINT32_MAX

struct taker {
	const struct sp_profile *profile;
	struct sp_symbolizer *symbolizer;
	struct sp_filter *filter;      /* NULL: none */
	const struct sp_stack *stacks; /* that the filter left */
	struct sp_summary *summary;
	const struct sp_summary_wish *wish;
	uint32_t *path_of_stack; /* of what was allocated; NULL: not wanted */
	uint32_t *phase_of_stretch; /* NO_PHASE before the first named one */
	struct sp_stack_paths of_stacks;
};

/* ---- call paths ---- */

/* *path_of_stack, unless NULL, is set for each of the profile's stacks. */
static int take_rows(struct taker *t, const struct sp_aggregate *aggregate,
		     struct sp_path_rows *rows, uint32_t *path_of_stack)
{
	int r = 0;

	rows->at = calloc(aggregate->n_stacks + 1, sizeof(*rows->at));
	if (!rows->at)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < aggregate->n_stacks; i++) {
		const struct sp_aggregate_stack *s = &aggregate->stacks[i];
		const size_t at = (size_t)(s->stack - t->stacks);
		struct sp_path_row *row = &rows->at[rows->n];

		r = sp_stack_paths_add(
			&t->of_stacks, aggregate,
			sp_aggregate_at(aggregate, aggregate->row_of_stack[at]),
			s->stack, at, &row->path);
		row->acc = sp_adjusted(&aggregate->analysis->how, s->sums);
		rows->n += !r;
		if (path_of_stack)
			path_of_stack[at] = row->path;
	}
	sp_path_rows_settle(rows);
	return r < 0 ? -ENOMEM : 0;
}

/* ---- samples by something else ---- */

/* Sums by (group, path), which are numbers of `keys`. */
struct sorter {
	const struct sp_analysis *analysis; /* whose samples they are */
	struct sp_intern keys;
	struct sp_acc *accs;
	size_t room;
};

static int sort_in(struct sorter *sorter, const struct taker *t, uint32_t group,
		   uint32_t path, const struct sp_sample *s)
{
	const uint32_t key[] = {group, path};
	const size_t n = sorter->keys.n_entries;
	const struct sp_analysis *a = sorter->analysis;
	const struct sp_acc terms = sp_analysis_part(a, &a->selection, s);
	uint32_t number;
	void *array;

	if (sp_intern_add(&sorter->keys, key, sizeof(key), &number) < 0)
		return -ENOMEM;
	array = sorter->accs;
	if (number == n && sp_array_reserve(&array, &sorter->room, n,
					    sizeof(*sorter->accs)) < 0)
		return -ENOMEM;
	sorter->accs = array;
	if (number == n)
		sp_acc_init(&sorter->accs[n], t->profile->period_bytes);
	sp_acc_merge(&sorter->accs[number], &terms);
	return 0;
}

/* The group and the path of a sum. */
static const uint32_t *key_of(const struct sorter *sorter, size_t i)
{
	return SP_INTERN_AT(&sorter->keys, (uint32_t)i, uint32_t);
}

/* To rows[group] what was sorted into each of n groups. */
static int collect_paths(struct sorter *sorter,
			 struct sp_path_rows *const *rows, size_t n)
{
	const size_t n_keys = sorter->keys.n_entries;

	/* `n` counts them first, then those that are there */
	for (size_t i = 0; i < n_keys; i++)
		rows[key_of(sorter, i)[0]]->n++;
	for (size_t group = 0; group < n; group++) {
		rows[group]->at =
			calloc(rows[group]->n + 1, sizeof(*rows[group]->at));
		if (!rows[group]->at)
			return -ENOMEM;
		rows[group]->n = 0;
	}
	for (size_t i = 0; i < n_keys; i++) {
		const uint32_t *key = key_of(sorter, i);

		rows[key[0]]->at[rows[key[0]]->n++] =
			(struct sp_path_row){key[1], sorter->accs[i]};
	}
	for (size_t group = 0; group < n; group++)
		sp_path_rows_settle(rows[group]);
	return 0;
}

static void sorter_done(struct sorter *sorter)
{
	sp_intern_done(&sorter->keys);
	free(sorter->accs);
}

static int take_phase_rows(struct taker *t, const struct sp_analysis *analysis)
{
	const size_t n = t->summary->n_phases;
	struct sp_path_rows **rows = calloc(n, sizeof(*rows));
	const struct sp_profile *p = t->profile;
	struct sorter sorter = {.analysis = analysis};
	int r = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; !r && i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];
		const struct sp_stretch *stretch =
			sp_stretch_at(p, s->part, s->born_ns);
		const uint32_t phase =
			stretch ? t->phase_of_stretch[stretch - p->stretches]
				: NO_PHASE;

		if (phase != NO_PHASE &&
		    sp_selection_has(&analysis->selection, p, s))
			r = sort_in(&sorter, t, phase,
				    t->path_of_stack[s->stack], s);
	}
	for (size_t i = 0; i < n; i++) {
		t->summary->phases[i].has_rows = true;
		rows[i] = &t->summary->phases[i].rows;
	}
	if (!r)
		r = collect_paths(&sorter, rows, n);
	sorter_done(&sorter);
	free(rows);
	return r;
}

static int add_label_of(struct taker *t, unsigned int table,
			const struct sp_sample *s, uint32_t *ret_path)
{
	char name[SP_FORMAT_THREAD_NAME_MAX + 1] = "";

	switch (table) {
	case SP_SUMMARY_BY_ENTRY:
		return sp_stack_paths_label(&t->of_stacks,
					    sp_entry_name(s->entry), ret_path);
	case SP_SUMMARY_BY_SIZE:
		return sp_stack_paths_label(
			&t->of_stacks,
			sp_view_sizes_row_name(
				sp_view_sizes_row(
					sp_format_class(s->size_bytes)))
				.text,
			ret_path);
	default:
		if (s->thread != UINT32_MAX)
			memcpy(name, t->profile->thread_infos[s->thread].name,
			       SP_FORMAT_THREAD_NAME_MAX);
		return sp_stack_paths_label(&t->of_stacks,
					    *name ? name : UNNAMED, ret_path);
	}
}

#define N_TABLES (SP_SUMMARY_TABLES - SP_SUMMARY_BY_ENTRY)

static int take_tables(struct taker *t, const struct sp_analysis *analysis)
{
	struct sp_path_rows *rows[N_TABLES];
	const struct sp_profile *p = t->profile;
	struct sorter sorter = {.analysis = analysis};
	uint32_t path;
	int r = 0;

	for (size_t i = 0; !r && i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];

		if (!sp_selection_has(&analysis->selection, p, s))
			continue;
		for (uint32_t k = 0; !r && k < N_TABLES; k++) {
			r = add_label_of(t, SP_SUMMARY_BY_ENTRY + k, s, &path);
			if (!r)
				r = sort_in(&sorter, t, k, path, s);
		}
	}
	for (uint32_t k = 0; k < N_TABLES; k++) {
		rows[k] = &t->summary->rows[SP_SUMMARY_BY_ENTRY + k];
		t->summary->has_rows[SP_SUMMARY_BY_ENTRY + k] = true;
	}
	if (!r)
		r = collect_paths(&sorter, rows, N_TABLES);
	sorter_done(&sorter);
	return r;
}

/* ---- views ---- */

static void take_bytes(struct sp_summary *s, enum sp_view view,
		       const struct sp_analysis *a)
{
	if (view == SP_VIEW_PEAK)
		s->bytes[view] = a->peak.bytes;
	else if (view != SP_VIEW_ALLOC && view != SP_VIEW_LEAKS)
		s->bytes[view] = sp_estimate_bytes(&a->how, &a->view->all);
}

/* All that is wished for of one view. */
static int take_of(struct taker *t, enum sp_view view,
		   const struct sp_aggregate *aggregate)
{
	const struct sp_analysis *a = aggregate->analysis;
	const bool by_phase = view == SP_VIEW_ALLOC && t->wish->phases &&
			      t->summary->n_phases;
	int r = 0;

	if (by_phase) {
		t->path_of_stack = calloc(t->profile->n_stacks + 1,
					  sizeof(*t->path_of_stack));
		r = t->path_of_stack ? 0 : -ENOMEM;
	}
	take_bytes(t->summary, view, a);
	if (!r)
		r = take_rows(t, aggregate, &t->summary->rows[view],
			      by_phase ? t->path_of_stack : NULL);
	if (!r && by_phase)
		r = take_phase_rows(t, a);
	if (!r && t->wish->tables && view == t->wish->tables_of)
		r = take_tables(t, a);
	return r;
}

static struct sp_run_part part_of(const struct sp_question *question,
				  const struct sp_selection *s)
{
	const bool has_moment = question->at.kind && s->at_ns != SP_NEVER;

	return (struct sp_run_part){s->from_ns,
				    s->to_ns == SP_NEVER ? 0 : s->to_ns,
				    has_moment ? s->at_ns : 0};
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
	r = sp_analysis_new_filtered(t->profile, &q, t->filter, view, &analysis,
				     err);
	if (r < 0)
		return r;
	t->stacks = analysis->profile->stacks;
	t->summary->part = part_of(question, &analysis->selection);
	r = sp_aggregate_new(analysis, t->symbolizer, NULL, NULL, &aggregate,
			     err);
	if (r >= 0) {
		r = take_of(t, view, aggregate);
		if (r < 0)
			sp_error_memory(err, t->profile->path);
		sp_aggregate_free(aggregate);
	}
	sp_analysis_free(analysis);
	t->summary->has_rows[view] = r >= 0;
	return r;
}

/* ---- the head ---- */

static const char *why_incomplete(const struct sp_profile *profile)
{
	const struct sp_whole whole = sp_whole_of(profile);

	if (whole.is_damaged || whole.is_full)
		return sp_lack_why(&whole);
	if (profile->end == SP_PROFILE_END_RUNNING)
		return "the process still runs";
	if (profile->end == SP_PROFILE_END_KILLED)
		return "the process was killed, or left without exit()";
	if (profile->end == SP_PROFILE_END_EXEC)
		return "the process executed another program: give the "
		       "profile of that one";
	if (!profile->exact_alloc_bytes && profile->n_samples)
		return "the file has no exact totals";
	return NULL;
}

static const char *why_doubtful(const struct sp_profile *profile)
{
	const struct sp_whole whole = sp_whole_of(profile);

	if (whole.is_starved)
		return "more samples were lost than chance hides";
	if (whole.lacks_frees)
		return "frees were lost";
	if (profile->discarded_bytes)
		return "the file was too small for the run, and old samples "
		       "were discarded (SAMPLEPROF_MAX_FILE)";
	return NULL;
}

/* What was allocated before the first phase has no name. */
static int take_phases(struct taker *t)
{
	t->phase_of_stretch = calloc(t->profile->n_stretches + 1,
				     sizeof(*t->phase_of_stretch));
	if (!t->phase_of_stretch)
		return -ENOMEM;
	for (size_t i = 0; i < t->profile->n_stretches; i++) {
		const struct sp_stretch *s = &t->profile->stretches[i];
		struct sp_phase_sum *phase;
		const struct sp_phase_sum *known =
			sp_summary_phase(t->summary, s->phase);

		t->phase_of_stretch[i] = NO_PHASE;
		if (!*s->phase)
			continue;
		phase = known ? &t->summary->phases[known - t->summary->phases]
			      : sp_summary_add_phase(t->summary, s->phase);
		if (!phase)
			return -ENOMEM;
		t->phase_of_stretch[i] = (uint32_t)(phase - t->summary->phases);
		phase->exact_alloc_bytes += s->alloc_bytes;
		phase->exact_alloc_objects += s->alloc_objects;
		phase->slack_bytes += s->slack_bytes;
		phase->unsampled_bytes +=
			s->unsampled_bytes - s->discarded_bytes;
	}
	return 0;
}

static int take_classes(struct taker *t)
{
	if (!t->wish->tables || !t->profile->has_classes)
		return 0;
	t->summary->classes = malloc(sizeof(t->profile->classes));
	if (!t->summary->classes)
		return -ENOMEM;
	memcpy(t->summary->classes, t->profile->classes,
	       sizeof(t->profile->classes));
	return 0;
}

static int take_recordings(struct taker *t)
{
	const struct sp_profile *p = t->profile;
	struct sp_summary *s = t->summary;

	s->recordings = calloc(p->n_parts, sizeof(*s->recordings));
	s->seeds = calloc(p->n_parts, sizeof(*s->seeds));
	if (!s->recordings || !s->seeds)
		return -ENOMEM;
	s->n_recordings = p->n_parts;
	for (size_t i = 0; i < p->n_parts; i++) {
		s->recordings[i] = p->parts[i].file_id;
		s->seeds[i] = p->parts[i].seed;
	}
	return 0;
}

static int take_head(struct taker *t, struct sp_error *err)
{
	const struct sp_profile *p = t->profile;
	const struct sp_whole whole = sp_whole_of(p);
	struct sp_summary *s = t->summary;

	s->program = strdup(sp_text_base_name(p->program ? p->program : ""));
	s->path = strdup(p->parts[0].path);
	if (!s->program || !s->path || take_recordings(t) < 0 ||
	    take_phases(t) < 0 || take_classes(t) < 0)
		return sp_error_memory(err, p->path);
	s->period_bytes = p->period_bytes;
	s->law = p->law;
	s->exact_alloc_bytes = p->exact_alloc_bytes;
	s->exact_alloc_objects = p->exact_alloc_objects;
	s->missing_bytes_max = p->missing_bytes_max;
	s->unsampled_bytes = sp_profile_off_bytes(p);
	s->why_incomplete = why_incomplete(p);
	s->is_least = s->why_incomplete && !sp_profile_is_exact(p);
	s->why_doubtful = why_doubtful(p);
	s->lacks_some = !sp_whole_is_all(&whole);
	s->has_frees = p->has_frees;
	return 0;
}

int sp_summary_take(const struct sp_profile *profile,
		    const struct sp_symbolizer_options *symbols,
		    const struct sp_question *question,
		    const struct sp_summary_wish *wish, struct sp_paths *paths,
		    struct sp_summary **ret_summary, struct sp_error *err)
{
	struct taker t = {.profile = profile,
			  .of_stacks = {.profile = profile, .paths = paths},
			  .wish = wish};
	struct sp_symbolizer_options all = *symbols;
	int r;

	all.see_through.all_frames = true;
	t.summary = calloc(1, sizeof(*t.summary));
	if (!t.summary)
		return sp_error_memory(err, profile->path);
	t.summary->level = question->confidence;
	r = take_head(&t, err);
	if (r >= 0)
		r = sp_symbolizer_new(profile, &all, &t.symbolizer, err);
	if (r >= 0 && sp_filter_is_given(&question->filter))
		r = sp_filter_new(profile, t.symbolizer, &question->filter,
				  NULL, NULL, &t.filter, err);
	for (unsigned int v = 0; r >= 0 && v < SP_SUMMARY_VIEWS; v++)
		if ((wish->views & (1u << v)) &&
		    (v == SP_VIEW_ALLOC || profile->has_frees))
			r = take_view(&t, question, (enum sp_view)v, err);
	if (r >= 0 && wish->leaks)
		r = sp_summary_take_leaks(t.summary, profile, symbols, question,
					  err);
	if (r >= 0 && sp_summary_take_nameless(t.summary, t.symbolizer) < 0)
		r = sp_error_memory(err, profile->path);
	sp_filter_free(t.filter);
	if (t.symbolizer)
		sp_symbolizer_free(t.symbolizer);
	free(t.path_of_stack);
	free(t.phase_of_stretch);
	sp_stack_paths_done(&t.of_stacks);
	if (r < 0) {
		sp_summary_free(t.summary);
		return r;
	}
	*ret_summary = t.summary;
	return 0;
}
