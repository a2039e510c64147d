/* SPDX-License-Identifier: MIT */
#include "report/load.h"

#include <stdlib.h>
#include <string.h>

#include "read/load.h"
#include "stats/peak.h"
#include "stats/timeline.h"

/* Does it ask for all of the run, and for no other moment than its end? */
static bool is_whole(const struct sp_question *q)
{
	return !sp_filter_is_given(&q->filter) &&
	       q->from.kind == SP_MOMENT_NONE && q->to.kind == SP_MOMENT_NONE &&
	       (q->at.kind == SP_MOMENT_NONE || q->at.kind == SP_MOMENT_END) &&
	       q->min_size_bytes <= 1 && q->max_size_bytes == UINT64_MAX &&
	       !q->thread && !q->phase;
}

static struct sp_plan plan_of(const struct sp_question *q,
			      const struct sp_load_needs *needs)
{
	struct sp_plan plan = {
		.confidence = q->confidence,
		.has_lifetimes = needs->lifetimes,
		.n_points = needs->n_points,
		.has_temporary = needs->parts ||
				 (q->has_view && q->view == SP_VIEW_TEMPORARY),
		.within_bytes = q->within_bytes,
		.within_ns = q->within_ns,
	};

	if (plan.within_bytes == SP_NEVER && plan.within_ns == SP_NEVER)
		plan.within_bytes = 0;
	return plan;
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct cuts {
	uint64_t at[SP_PLAN_CUTS_MAX];
	size_t n;
};

/* Ascending, each once. */
static void sort_cuts(struct cuts *cuts)
{
	size_t n = 0;

	qsort(cuts->at, cuts->n, sizeof(*cuts->at), compare_times);
	for (size_t i = 0; i < cuts->n; i++)
		if (!i || cuts->at[i] != cuts->at[i - 1])
			cuts->at[n++] = cuts->at[i];
	cuts->n = n;
}

/* What is at that time is after the cut, or before it. */
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

/* A point is two cuts: what is born at it is after it, what ends at it
 * before. */
static void cut_at_peak(const struct sp_profile *p,
			const struct sp_load_needs *needs, struct cuts *cuts)
{
	const uint64_t end_ns =
		p->duration_ns > p->window_ns ? p->duration_ns : p->window_ns;

	if (p->peak) {
		cut_after(cuts, p->peak->time_ns);
		cut_after(cuts, p->peak->chosen_ns[0]);
		cut_after(cuts, p->peak->chosen_ns[1]);
	}
	for (size_t i = 0; needs->parts && i < needs->n_points; i++) {
		const uint64_t at = sp_timeline_place(p->window_ns, end_ns, i,
						      needs->n_points);

		cut_before(cuts, at);
		cut_after(cuts, at);
	}
	sort_cuts(cuts);
}

/* Where the question divides the run.  What is wrong with it is said later. */
static void cut_at_moments(const struct sp_profile *p,
			   const struct sp_question *q, struct cuts *cuts)
{
	struct sp_selection s;
	struct sp_error err;

	if (sp_question_select(q, p, SP_VIEW_ALLOC, &s, &err) < 0)
		return;
	cut_before(cuts, s.from_ns);
	cut_before(cuts, s.to_ns);
	cut_after(cuts, s.at_ns);
	if (s.view == SP_VIEW_LEAKS && s.at_ns != SP_NEVER)
		cut_after(cuts, s.at_ns - s.tail_ns);
	sort_cuts(cuts);
}

/* Files that are read once or twice. */
struct wish {
	const char *const *files;
	size_t n;
	const struct sp_question *question;
	const struct sp_load_needs *needs;
	bool is_whole;
	sp_progress_fn *progress;
	void *progress_arg;
};

static void choose_cuts(const struct wish *w, const struct sp_profile *p,
			struct cuts *cuts)
{
	cuts->n = 0;
	if (w->is_whole)
		cut_at_peak(p, w->needs, cuts);
	else
		cut_at_moments(p, w->question, cuts);
}

static int read_files(const struct wish *w, const struct sp_plan *plan,
		      struct sp_profile **ret_profile, struct sp_error *err)
{
	return sp_profile_read(w->files, w->n, plan, w->progress,
			       w->progress_arg, ret_profile, err);
}

static int load_samples(const struct wish *w, struct sp_profile **ret_profile,
			struct sp_error *err)
{
	return sp_profile_load_many(w->files, w->n, w->progress,
				    w->progress_arg, ret_profile, err);
}

/* When the peak was, how long the run is, and what the moments of a question
 * are, is known at the end of `first`: what was alive at such moments, if the
 * files are read again. */
static int load_twice(const struct wish *w, const struct sp_plan *first,
		      struct sp_plan *plan, struct sp_profile **ret_profile,
		      struct sp_error *err)
{
	struct cuts cuts, again;
	int r = read_files(w, first, ret_profile, err);

	/* Samples that are there by themselves say it at once. */
	if (r < 0 || !(*ret_profile)->n_groups)
		return r;
	choose_cuts(w, *ret_profile, &cuts);
	if (!cuts.n && !w->is_whole)
		return 0;
	plan->cuts = cuts.at;
	plan->n_cuts = cuts.n;
	plan->is_unordered = (*ret_profile)->is_unordered;
	plan->duration_ns = (*ret_profile)->duration_ns;
	sp_profile_free(*ret_profile);
	r = read_files(w, plan, ret_profile, err);
	if (r < 0 || !(*ret_profile)->n_groups)
		return r;
	choose_cuts(w, *ret_profile, &again);
	if (again.n == cuts.n &&
	    memcmp(cuts.at, again.at, cuts.n * sizeof(*cuts.at)) == 0)
		return 0;
	sp_profile_free(*ret_profile);
	return load_samples(w, ret_profile, err);
}

int sp_load(const char *const *files, size_t n, const struct sp_question *q,
	    const struct sp_load_needs *needs, sp_progress_fn *progress,
	    void *progress_arg, struct sp_profile **ret_profile,
	    struct sp_error *err)
{
	const struct wish w = {files,       n,        q,           needs,
			       is_whole(q), progress, progress_arg};
	const bool needs_peak = needs->peak || needs->parts ||
				(q->has_view && q->view == SP_VIEW_PEAK);
	struct sp_plan plan = plan_of(q, needs), first;

	if (w.is_whole && !needs_peak)
		return read_files(&w, &plan, ret_profile, err);
	if (w.is_whole) {
		first = (struct sp_plan){.confidence = plan.confidence};
		return load_twice(&w, &first, &plan, ret_profile, err);
	}
	if (needs_peak || plan.within_ns != SP_NEVER)
		return load_samples(&w, ret_profile, err);
	/* Of a part they are found by other readings. */
	plan.confidence = 0;
	plan.n_points = 0;
	first = plan;
	return load_twice(&w, &first, &plan, ret_profile, err);
}
