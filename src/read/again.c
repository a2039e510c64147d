/* SPDX-License-Identifier: MIT */
#include "read/again.h"

#include <errno.h>
#include <stdlib.h>

#include "read/load.h"

struct walk {
	const struct sp_profile *profile;
	sp_sample_fn *fn;
	void *arg;
};

/* As it is in the profile.  Another file may be there by now. */
static int pass_on(void *arg, enum sp_sample_event event,
		   const struct sp_sample *s)
{
	const struct walk *w = arg;
	const struct sp_part *part = &w->profile->parts[s->part];
	struct sp_sample mapped = *s;

	if (s->stack >= part->n_stacks ||
	    (s->thread != UINT32_MAX && s->thread >= part->n_threads) ||
	    (s->freed_by != UINT32_MAX && s->freed_by >= part->n_threads))
		return -ESTALE;
	mapped.id += part->first_id;
	mapped.stack = part->stacks[s->stack];
	if (s->thread != UINT32_MAX)
		mapped.thread += part->first_thread;
	if (s->freed_by != UINT32_MAX)
		mapped.freed_by += part->first_thread;
	return w->fn(w->arg, event, &mapped);
}

static bool is_same(const struct sp_profile *p, const struct sp_profile *again)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].file_id != again->parts[i].file_id)
			return false;
	return sp_profile_samples(p) == sp_profile_samples(again);
}

/* The files once more. */
static int read_all(const struct sp_profile *p, const struct sp_plan *plan,
		    struct sp_error *err)
{
	const char **paths = malloc(p->n_parts * sizeof(*paths));
	struct sp_profile *again;
	int r;

	if (!paths)
		return sp_error_set(err, -ENOMEM, p->path, "not enough memory");
	for (size_t i = 0; i < p->n_parts; i++)
		paths[i] = p->parts[i].path;
	r = sp_profile_read(paths, p->n_parts, plan, NULL, NULL, &again, err);
	free(paths);
	if (r < 0)
		return r;
	if (!is_same(p, again))
		r = -ESTALE;
	sp_profile_free(again);
	return r;
}

int sp_read_again(const struct sp_profile *p, sp_sample_fn *fn, void *arg,
		  struct sp_error *err)
{
	struct walk walk = {p, fn, arg};
	const struct sp_plan plan = {.is_unordered = p->is_unordered,
				     .duration_ns = p->duration_ns,
				     .tell = pass_on,
				     .tell_arg = &walk};
	const int r = read_all(p, &plan, err);

	return r == -ESTALE || r == -EAGAIN
		       ? sp_error_set(err, r, p->path,
				      "it changed while it was read: try "
				      "again")
		       : r;
}
