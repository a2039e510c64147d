/* SPDX-License-Identifier: MIT */
#include "stats/percentile.h"

#include <math.h>

/*
 * (E20) The share of what does not exceed a value grows with the value, and so
 * do its limits: each of the three is the first at which one of them has
 * reached the share.  Beyond the largest value seen there may be others, unless
 * all was recorded.
 */
struct sp_interval sp_percentile(const struct sp_value_group *groups, size_t n,
				 double share, double confidence)
{
	struct sp_acc below, above;
	struct sp_interval p = {INFINITY, INFINITY, INFINITY};
	size_t i;

	sp_acc_init(&below, groups[0].acc.period_bytes);
	above = below;
	for (i = 0; i < n; i++)
		sp_acc_merge(&above, &groups[i].acc);
	/* what was not seen may all be smaller than the smallest */
	if (sp_estimate_share(&below, &above, confidence).hi >= share)
		p.lo = -INFINITY;
	for (i = 0; i < n; i++) {
		struct sp_interval f;

		sp_acc_merge(&below, &groups[i].acc);
		sp_acc_subtract(&above, &groups[i].acc);
		f = sp_estimate_share(&below, &above, confidence);
		if (isinf(p.lo) && p.lo > 0 && f.hi >= share)
			p.lo = groups[i].value;
		if (isinf(p.value) && f.value >= share)
			p.value = groups[i].value;
		if (isinf(p.hi) && f.lo >= share)
			p.hi = groups[i].value;
	}
	/* rounding may leave the last share just below 1 */
	if (isinf(p.value))
		p.value = groups[n - 1].value;
	return p;
}
