/* SPDX-License-Identifier: MIT */
#include "report/question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/wide.h"
#include "report/phases.h"
#include "text/text.h"

#define PERCENT_100 100000u /* in thousandths */

#define DEFAULT_TAIL_THOUSANDTHS 10000u

static const char *const view_names[] = {
	[SP_VIEW_ALLOC] = "alloc",         [SP_VIEW_LIVE] = "live",
	[SP_VIEW_PEAK] = "peak",           [SP_VIEW_LEAKS] = "leaks",
	[SP_VIEW_TEMPORARY] = "temporary",
};

#define N_VIEWS (sizeof(view_names) / sizeof(view_names[0]))

const char *sp_view_name(enum sp_view view)
{
	return view_names[view];
}

bool sp_view_parse(const char *name, enum sp_view *ret)
{
	for (size_t i = 0; i < N_VIEWS; i++) {
		if (strcmp(name, view_names[i]) != 0)
			continue;
		*ret = (enum sp_view)i;
		return true;
	}
	return false;
}

static const char *const samples_names[] = {
	[SP_SAMPLES_MAPPED] = "mapped",
	[SP_SAMPLES_RESERVED] = "reserved",
};

/* The live view by other weights. */
#define RESIDENT "resident"

#define N_SAMPLES (sizeof(samples_names) / sizeof(samples_names[0]))

const char *sp_view_name_of(const struct sp_profile *profile, enum sp_view view)
{
	const char *name = samples_names[profile->samples_of];

	if (profile->resident && view == SP_VIEW_LIVE)
		return RESIDENT;
	return name ? name : sp_view_name(view);
}

bool sp_question_parse_view(struct sp_question *question, const char *name)
{
	question->has_view = true;
	question->samples_of = SP_SAMPLES_ALLOCATED;
	question->of_resident = strcmp(name, RESIDENT) == 0 ||
				(question->has_metric && question->of_resident);
	if (strcmp(name, RESIDENT) == 0) {
		question->view = SP_VIEW_LIVE;
		return true;
	}
	if (sp_view_parse(name, &question->view))
		return true;
	for (size_t i = SP_SAMPLES_MAPPED; i < N_SAMPLES; i++) {
		if (strcmp(name, samples_names[i]) != 0)
			continue;
		question->view = SP_VIEW_LIVE;
		question->samples_of = (enum sp_samples_of)i;
		return true;
	}
	return false;
}

const char *sp_question_view_word(size_t i)
{
	if (i < N_VIEWS)
		return view_names[i];
	i += SP_SAMPLES_MAPPED;
	if (i - N_VIEWS < N_SAMPLES)
		return samples_names[i - N_VIEWS];
	return i - N_VIEWS == N_SAMPLES ? RESIDENT : NULL;
}

const char *sp_question_metric_word(size_t i)
{
	static const char *const words[] = {"bytes", "objects", RESIDENT, NULL};

	return words[i];
}

bool sp_question_parse_metric(struct sp_question *question, const char *name)
{
	question->has_metric = true;
	question->of_objects = strcmp(name, "objects") == 0;
	question->of_resident = strcmp(name, RESIDENT) == 0;
	return question->of_objects || question->of_resident ||
	       strcmp(name, "bytes") == 0;
}

bool sp_moment_parse(const char *text, struct sp_moment *ret)
{
	struct sp_moment moment = {.kind = SP_MOMENT_END};
	char number[16];
	size_t n = strlen(text);

	if (strcmp(text, "end") == 0) {
		*ret = moment;
		return true;
	}
	moment.kind = SP_MOMENT_TIME;
	if (sp_parse_duration(text, &moment.ns)) {
		*ret = moment;
		return true;
	}
	if (!n || text[n - 1] != '%' || n > sizeof(number))
		return false;
	memcpy(number, text, n - 1);
	number[n - 1] = '\0';
	moment.kind = SP_MOMENT_SHARE;
	if (!sp_parse_milli(number, &moment.thousandths) ||
	    moment.thousandths > PERCENT_100)
		return false;
	*ret = moment;
	return true;
}

