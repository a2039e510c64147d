/* SPDX-License-Identifier: MIT */
#include "report/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "read/load.h"
#include "stats/peak.h"
#include "stats/timeline.h"

static struct sp_plan plan_of(const struct sp_question *q,
			      const struct sp_load_needs *needs)
{
	struct sp_plan plan = {
		.confidence = q->confidence,
		.has_lifetimes = needs->lifetimes,
		.no_code = needs->no_code,
		.no_stacks = needs->no_stacks,
		.n_points = needs->n_points,
		.has_temporary = needs->parts ||
				 (q->has_view && q->view == SP_VIEW_TEMPORARY),
		.within_bytes = q->within_bytes,
		.within_ns = q->within_ns,
		.while_written = needs->while_written,
	};

	if (plan.within_bytes == SP_NEVER && plan.within_ns == SP_NEVER)
		plan.within_bytes = 0;
	return plan;
}

struct cuts {
	uint64_t at[SP_PLAN_CUTS_MAX];
	size_t n;
};

/* Ascending, each once. */
static void sort_cuts(struct cuts *cuts)
{
	size_t n = 0;

	qsort(cuts->at, cuts->n, sizeof(*cuts->at), sp_array_compare_u64);
	for (size_t i = 0; i < cuts->n; i++)
		if (!i || cuts->at[i] != cuts->at[i - 1])
			cuts->at[n++] = cuts->at[i];
	cuts->n = n;
}

/* Whether an event at exactly that time is after the cut, or before it. */
static void cut_before(struct cuts *cuts, uint64_t time_ns)
{
	if (time_ns && time_ns != SP_NEVER)
		cuts->at[cuts->n++] = time_ns - 1;
}

static void cut_after(struct cuts *cuts, uint64_t time_ns)
{
	if (time_ns != SP_NEVER)
		cuts->at[cuts->n++] = time_ns;
}

/* A point is two cuts: births at it are after it, ends at it before. */
static void cut_at_points(const struct sp_profile *p,
			  const struct sp_selection *births, size_t n,
			  struct cuts *cuts)
{
	uint64_t from_ns, to_ns;

	sp_timeline_span(p, births, &from_ns, &to_ns);
	for (size_t i = 0; i < n; i++) {
		const uint64_t at = sp_timeline_place(from_ns, to_ns, i, n);

		cut_before(cuts, at);
		cut_after(cuts, at);
	}
}

/* The cuts of the run by the question. */
static void cut_at_moments(const struct sp_selection *s, struct cuts *cuts)
{
	cut_before(cuts, s->from_ns);
	cut_before(cuts, s->to_ns);
	cut_after(cuts, s->at_ns);
	if (s->view == SP_VIEW_LEAKS && s->at_ns != SP_NEVER)
		cut_after(cuts, s->at_ns - s->tail_ns);
}

/* What the answer needs, before the files are read. */
struct aim {
	bool is_known;              /* the question has an answer there */
	struct sp_selection births; /* only if peak and timeline are of it */
	bool has_births;
	struct cuts cuts;
};

/* Files that are read once or twice. */
struct wish {
	const char *const *files;
	size_t n;
	const struct sp_question *question;
	const struct sp_load_needs *needs;
	bool needs_peak; /* live objects of that time */
	sp_progress_fn *progress;
	void *progress_arg;
};

/* From what is known of the files so far.  Errors of the question are reported
 * later. */
static void take_aim(const struct wish *w, const struct sp_profile *p,
		     struct aim *aim)
{
	const struct sp_question *q = w->question;
	struct sp_selection *births = &aim->births;
	struct sp_error err;

	*aim = (struct aim){.is_known = false};
	if (sp_question_select(q, p, SP_VIEW_ALLOC, births, &err) < 0)
		return;
	aim->is_known = true;
	cut_at_moments(births, &aim->cuts);
	/* Threads of several files have other numbers in each. */
	aim->has_births = !sp_filter_is_given(&q->filter) && !q->phase &&
			  (!q->thread || w->n == 1);
	if (w->needs_peak && p->peak) {
		cut_after(&aim->cuts, p->peak->time_ns);
	}
	if (w->needs->parts)
		cut_at_points(p, births, w->needs->n_points, &aim->cuts);
	sort_cuts(&aim->cuts);
}

static int read_files(const struct wish *w, const struct sp_plan *plan,
		      struct sp_profile **ret_profile, struct sp_error *err)
{
	return sp_profile_read(w->files, w->n, plan, w->progress,
			       w->progress_arg, ret_profile, err);
}

