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

#include "stats/estimate.h"

/* From the selection's beginning to its end. */
static void place_points(const struct sp_profile *profile,
			 const struct sp_selection *selection,
			 struct sp_timeline_point *out, size_t n)
{
	const uint64_t from = selection->from_ns > profile->window_ns
				      ? selection->from_ns
				      : profile->window_ns;
	uint64_t to = profile->duration_ns;

	if (selection->to_ns < to)
		to = selection->to_ns;
	if (to < from)
		to = from;
	for (size_t i = 0; i < n; i++)
		out[i].time_ns = sp_timeline_place(from, to, i, n);
}

/* The first point at or after that time; n if there is none. */
static size_t first_point(const struct sp_timeline_point *points, size_t n,
			  uint64_t time_ns)
{
	size_t below = 0, above = n;

	while (below < above) {
		const size_t middle = below + (above - below) / 2;

		if (points[middle].time_ns < time_ns)
			below = middle + 1;
		else
			above = middle;
	}
	return below;
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

static int add_samples(const struct sp_profile *profile,
		       const struct sp_selection *births,
		       const struct sp_timeline_point *points, size_t n,
		       struct sp_class_sums *tree)
{
	int r = 0;

	for (size_t i = 0; !r && i < profile->n_samples; i++) {
		const struct sp_sample *s = &profile->samples[i];
		struct sp_acc one;

		if (!sp_selection_has(births, profile, s))
			continue;
		sp_acc_init(&one, s->period_bytes);
		sp_acc_add(&one, &profile->law, s->size_bytes, s->offset_bytes,
			   s->period_bytes);
		r = add_range(
			tree, n, first_point(points, n, s->born_ns),
			first_point(points, n, sp_sample_gone_ns(profile, s)),
			s->size_bytes, &one);
	}
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
static int estimate_points(const struct sp_estimation *how,
			   const struct sp_class_sums *tree,
			   struct sp_timeline_point *out, size_t n)
{
	struct sp_estimation row = *how;
	int r = 0;

	if (row.method != SP_METHOD_P3T)
		row.method = SP_METHOD_P3;
	for (size_t i = 0; !r && i < n; i++) {
		struct sp_class_sums point;

		sp_class_sums_init(&point, tree[n + i].all.period_bytes);
		for (size_t node = n + i; !r && node; node /= 2)
			r = sp_class_sums_merge(&point, &tree[node]);
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
		place_points(profile, selection, out, n);
		for (size_t i = 0; i < 2 * n; i++)
			sp_class_sums_init(&tree[i], profile->period_bytes);
		r = profile->n_curve
			    ? add_curve(profile, n, tree)
			    : add_samples(profile, &births, out, n, tree);
		if (!r)
			r = estimate_points(how, tree, out, n);
		for (size_t i = 0; i < 2 * n; i++)
			sp_class_sums_free(&tree[i]);
	}
	free(tree);
	return r < 0 ? sp_error_set(err, -ENOMEM, profile->path,
				    "not enough memory for a timeline of %zu "
				    "points",
				    n)
		     : 0;
}