void sp_question_init(struct sp_question *question)
{
	*question = (struct sp_question){
		.within_bytes = SP_NEVER,
		.within_ns = SP_NEVER,
		.max_size_bytes = UINT64_MAX,
		.method = SP_METHOD_P3T,
		.confidence = 0.95,
	};
}

bool sp_question_is_whole(const struct sp_question *q)
{
	struct sp_question plain;

	sp_question_init(&plain);
	return !q->samples_of && !q->of_resident && !q->at.kind &&
	       !q->from.kind && !q->to.kind && !q->tail.kind && !q->thread &&
	       !q->phase && q->within_bytes == plain.within_bytes &&
	       q->within_ns == plain.within_ns &&
	       q->min_size_bytes == plain.min_size_bytes &&
	       q->max_size_bytes == plain.max_size_bytes &&
	       !sp_filter_is_given(&q->filter);
}

static uint64_t share_of(uint64_t ns, uint64_t thousandths)
{
	return (uint64_t)((sp_u128)ns * thousandths / PERCENT_100);
}

/* When the last one of that name was taken. */
static bool find_snapshot(const struct sp_profile *profile, const char *name,
			  uint64_t *ret_ns)
{
	bool found = false;

	for (size_t i = 0; i < profile->n_snapshots; i++) {
		const struct sp_snapshot *s = &profile->snapshots[i];

		if (strcmp(s->name, name) != 0 ||
		    (found && s->time_ns < *ret_ns))
			continue;
		*ret_ns = s->time_ns;
		found = true;
	}
	return found;
}

/* Nanoseconds since the start; SP_NEVER for the end, however it was written,
 * and for a moment that was not given. */
static int resolve_moment(const struct sp_moment *moment,
			  const struct sp_profile *profile, const char *option,
			  uint64_t *ret_ns, struct sp_error *err)
{
	uint64_t ns = SP_NEVER;

	if (moment->kind == SP_MOMENT_TIME)
		ns = moment->ns;
	if (moment->kind == SP_MOMENT_RSS_PEAK)
		ns = profile->resident_at_ns;
	if (moment->kind == SP_MOMENT_LAST)
		ns = profile->duration_ns > moment->ns
			     ? profile->duration_ns - moment->ns
			     : 0;
	if (moment->kind == SP_MOMENT_SNAPSHOT &&
	    !find_snapshot(profile, moment->name, &ns))
		return sp_error_set(err, -ENOENT, profile->path,
				    "%s %.64s is neither a time (2s, 500ms, "
				    "50%%, end) nor the name of a snapshot",
				    option, moment->name);
	if (moment->kind == SP_MOMENT_SHARE &&
	    moment->thousandths < PERCENT_100)
		ns = share_of(profile->duration_ns, moment->thousandths);
	if (ns != SP_NEVER && ns > profile->duration_ns)
		return sp_error_set(
			err, -ERANGE, profile->path,
			"%s %s lies after the end: the profile covers %s%s; "
			"give a time within it, a share like 50%%, or 'end'",
			option, sp_text_duration(ns).text,
			sp_text_duration(profile->duration_ns).text,
			profile->end == SP_PROFILE_END_RUNNING ? " so far"
							       : "");
	*ret_ns = ns;
	return 0;
}

static int resolve_window(const struct sp_question *question,
			  const struct sp_profile *profile,
			  struct sp_selection *s, struct sp_error *err)
{
	struct sp_moment to = question->to;
	int r = resolve_moment(&question->from, profile, "--from", &s->from_ns,
			       err);

