/* SPDX-License-Identifier: MIT */
#include "model/walk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/order.h"

struct moment {
	uint64_t time_ns; /* SP_NEVER: alive at the end */
	uint64_t what;    /* twice the sample's position, + 1 for its birth */
};

/* Ends before births: an address that one nanosecond frees and gives out again
 * was not there twice. */
SP_ORDER(compare_moments, struct moment,
	 SP_UP(time_ns) || SP_BY((int)(x->what & 1) - (int)(y->what & 1)) ||
		 SP_UP(what));

static bool was_alive(const struct sp_profile *p, const struct sp_sample *s)
{
	return p->has_frees && sp_sample_gone_ns(p, s) > s->born_ns;
}

/* Each is there by itself. */
static int walk_samples(const struct sp_profile *p, sp_sample_has_fn *has,
			const void *has_arg, sp_sample_fn *fn, void *arg)
{
	struct moment *moments = calloc(p->n_samples + 1, 2 * sizeof(*moments));
	size_t n = 0;
	int r = 0;

	if (!moments)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];

		if (has && !has(has_arg, s))
			continue;
		moments[n++] = (struct moment){s->born_ns, 2 * i + 1};
		if (was_alive(p, s))
			moments[n++] =
				(struct moment){sp_sample_gone_ns(p, s), 2 * i};
	}
	qsort(moments, n, sizeof(*moments), compare_moments);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct sp_sample *s = &p->samples[moments[i].what >> 1];
		const bool is_birth = moments[i].what & 1 && was_alive(p, s);

		r = fn(arg, is_birth ? SP_SAMPLE_BORN : SP_SAMPLE_SETTLED, s);
	}
	free(moments);
	return r;
}

/* What is wanted of a reading. */
struct choice {
	sp_sample_has_fn *has;
	const void *has_arg;
	sp_sample_fn *fn;
	void *arg;
};

static int pass_on(void *arg, enum sp_sample_event event,
		   const struct sp_sample *s)
{
	const struct choice *c = arg;

	return !c->has || c->has(c->has_arg, s) ? c->fn(c->arg, event, s) : 0;
}

int sp_profile_walk(const struct sp_profile *p, sp_sample_has_fn *has,
		    const void *has_arg, sp_sample_fn *fn, void *arg,
		    struct sp_error *err)
{
	struct choice choice = {has, has_arg, fn, arg};
	int r;

	if (p->n_groups)
		return p->read_again(p, pass_on, &choice, err);
	r = walk_samples(p, has, has_arg, fn, arg);
	return r == -ENOMEM ? sp_error_memory(err, p->path) : r;
}
