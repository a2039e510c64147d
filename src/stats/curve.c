/* SPDX-License-Identifier: MIT */
#include "stats/curve.h"

#include <errno.h>
#include <stdlib.h>

#include "base/blocks.h"
#include "stats/timeline.h"

static void find_next(struct sp_curve *curve)
{
	curve->next_ns =
		curve->n < curve->n_points
			? sp_timeline_place(curve->from_ns, curve->to_ns,
					    curve->n, curve->n_points)
			: SP_NEVER;
}

int sp_curve_init(struct sp_curve *curve, const struct sp_profile *profile,
		  const struct sp_selection *births, size_t n_points)
{
	*curve = (struct sp_curve){
		.points = calloc(n_points + 1, sizeof(*curve->points)),
		.n_points = n_points,
		.period_bytes = profile->period_bytes,
	};
	sp_timeline_span(profile, births, &curve->from_ns, &curve->to_ns);
	find_next(curve);
	return curve->points ? 0 : -ENOMEM;
}

int sp_curve_take(struct sp_curve *curve, const struct sp_peak_walk *walk,
		  uint64_t time_ns)
{
	while (time_ns > curve->next_ns) {
		struct sp_class_sums *point = &curve->points[curve->n++];

		sp_class_sums_init(point, curve->period_bytes);
		if (sp_peak_walk_alive(walk, point) < 0)
			return -ENOMEM;
		find_next(curve);
	}
	return 0;
}

int sp_curve_give(const struct sp_curve *curve, struct sp_profile *p)
{
	struct sp_class_sums *points = sp_blocks_copy(
		&p->storage, curve->points, curve->n * sizeof(*points));

	if (!points)
		return -ENOMEM;
	for (size_t i = 0; i < curve->n; i++) {
		struct sp_class_sums *point = &points[i];

		if (!point->n_classes)
			continue;
		point->classes = sp_blocks_copy(
			&p->storage, point->classes,
			point->n_classes * sizeof(*point->classes));
		if (!point->classes)
			return -ENOMEM;
	}
	p->curve = points;
	p->n_curve = curve->n;
	return 0;
}

void sp_curve_done(struct sp_curve *curve)
{
	for (size_t i = 0; curve->points && i < curve->n; i++)
		sp_class_sums_free(&curve->points[i]);
	free(curve->points);
}
