/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "model/profile.h"
#include "read/load.h"

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
		return -ESTALE;
	joined.stack = w->profile->alike[s->stack];
	return w->fn(w->arg, event, &joined);
}

int sp_profile_walk(const struct sp_profile *p, sp_sample_fn *fn, void *arg,
		    struct sp_error *err)
{
	struct walk walk = {p, fn, arg};
	const struct sp_plan plan = {.is_unordered = p->is_unordered,
				     .tell = pass_on,
				     .tell_arg = &walk};
	struct sp_profile *again;
	int r;

	if (!p->n_groups) {
		r = sp_samples_walk(p, NULL, NULL, fn, arg);
		return r == -ENOMEM ? sp_error_set(err, r, p->path,
						   "not enough memory")
				    : r;
	}
	r = sp_profile_read(p->path, &plan, NULL, NULL, &again, err);
	if (r >= 0) {
		if (again->file_id != p->file_id ||
		    sp_profile_samples(again) != sp_profile_samples(p))
			r = -ESTALE;
		sp_profile_free(again);
	}
	return r == -ESTALE || r == -EAGAIN
		       ? sp_error_set(err, r, p->path,
				      "it changed while it was read: try "
				      "again")
		       : r;
}