/* All that is needed, as far as the aim knows it. */
static struct sp_plan plan_for(const struct wish *w, const struct aim *aim)
{
	struct sp_plan plan = plan_of(w->question, w->needs);

	plan.cuts = aim->cuts.at;
	plan.n_cuts = aim->cuts.n;
	plan.births = &aim->births;
	/* Of other births they are found by other readings. */
	if (!aim->has_births) {
		plan.confidence = 0;
		plan.n_points = 0;
	}
	return plan;
}

/* The aim was set after that reading: is anything still unknown? */
static bool is_hit(const struct wish *w, const struct aim *aim,
		   const struct aim *found)
{
	if (!found->is_known)
		return true;
	if (!aim->is_known)
		return !found->cuts.n &&
		       !(found->has_births && w->needs->n_points);
	return (!found->has_births ||
		sp_selection_is_same(&aim->births, &found->births)) &&
	       aim->cuts.n == found->cuts.n &&
	       memcmp(aim->cuts.at, found->cuts.at,
		      found->cuts.n * sizeof(*found->cuts.at)) == 0;
}

/* The headers may determine the moments of a question.  The moment of the peak
 * is known after a reading that looks for nothing else. */
static int load_groups(const struct wish *w, struct aim *aim,
		       struct sp_profile **ret_profile, struct sp_error *err)
{
	struct sp_plan plan = plan_for(w, aim);
	struct aim found;

	if (w->needs_peak)
		plan = (struct sp_plan){.confidence = plan.confidence,
					.births = plan.births,
					.only_peak = true,
					.while_written = plan.while_written};
	for (int i = 0; i < 3; i++) {
		struct sp_profile *p;
		int r = read_files(w, &plan, &p, err);

		if (r < 0)
			return r;
		*ret_profile = p;
		/* Samples that are there by themselves say it at once. */
		if (!p->n_groups && !(plan.only_peak && p->has_no_code))
			return 0;
		take_aim(w, p, &found);
		if ((i || !w->needs_peak) && is_hit(w, aim, &found))
			return 0;
		*aim = found;
		plan = plan_for(w, aim);
		plan.is_unordered = p->is_unordered;
		plan.duration_ns = p->duration_ns;
		sp_profile_free(p);
	}
	return sp_profile_load_many(w->files, w->n, w->progress,
				    w->progress_arg, ret_profile, err);
}

int sp_load_weigh(const char *const *files, size_t n,
		  const struct sp_question *q, struct sp_profile *profile,
		  struct sp_error *err)
{
	if (!q->of_resident)
		return 0;
	if (n > 1)
		return sp_error_set(
			err, -EINVAL, NULL,
			"--metric resident takes one process: give one file");
	if (!q->weigh)
		return sp_error_set(err, -ENOTSUP, NULL,
				    "resident bytes are not known here");
	return q->weigh(*files, q, profile, err);
}

static int weigh_samples(const struct wish *w, struct sp_profile **profile,
			 struct sp_error *err)
{
	int r = sp_load_weigh(w->files, w->n, w->question, *profile, err);

	if (r < 0)
		sp_profile_free(*profile);
	return r;
}

int sp_load(const char *const *files, size_t n, const struct sp_question *q,
	    const struct sp_load_needs *needs, sp_progress_fn *progress,
	    void *progress_arg, struct sp_profile **ret_profile,
	    struct sp_error *err)
{
	const struct wish w = {files,
			       n,
			       q,
			       needs,
			       needs->peak || needs->parts ||
				       (q->has_view && q->view == SP_VIEW_PEAK),
			       progress,
			       progress_arg};
	const struct sp_plan mapped = {.every_sample = true,
				       .samples_of = q->samples_of};
	struct sp_profile facts;
	struct aim aim;
	int r;

	if (q->samples_of != SP_SAMPLES_ALLOCATED || q->of_resident) {
		r = read_files(&w, &mapped, ret_profile, err);
		return r < 0 ? r : weigh_samples(&w, ret_profile, err);
	}
	/* Reading reports errors of the files. */
	if (sp_profile_look(files, n, &facts, err) < 0)
		aim = (struct aim){.is_known = false};
	else
		take_aim(&w, &facts, &aim);
	if (w.needs_peak && !aim.has_births)
		return sp_profile_load_many(files, n, progress, progress_arg,
					    ret_profile, err);
	return load_groups(&w, &aim, ret_profile, err);
}
