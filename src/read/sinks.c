/* SPDX-License-Identifier: MIT */
#include "read/sinks.h"

#include <errno.h>

int sp_sinks_init(struct sp_sinks *sinks, const struct sp_profile *p,
		  const struct sp_plan *plan)
{
	struct sp_selection all;

	*sinks = (struct sp_sinks){.plan = plan};
	sp_selection_init(&all);
	sinks->births = plan->births ? *plan->births : all;
	sinks->births.view = SP_VIEW_ALLOC;
	sinks->births.has_survivors = true;
	sinks->has_all = sp_selection_is_same(&sinks->births, &all);
	if (plan->confidence > 0 && p->has_frees && !plan->every_sample) {
		sinks->walk =
			sp_peak_walk_new(p, p->period_bytes, plan->confidence);
		if (!sinks->walk)
			return -ENOMEM;
	}
	return sp_curve_init(&sinks->curve, p, &sinks->births, plan->n_points);
}

bool sp_sinks_choose(const struct sp_sinks *sinks, const struct sp_profile *p,
		     const struct sp_sample *sample, uint64_t born_ns)
{
	struct sp_sample born = *sample;

	born.born_ns = born_ns;
	return sp_selection_has(&sinks->births, p, &born);
}

int sp_sinks_find_kind(const struct sp_sinks *sinks,
		       struct sp_sample_groups_group *group)
{
	group->kind = sp_peak_walk_kind(sinks->walk, group->key.size_bytes,
					group->key.period_bytes);
	if (group->kind == UINT32_MAX)
		return -ENOMEM;
	group->is_certain = sp_peak_walk_is_certain(sinks->walk, group->kind);
	return 0;
}

int sp_sinks_end(struct sp_sinks *sinks, struct sp_profile *p)
{
	struct sp_selection *births;
	struct sp_peak *peak;
	int r;

	if (!sinks->walk)
		return 0;
	peak = sp_blocks_get(&p->storage, sizeof(*peak));
	births = sp_blocks_copy(&p->storage, &sinks->births, sizeof(*births));
	r = peak && births ? sp_curve_pass(&sinks->curve, sinks->walk, SP_NEVER)
			   : -ENOMEM;
	if (r >= 0)
		r = sp_curve_give(&sinks->curve, p);
	if (r < 0)
		return r;
	sp_peak_walk_end(sinks->walk, peak);
	p->peak = peak;
	p->found_of = births;
	return 0;
}

void sp_sinks_done(struct sp_sinks *sinks)
{
	sp_peak_walk_destroy(sinks->walk);
	sp_curve_done(&sinks->curve);
}
