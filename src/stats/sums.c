/* SPDX-License-Identifier: MIT */
#include "stats/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/profile.h"
#include "model/whole.h"
#include "stats/peak.h"

void sp_selection_init(struct sp_selection *selection)
{
	*selection = (struct sp_selection){
		.view = SP_VIEW_ALLOC,
		.to_ns = SP_NEVER,
		.at_ns = SP_NEVER,
		.peak_ns = SP_NEVER,
		.within_bytes = SP_NEVER,
		.within_ns = SP_NEVER,
		.max_size_bytes = UINT64_MAX,
	};
}

static bool is_live(const struct sp_profile *profile, const struct sp_sample *s,
		    uint64_t at_ns)
{
	return at_ns == SP_NEVER
		       ? s->freed_ns == SP_NEVER &&
				 !profile->parts[s->part].lost_ns
		       : s->born_ns <= at_ns &&
				 sp_sample_gone_ns(profile, s) > at_ns;
}

static bool is_leak(const struct sp_selection *selection,
		    const struct sp_profile *profile, const struct sp_sample *s)
{
	uint64_t at = selection->at_ns == SP_NEVER
			      ? sp_sample_stop_ns(profile, s)
			      : selection->at_ns;

	return is_live(profile, s, selection->at_ns) && at >= s->born_ns &&
	       at - s->born_ns >= selection->tail_ns;
}

bool sp_selection_is_measured(const struct sp_selection *selection)
{
	return selection->view == SP_VIEW_PEAK &&
	       selection->peak_ns != SP_NEVER;
}

void sp_selection_judge(const struct sp_selection *selection,
			const struct sp_profile *profile,
			struct sp_class_sums *sums)
{
	const struct sp_whole whole = sp_whole_of(profile);
	const uint64_t at_ns = selection->view == SP_VIEW_PEAK
				       ? selection->peak_ns
				       : selection->at_ns;
	const bool is_of_moment = selection->view == SP_VIEW_LIVE ||
				  selection->view == SP_VIEW_LEAKS ||
				  selection->view == SP_VIEW_PEAK;

	sums->is_measured = sp_selection_is_measured(selection);
	sums->is_unknown = is_of_moment && !whole.has_rest &&
			   sp_whole_is_unknown_at(&whole, at_ns);
	/* Whose free was lost may have been temporary. */
	sums->is_least =
		(is_of_moment && sp_whole_is_least_at(&whole, at_ns)) ||
		(selection->view == SP_VIEW_TEMPORARY && whole.lacks_frees);
}

struct sp_acc sp_selection_terms(const struct sp_selection *selection,
				 const struct sp_profile *profile,
				 const struct sp_alike *samples)
{
	const struct sp_sample *s = samples->one;
	struct sp_acc acc;

	sp_acc_init(&acc, s->period_bytes);
	if (sp_selection_is_measured(selection))
		sp_acc_add_measured(&acc, &profile->law, s->size_bytes,
				    samples->samples, samples->tail_bytes,
				    s->period_bytes,
				    !sp_peak_measures(profile, s));
	else
		sp_acc_add_many(&acc, &profile->law, s->size_bytes,
				samples->samples, samples->tail_bytes,
				s->period_bytes);
	if (profile->resident &&
	    (selection->view == SP_VIEW_LIVE ||
	     selection->view == SP_VIEW_LEAKS) &&
	    s >= profile->samples && s < profile->samples + profile->n_samples)
		sp_acc_share(&acc, profile->resident[s - profile->samples]);
	return acc;
}

bool sp_sample_is_temporary(const struct sp_sample *s, uint64_t within_bytes,
			    uint64_t within_ns)
{
	if (s->is_temporary)
		return true;
	if (s->freed_ns == SP_NEVER || s->freed_by == UINT32_MAX ||
	    s->freed_by != s->thread)
		return false;
	if (within_ns != SP_NEVER)
		return s->freed_ns - s->born_ns <= within_ns;
	return s->age_bytes != SP_UNKNOWN && s->age_bytes <= within_bytes;
}

static bool view_has(const struct sp_selection *selection,
		     const struct sp_profile *profile,
		     const struct sp_sample *s)
{
	switch (selection->view) {
	case SP_VIEW_ALLOC:
		return selection->has_survivors ||
		       !sp_sample_is_survivor(profile, s);
	case SP_VIEW_LIVE:
		return is_live(profile, s, selection->at_ns);
	case SP_VIEW_PEAK:
		return is_live(profile, s, selection->peak_ns);
	case SP_VIEW_LEAKS:
		return is_leak(selection, profile, s);
	case SP_VIEW_TEMPORARY:
		return sp_sample_is_temporary(s, selection->within_bytes,
					      selection->within_ns) &&
		       !sp_sample_is_survivor(profile, s);
	}
	return false;
}

