/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "compare/baseline.h"

/* Samples are objects that were allocated, and stand for all of them give or
 * take chance: exact totals that are out of all proportion are others'.  Where
 * the rows are known to be of so many bytes at least, too few are as wrong: one
 * that was emptied would have every function be new. */
static int check_sum(const char *path, const char *name,
		     const struct sp_path_rows *rows, uint64_t alloc_bytes,
		     uint64_t alloc_objects, uint64_t period_bytes,
		     double least, struct sp_error *err)
{
	const double chance = 20 * (double)period_bytes;
	const double bytes = (double)alloc_bytes;
	double size = 0, samples = 0, sum = 0;

	for (size_t k = 0; k < rows->n; k++) {
		size += (double)rows->at[k].acc.size_bytes;
		samples += (double)rows->at[k].acc.samples;
		sum += rows->at[k].acc.est_bytes;
	}
	if (!(least <= 2 * sum + chance))
		return sp_error_set(err, -EINVAL, path,
				    "%s does not add up: it has about %.3g "
				    "bytes of at least %.3g",
				    name, sum, least);
	if (size <= bytes && samples <= (double)alloc_objects &&
	    sum <= 2 * bytes + chance)
		return 0;
	return sp_error_set(
		err, -EINVAL, path,
		"%s does not add up: %.0f samples of %.0f bytes, about "
		"%.3g bytes in all, of %.3g bytes in %.3g objects",
		name, samples, size, sum, bytes, (double)alloc_objects);
}

/* What a run says of itself: a part is not more than the whole. */
int sp_baseline_check(const char *path, const struct sp_summary *run,
		      struct sp_error *err)
{
	const uint64_t bytes = run->exact_alloc_bytes;
	char name[64];
	int code = 0;

	if (run->exact_alloc_objects > bytes)
		return sp_error_set(
			err, -EINVAL, path,
			"\"alloc_objects\" is more than "
			"\"alloc_bytes\": each has a byte at least");
	for (int v = 0; !code && v < SP_SUMMARY_VIEWS; v++) {
		const double least = !run->has_rows[v]    ? 0
				     : v == SP_VIEW_ALLOC ? (double)bytes
							  : run->bytes[v].lo;

		snprintf(name, sizeof(name), "views.%s",
			 sp_view_name((enum sp_view)v));
		code = check_sum(path, name, &run->rows[v], bytes,
				 run->exact_alloc_objects, run->period_bytes,
				 least, err);
	}
	for (size_t i = 0; !code && i < run->n_phases; i++) {
		const struct sp_phase_sum *p = &run->phases[i];

		snprintf(name, sizeof(name), "phases.%.40s", p->name);
		if (p->exact_alloc_bytes > bytes ||
		    p->exact_alloc_objects > run->exact_alloc_objects)
			return sp_error_set(err, -EINVAL, path,
					    "%s allocated more than its run",
					    name);
		code = check_sum(path, name, &p->rows,
				 p->exact_alloc_bytes + p->slack_bytes,
				 p->exact_alloc_objects + p->slack_bytes,
				 run->period_bytes, 0, err);
	}
	return code;
}