	if (r == -ERANGE && question->from_may_be_late) {
		s->from_ns = question->from.ns;
		r = 0;
	}
	if (r < 0)
		return r;
	if (s->from_ns == SP_NEVER)
		s->from_ns = question->from.kind == SP_MOMENT_NONE
				     ? 0
				     : profile->duration_ns;
	/* A time after the end includes all births. */
	if (to.kind == SP_MOMENT_TIME && to.ns > profile->duration_ns)
		to.kind = SP_MOMENT_END;
	r = resolve_moment(&to, profile, "--to", &s->to_ns, err);
	if (r < 0)
		return r;
	if (question->from.kind != SP_MOMENT_NONE && s->from_ns >= s->to_ns)
		return sp_error_set(err, -ERANGE, profile->path,
				    "nothing can be between --from %s and --to "
				    "%s: --from must be the earlier",
				    sp_text_duration(s->from_ns).text,
				    sp_text_duration(s->to_ns).text);
	return 0;
}

static int resolve_moments(const struct sp_question *question,
			   const struct sp_profile *profile,
			   struct sp_selection *s, struct sp_error *err)
{
	const uint64_t run_ns = profile->duration_ns;
	const struct sp_moment *tail = &question->tail;
	int r = resolve_window(question, profile, s, err);

	if (r < 0)
		return r;
	r = resolve_moment(&question->at, profile, "--at", &s->at_ns, err);
	if (r >= 0 && s->at_ns < profile->window_ns)
		return sp_error_set(err, -ERANGE, profile->path,
				    "--at %s lies before %s, when what the "
				    "file has of the past begins",
				    sp_text_duration(s->at_ns).text,
				    sp_text_duration(profile->window_ns).text);
	if (r < 0 || s->view != SP_VIEW_LEAKS)
		return r;
	s->tail_ns = share_of(run_ns, tail->kind == SP_MOMENT_NONE
					      ? DEFAULT_TAIL_THOUSANDTHS
					      : tail->thousandths);
	if (tail->kind == SP_MOMENT_TIME)
		s->tail_ns = tail->ns;
	if (s->tail_ns > (s->at_ns == SP_NEVER ? run_ns : s->at_ns))
		return sp_error_set(err, -ERANGE, profile->path,
				    "no object can be older than the tail of "
				    "%s: make --tail shorter",
				    sp_text_duration(s->tail_ns).text);
	return 0;
}

static bool thread_matches(const struct sp_thread_info *thread,
			   const char *wanted, int pass)
{
	uint64_t number;

	if (pass == 2)
		return strncmp(thread->name, wanted, sizeof(thread->name)) ==
			       0 &&
		       strlen(wanted) <= sizeof(thread->name);
	return sp_parse_u64(wanted, &number) &&
	       number == (pass ? thread->tid : thread->index);
}

/* "1, 2, 5, ..." */
static void list_threads(const struct sp_profile *profile, const char *wanted,
			 int pass, char *text, size_t size)
{
	size_t n = 0, listed = 0;

	text[0] = '\0';
	for (size_t i = 0; i < profile->n_thread_infos; i++) {
		const struct sp_thread_info *t = &profile->thread_infos[i];

		if (wanted && !thread_matches(t, wanted, pass))
			continue;
		if (listed++ == 8) {
			snprintf(text + n, size - n, ", ...");
			return;
		}
		n += (size_t)snprintf(text + n, size - n, "%s%" PRIu32,
				      n ? ", " : "", t->index);
	}
}

/* By index, else by the kernel's id, else by name. */
static int find_thread(const struct sp_profile *profile, const char *wanted,
		       uint32_t *ret_index, struct sp_error *err)
{
	size_t found = 0;
	char list[128];

	for (int pass = 0; pass < 3 && !found; pass++) {
		for (size_t i = 0; i < profile->n_thread_infos; i++) {
			if (!thread_matches(&profile->thread_infos[i], wanted,
					    pass))
				continue;
			found++;
			*ret_index = profile->thread_infos[i].index;
		}
		if (found < 2)
			continue;
		list_threads(profile, wanted, pass, list, sizeof(list));
		return sp_error_set(err, -ENOENT, profile->path,
				    "%zu threads are called %.40s: give the "
				    "number of one (%s)",
				    found, wanted, list);
	}
	if (found)
		return 0;
	list_threads(profile, NULL, 0, list, sizeof(list));
	return sp_error_set(err, -ENOENT, profile->path,
			    "no thread %.40s: there are %s; names and numbers "
			    "are in --json under thread_infos",
			    wanted, *list ? list : "none");
}

