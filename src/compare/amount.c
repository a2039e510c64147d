/* SPDX-License-Identifier: MIT */
#include "compare/amount.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/special.h"

enum sp_view sp_amount_view(enum sp_limit_kind kind)
{
	switch (kind) {
	case SP_LIMIT_PEAK_BYTES:
		return SP_VIEW_PEAK;
	case SP_LIMIT_LIVE_BYTES:
	case SP_LIMIT_LEAK_RATE:
		return SP_VIEW_LIVE;
	case SP_LIMIT_TEMPORARY_BYTES:
		return SP_VIEW_TEMPORARY;
	default:
		return SP_VIEW_ALLOC;
	}
}

/* 1, 0, or negative errno and *err. */
static int matches_name(const struct sp_limit *limit, const char *name,
			struct sp_error *err)
{
	size_t bytes;
	const char *function = sp_paths_function(name, &bytes);
	char *module;
	int r;

	if (limit->kind == SP_LIMIT_SITE)
		return sp_paths_matches(limit->pattern, function, err);
	module = strndup(name, bytes);
	if (!module)
		return sp_error_memory(err, NULL);
	r = sp_pattern_search(limit->pattern, module, err);
	free(module);
	return r;
}

int sp_amount_frames(const struct sp_paths *paths, const struct sp_limit *limit,
		     struct sp_frame_set *ret, struct sp_error *err)
{
	const size_t n = paths->frames.n_entries;

	*ret = (struct sp_frame_set){0};
	if (!limit->pattern)
		return 0;
	ret->has = calloc(n + 1, sizeof(*ret->has));
	if (!ret->has)
		return sp_error_memory(err, NULL);
	for (size_t i = 0; i < n; i++) {
		const int r = matches_name(
			limit, sp_paths_name(paths, (uint32_t)i), err);

		if (r < 0) {
			free(ret->has);
			ret->has = NULL;
			return r;
		}
		ret->has[i] = r > 0;
	}
	return 0;
}

static int sum_exact(const struct sp_side *side, bool is_bytes,
		     struct sp_runs *ret)
{
	double *values = calloc(side->n, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++)
		values[i] = is_bytes
				    ? (double)side->run[i]->exact_alloc_bytes
				    : (double)side->run[i]->exact_alloc_objects;
	sp_runs_exact(ret, values, side->n);
	free(values);
	return 0;
}

/* The limits at another level, as those of a normal law are. */
static struct sp_interval at_level(struct sp_interval i, double level,
				   double wanted)
{
	const double scale = sp_special_normal_quantile(0.5 + wanted / 2) /
			     sp_special_normal_quantile(0.5 + level / 2);

	if (level == wanted)
		return i;
	return (struct sp_interval){i.value,
				    fmax(i.value - scale * (i.value - i.lo), 0),
				    i.value + scale * (i.hi - i.value)};
}

/* A profile has its limits at the level that was asked for, a baseline at its
 * own. */
static int sum_estimates(const struct sp_side *side, enum sp_view view,
			 struct sp_runs *ret)
{
	const double level = side->run[0]->level;
	struct sp_interval *values = calloc(side->n, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++)
		values[i] = at_level(side->run[i]->bytes[view],
				     side->run[i]->level, level);
	sp_runs_estimated(ret, values, side->n, level);
	free(values);
	return 0;
}

/* Exact, except for bytes that may belong to a neighbouring phase: the limits
 * include them. */
static int sum_phase(const struct sp_side *side, const char *phase,
		     bool is_bytes, struct sp_runs *ret)
{
	struct sp_interval *values = calloc(side->n, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < side->n; i++) {
		static const struct sp_phase_sum none;
		const struct sp_phase_sum *found =
			sp_summary_phase(side->run[i], phase);
		const struct sp_phase_sum *p = found ? found : &none;
		const double value = is_bytes ? (double)p->exact_alloc_bytes
					      : (double)p->exact_alloc_objects;
		/* an object has a byte at least */
		const double slack = (double)p->slack_bytes;

		values[i] = (struct sp_interval){
			value, value > slack ? value - slack : 0,
			value + slack};
	}
	sp_runs_estimated(ret, values, side->n, 0);
	free(values);
	return 0;
}

int sp_amount_sum(const struct sp_side *side, const struct sp_paths *paths,
		  enum sp_limit_kind kind, const char *phase,
		  const struct sp_frame_set *only, struct sp_runs *ret)
{
	const struct sp_match_of of = {
		.table = SP_VIEW_ALLOC, .phase = phase, .is_whole = true};
	const bool is_exact =
		kind == SP_LIMIT_ALLOC_BYTES || kind == SP_LIMIT_ALLOC_OBJECTS;

	if (is_exact && phase)
		return sum_phase(side, phase, kind == SP_LIMIT_ALLOC_BYTES,
				 ret);
	if (is_exact)
		return sum_exact(side, kind == SP_LIMIT_ALLOC_BYTES, ret);
	if (kind == SP_LIMIT_SITE || kind == SP_LIMIT_MODULE)
		return sp_match_sum(side, paths, &of, only, ret);
	return sum_estimates(side, sp_amount_view(kind), ret);
}
