/* SPDX-License-Identifier: MIT */
/*
 * Live bytes at given moments (E21).
 *
 * A sample is alive at a range of points.  The ranges are added to a segment
 * tree: node i covers the leaves below it, leaf n + p is point p, and a point's
 * sums are those on its way to the root.  Nothing is ever subtracted, which
 * keeps the sums as exact as if each point had been summed up by itself, in
 * O(log n) additions for each sample.
 */
#include "stats/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "model/walk.h"
#include "stats/estimate.h"

void sp_timeline_span(const struct sp_profile *profile,
		      const struct sp_selection *selection,
		      uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	const uint64_t from = selection->from_ns > profile->window_ns
				      ? selection->from_ns
				      : profile->window_ns;
	uint64_t to = profile->duration_ns;

	if (selection->to_ns < to)
		to = selection->to_ns;
	*ret_from_ns = from;
	*ret_to_ns = to < from ? from : to;
}

static void place_points(const struct sp_profile *profile,
			 const struct sp_selection *selection,
			 struct sp_timeline_point *out, size_t n)
{
	uint64_t from, to;

	sp_timeline_span(profile, selection, &from, &to);
	for (size_t i = 0; i < n; i++)
		out[i].time_ns = sp_timeline_place(from, to, i, n);
}

/* The first point at or after that time; n if there is none. */
static size_t first_point(const struct sp_timeline_point *points, size_t n,
			  uint64_t time_ns)
{
	size_t i;

	SP_LOWER_BOUND(i, n, points[i].time_ns < time_ns);
	return i;
}

/* To every point in [begin, end). */
static int add_range(struct sp_class_sums *tree, size_t n, size_t begin,
		     size_t end, uint64_t size_bytes, const struct sp_acc *acc)
{
	int r = 0;

	for (begin += n, end += n; !r && begin < end; begin /= 2, end /= 2) {
		if (begin & 1)
			r = sp_class_sums_add_acc(&tree[begin++], size_bytes,
						  acc);
		if (!r && (end & 1))
			r = sp_class_sums_add_acc(&tree[--end], size_bytes,
						  acc);
	}
	return r;
}

/* What the walk over the samples adds to. */
struct tree {
	const struct sp_profile *profile;
	const struct sp_selection *births;
	const struct sp_timeline_point *points;
	size_t n;
	struct sp_class_sums *nodes;
};

static bool has_birth(const void *arg, const struct sp_sample *s)
{
	const struct tree *t = arg;

	return sp_selection_has(t->births, t->profile, s);
}

static int take_event(void *arg, enum sp_sample_event event,
		      const struct sp_sample *s)
{
	const struct tree *t = arg;
	const uint64_t gone_ns = sp_sample_gone_ns(t->profile, s);
	struct sp_acc one;

	if (event != SP_SAMPLE_SETTLED)
		return 0;
	sp_acc_init(&one, s->period_bytes);
	sp_acc_add(&one, &t->profile->law, s->size_bytes, s->offset_bytes,
		   s->period_bytes);
	return add_range(
		t->nodes, t->n, first_point(t->points, t->n, s->born_ns),
		first_point(t->points, t->n, gone_ns), s->size_bytes, &one);
}

/* In any order, if each is there by itself. */
static int add_samples(struct tree *t, struct sp_error *err)
{
	const struct sp_profile *p = t->profile;
	int r = 0;

	if (p->n_groups)
		return sp_profile_walk(p, has_birth, t, take_event, t, err);
	for (size_t i = 0; !r && i < p->n_samples; i++)
		if (has_birth(t, &p->samples[i]))
			r = take_event(t, SP_SAMPLE_SETTLED, &p->samples[i]);
	return r;
}

/* What was summed up while the file was read. */
static int add_curve(const struct sp_profile *profile, size_t n,
		     struct sp_class_sums *tree)
{
	int r = 0;

	for (size_t i = 0; !r && i < n && i < profile->n_curve; i++)
		r = sp_class_sums_merge(&tree[n + i], &profile->curve[i]);
	return r;
}

/* As a row is estimated.  What other methods need to know of a sample, where in
 * an object it hit, a curve does not. */
static int estimate_points(const struct sp_profile *profile,
			   const struct sp_estimation *how,
			   const struct sp_class_sums *tree,
			   struct sp_timeline_point *out, size_t n)
{
	const struct sp_whole whole = sp_whole_of(profile);
	struct sp_estimation row = *how;
	int r = 0;

	if (row.method != SP_METHOD_P3T)
		row.method = SP_METHOD_P3;
	for (size_t i = 0; !r && i < n; i++) {
		struct sp_class_sums point;

		sp_class_sums_init(&point, tree[n + i].all.period_bytes);
		for (size_t node = n + i; !r && node; node /= 2)
			r = sp_class_sums_merge(&point, &tree[node]);
		point.is_least = sp_whole_is_least_at(&whole, out[i].time_ns);
		point.is_unknown =
			!whole.has_rest &&
			sp_whole_is_unknown_at(&whole, out[i].time_ns);
		out[i].samples = point.all.samples;
		out[i].live_bytes = sp_estimate_bytes(&row, &point);
		out[i].live_objects = sp_estimate_objects(&row, &point);
		sp_class_sums_free(&point);
	}
	return r;
}

int sp_timeline(const struct sp_profile *profile,
		const struct sp_selection *selection,
		const struct sp_estimation *how, struct sp_timeline_point *out,
		size_t n, struct sp_error *err)
{
	struct sp_selection births = *selection;
	struct sp_class_sums *tree = calloc(n, 2 * sizeof(*tree));
	int r = -ENOMEM;

	births.view = SP_VIEW_ALLOC;
	births.has_survivors = true;
	if (tree) {
		struct tree t = {profile, &births, out, n, tree};

		place_points(profile, selection, out, n);
		for (size_t i = 0; i < 2 * n; i++)
			sp_class_sums_init(&tree[i], profile->period_bytes);
		r = profile->n_curve && sp_selection_is_same(selection,
							     profile->found_of)
			    ? add_curve(profile, n, tree)
			    : add_samples(&t, err);
		if (!r)
			r = estimate_points(profile, how, tree, out, n);
		for (size_t i = 0; i < 2 * n; i++)
			sp_class_sums_free(&tree[i]);
	}
	free(tree);
	return r == -ENOMEM ? sp_error_memory(err, profile->path) : r;
}