static int find_phase(const struct sp_question *question,
		      const struct sp_profile *profile, const char **ret,
		      struct sp_error *err)
{
	if (!question->phase)
		return 0;
	*ret = sp_phase_find(profile, question->phase);
	if (*ret)
		return 0;
	return sp_error_set(err, -ENOENT, profile->path,
			    profile->n_stretches
				    ? "no phase %.64s: the report without "
				      "--phase lists them"
				    : "no phase %.64s: the program marked none "
				      "(sampleprof_mark, sampleprof ctl mark)",
			    question->phase);
}

/* Has it no frees although they were asked for?  Its diagnosis says why. */
static bool wanted_frees(const struct sp_profile *profile)
{
	const char *frees = sp_profile_info(profile, "setting.frees");

	return !profile->has_frees && frees && strcmp(frees, "on") == 0;
}

int sp_question_needs_frees(const struct sp_profile *profile, const char *what,
			    struct sp_error *err)
{
	if (profile->has_frees)
		return 0;
	if (wanted_frees(profile))
		return sp_error_set(
			err, -ENODATA, profile->path,
			"%s needs frees, and this profile has none, although "
			"SAMPLEPROF_FREES was on: its notes say why; --view "
			"alloc needs none",
			what);
	return sp_error_set(
		err, -ENODATA, profile->path,
		"%s needs frees, and this profile has none: it was recorded "
		"with SAMPLEPROF_FREES=off or by an older version; record "
		"again with SAMPLEPROF_FREES=on; --view alloc needs none",
		what);
}

int sp_question_select(const struct sp_question *question,
		       const struct sp_profile *profile, enum sp_view fallback,
		       struct sp_selection *ret, struct sp_error *err)
{
	struct sp_selection s;
	char what[32];
	int r;

	sp_selection_init(&s);
	s.view = question->has_view ? question->view : fallback;
	if (s.view != SP_VIEW_ALLOC) {
		snprintf(what, sizeof(what), "--view %s", sp_view_name(s.view));
		r = sp_question_needs_frees(profile, what, err);
		if (r < 0)
			return r;
	}
	r = resolve_moments(question, profile, &s, err);
	if (r < 0)
		return r;
	if (profile->resident &&
	    (s.view == SP_VIEW_LIVE || s.view == SP_VIEW_LEAKS))
		s.at_ns = profile->resident_at_ns;
	s.within_bytes = question->within_bytes;
	s.within_ns = question->within_ns;
	if (s.within_bytes == SP_NEVER && s.within_ns == SP_NEVER)
		s.within_bytes = 0;
	s.min_size_bytes = question->min_size_bytes;
	s.max_size_bytes = question->max_size_bytes;
	if (question->thread) {
		r = find_thread(profile, question->thread, &s.thread, err);
		if (r < 0)
			return r;
	}
	r = find_phase(question, profile, &s.phase, err);
	if (r < 0)
		return r;
	*ret = s;
	return 0;
}

int sp_selection_births(const struct sp_selection *selection,
			const struct sp_profile *profile, const char *what,
			struct sp_selection *ret, struct sp_error *err)
{
	if (selection->view != SP_VIEW_ALLOC)
		return sp_error_set(err, -EINVAL, profile->path,
				    "%s has its own figures for what was "
				    "allocated and what is alive: leave out "
				    "--view %s",
				    what, sp_view_name(selection->view));
	*ret = *selection;
	ret->has_survivors = true;
	return 0;
}

bool sp_selection_is_subset(const struct sp_selection *selection)
{
	return selection->from_ns || selection->to_ns != SP_NEVER ||
	       selection->min_size_bytes > 1 ||
	       selection->max_size_bytes != UINT64_MAX || selection->thread ||
	       selection->phase || selection->keeps;
}