static bool in_phase(const struct sp_profile *profile,
		     const struct sp_sample *s, const char *phase)
{
	const struct sp_stretch *stretch =
		sp_stretch_at(profile, s->part, s->born_ns);

	return stretch && strcmp(stretch->phase, phase) == 0;
}

static uint64_t least_size(const struct sp_selection *s)
{
	return s->min_size_bytes ? s->min_size_bytes : 1;
}

bool sp_selection_is_same(const struct sp_selection *a,
			  const struct sp_selection *b)
{
	return a->from_ns == b->from_ns && a->to_ns == b->to_ns &&
	       least_size(a) == least_size(b) &&
	       a->max_size_bytes == b->max_size_bytes &&
	       a->thread == b->thread && a->phase == b->phase &&
	       a->keeps == b->keeps;
}

bool sp_selection_has(const struct sp_selection *selection,
		      const struct sp_profile *profile,
		      const struct sp_sample *s)
{
	if (s->born_ns < selection->from_ns ||
	    (selection->to_ns != SP_NEVER && s->born_ns >= selection->to_ns) ||
	    s->size_bytes < selection->min_size_bytes ||
	    s->size_bytes > selection->max_size_bytes)
		return false;
	if (selection->phase && !in_phase(profile, s, selection->phase))
		return false;
	if (selection->keeps && !selection->keeps[s->stack])
		return false;
	if (selection->thread &&
	    (s->thread == UINT32_MAX ||
	     profile->thread_infos[s->thread].index != selection->thread))
		return false;
	return view_has(selection, profile, s);
}

static int add_to_sums(struct sp_sums *sums, const struct sp_profile *profile,
		       const struct sp_selection *selection,
		       const struct sp_alike *samples)
{
	const struct sp_sample *s = samples->one;
	struct sp_class_sums *classes[3] = {&sums->all,
					    &sums->stacks[s->stack]};
	const struct sp_acc one =
		sp_selection_terms(selection, profile, samples);
	unsigned int k = 2;

	if (s->thread != UINT32_MAX)
		classes[k++] = &sums->threads[s->thread];
	for (unsigned int i = 0; i < k; i++)
		if (sp_class_sums_add_acc(classes[i], s->size_bytes, &one) < 0)
			return -ENOMEM;
	return 0;
}

static struct sp_class_sums *new_class_sums(size_t n,
					    const struct sp_class_sums *like)
{
	struct sp_class_sums *list = calloc(n ? n : 1, sizeof(*list));

	for (size_t i = 0; list && i < n; i++) {
		sp_class_sums_init(&list[i], like->all.period_bytes);
		sp_class_sums_judge(&list[i], like);
	}
	return list;
}

static int fill_sums(struct sp_sums *sums, const struct sp_profile *profile,
		     const struct sp_selection *selection)
{
	sp_class_sums_init(&sums->all, profile->period_bytes);
	sp_selection_judge(selection, profile, &sums->all);
	sums->stacks = new_class_sums(profile->n_stacks, &sums->all);
	sums->threads = new_class_sums(profile->n_thread_infos, &sums->all);
	if (!sums->stacks || !sums->threads)
		return -ENOMEM;
	for (size_t i = 0; i < sp_alike_n(profile); i++) {
		const struct sp_alike s = sp_alike_at(profile, i);

		if (sp_selection_has(selection, profile, s.one) &&
		    add_to_sums(sums, profile, selection, &s))
			return -ENOMEM;
	}
	return 0;
}

int sp_sums_new(const struct sp_profile *profile,
		const struct sp_selection *selection, struct sp_sums **ret_sums,
		struct sp_error *err)
{
	struct sp_sums *sums = calloc(1, sizeof(*sums));

	if (sums && fill_sums(sums, profile, selection) == 0) {
		*ret_sums = sums;
		return 0;
	}
	sp_sums_free(sums, profile);
	return sp_error_memory(err, profile->path);
}

void sp_sums_free(struct sp_sums *sums, const struct sp_profile *profile)
{
	if (!sums)
		return;
	for (size_t i = 0; sums->stacks && i < profile->n_stacks; i++)
		sp_class_sums_free(&sums->stacks[i]);
	for (size_t i = 0; sums->threads && i < profile->n_thread_infos; i++)
		sp_class_sums_free(&sums->threads[i]);
	sp_class_sums_free(&sums->all);
	free(sums->stacks);
	free(sums->threads);
	free(sums);
}

bool *sp_selection_stacks(const struct sp_selection *selection,
			  const struct sp_profile *p)
{
	bool *has = calloc(p->n_stacks + 1, sizeof(*has));

	for (size_t i = 0; has && i < sp_alike_n(p); i++) {
		const struct sp_sample *s = sp_alike_at(p, i).one;

		has[s->stack] |= sp_selection_has(selection, p, s);
	}
	return has;
}
