/* SPDX-License-Identifier: MIT */
#include "report/load.h"

#include <stdlib.h>
#include <string.h>

#include "read/load.h"
#include "stats/peak.h"
#include "stats/timeline.h"

static bool is_whole(const struct sp_question *q)
{
	for (size_t i = 0; i < SP_FILTER_COUNT; i++)
		if (q->filter.text[i])
			return false;
	return q->from.kind == SP_MOMENT_NONE && q->to.kind == SP_MOMENT_NONE &&
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

/* A point is two cuts: what is born at it is after it, what ends at it before.
 * Returns how many there are. */
static size_t choose_cuts(const struct sp_profile *p,
			  const struct sp_load_needs *needs,
			  uint64_t cuts[SP_PLAN_CUTS_MAX])
{
	const uint64_t end_ns =
		p->duration_ns > p->window_ns ? p->duration_ns : p->window_ns;
	size_t n = 0, n_distinct = 0;

	if (p->peak)
		cuts[n++] = p->peak->time_ns;
	for (size_t i = 0; p->peak && i < 2; i++)
		if (p->peak->chosen_ns[i] != SP_NEVER)
			cuts[n++] = p->peak->chosen_ns[i];
	for (size_t i = 0; needs->parts && i < needs->n_points; i++) {
		const uint64_t at = sp_timeline_place(p->window_ns, end_ns, i,
						      needs->n_points);

		if (at)
			cuts[n++] = at - 1;
		cuts[n++] = at;
	}
	qsort(cuts, n, sizeof(*cuts), compare_times);
	for (size_t i = 0; i < n; i++)
		if (!i || cuts[i] != cuts[i - 1])
			cuts[n_distinct++] = cuts[i];
	return n_distinct;
}

/* When the peak was, and how long the run, is known at the end: what was alive
 * at such moments, if the file is read again. */
static int load_twice(const char *const *files, size_t n,
		      const struct sp_load_needs *needs, struct sp_plan *plan,
		      sp_progress_fn *progress, void *progress_arg,
		      struct sp_profile **ret_profile, struct sp_error *err)
{
	const struct sp_plan first = {.confidence = plan->confidence};
	uint64_t cuts[SP_PLAN_CUTS_MAX], again[SP_PLAN_CUTS_MAX];
	bool is_same;
	int r = sp_profile_read(files, n, &first, progress, progress_arg,
				ret_profile, err);

	/* Samples that are there by themselves say it at once. */
	if (r < 0 || !(*ret_profile)->n_groups)
		return r;
	plan->cuts = cuts;
	plan->n_cuts = choose_cuts(*ret_profile, needs, cuts);
	plan->is_unordered = (*ret_profile)->is_unordered;
	plan->duration_ns = (*ret_profile)->duration_ns;
	sp_profile_free(*ret_profile);
	r = sp_profile_read(files, n, plan, progress, progress_arg, ret_profile,
			    err);
	if (r < 0 || !(*ret_profile)->n_groups)
		return r;
	is_same = choose_cuts(*ret_profile, needs, again) == plan->n_cuts &&
		  memcmp(cuts, again, plan->n_cuts * sizeof(*cuts)) == 0;
	if (is_same)
		return 0;
	sp_profile_free(*ret_profile);
	return sp_profile_load_many(files, n, progress, progress_arg,
				    ret_profile, err);
}

int sp_load(const char *const *files, size_t n, const struct sp_question *q,
	    const struct sp_load_needs *needs, sp_progress_fn *progress,
	    void *progress_arg, struct sp_profile **ret_profile,
	    struct sp_error *err)
{
	struct sp_plan plan = plan_of(q, needs);

	if (!is_whole(q))
		return sp_profile_load_many(files, n, progress, progress_arg,
					    ret_profile, err);
	if (needs->peak || needs->parts ||
	    (q->has_view && q->view == SP_VIEW_PEAK))
		return load_twice(files, n, needs, &plan, progress,
				  progress_arg, ret_profile, err);
	return sp_profile_read(files, n, &plan, progress, progress_arg,
			       ret_profile, err);
}
