/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "model/profile.h"
#include "read/load.h"
#include "stats/peak.h"

struct walk {
	const struct sp_profile *profile;
	sp_sample_fn *fn;
	void *arg;
};

/* Another file may be there by now. */
static int pass_on(void *arg, enum sp_sample_event event,
		   const struct sp_sample *s)
{
	const struct walk *w = arg;
	const size_t n_threads = w->profile->n_thread_infos;
	struct sp_sample joined = *s;

	if (s->stack >= w->profile->n_stacks ||
	    (s->thread != UINT32_MAX && s->thread >= n_threads) ||
	    (s->freed_by != UINT32_MAX && s->freed_by >= n_threads))
		return -EILSEQ;
	if (w->profile->alike)
		joined.stack = w->profile->alike[s->stack];
	return w->fn(w->arg, event, &joined);
}

int sp_profile_walk(const struct sp_profile *p, sp_sample_fn *fn, void *arg,
		    struct sp_error *err)
{
	struct walk walk = {p, fn, arg};
	const struct sp_fold_plan plan = {
		.confidence = 0.5, .tell = pass_on, .tell_arg = &walk};
	struct sp_profile *again;
	int r = sp_profile_load_folded(p->path, &plan, NULL, NULL, &again, err);

	if (r < 0)
		return r;
	/* It is not folded if it cannot be, or `fn` did not want it so. */
	if (!again->peak || again->file_id != p->file_id ||
	    sp_profile_samples(again) != sp_profile_samples(p))
		r = sp_error_set(err, -ESTALE, p->path,
				 "it changed while it was read: try again");
	sp_profile_free(again);
	return r;
}
