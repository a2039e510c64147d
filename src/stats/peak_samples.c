/* SPDX-License-Identifier: MIT */
/* Which samples choose; the peak of samples that a profile has, or its files
 * once more. */
#include <errno.h>

#include "base/rng.h"
#include "model/walk.h"
#include "stats/peak.h"

uint64_t sp_peak_coins(uint64_t seed, uint64_t start_unix_ns)
{
	seed ^= start_unix_ns;
	return sp_splitmix64(&seed);
}

unsigned int sp_peak_toss(uint64_t coins, uint64_t id, uint64_t offset_bytes)
{
	uint64_t state = coins ^ offset_bytes;

	state = sp_splitmix64(&state) ^ id;
	return sp_splitmix64(&state) % SP_PEAK_CHOOSES != 0;
}

bool sp_peak_measures(const struct sp_profile *profile,
		      const struct sp_sample *s)
{
	return s->role ? s->role - 1u
		       : sp_peak_toss(sp_peak_coins(profile->seed,
						    profile->start_unix_ns),
				      s->id, s->offset_bytes);
}

struct births {
	const struct sp_profile *profile;
	const struct sp_selection *selection;
	struct sp_peak_walk *walk;
};

static bool has_birth(const void *arg, const struct sp_sample *s)
{
	const struct births *b = arg;

	return sp_sample_gone_ns(b->profile, s) > s->born_ns &&
	       sp_selection_has(b->selection, b->profile, s);
}

static int take_event(void *arg, enum sp_sample_event event,
		      const struct sp_sample *s)
{
	const struct births *b = arg;
	const uint64_t gone_ns = sp_sample_gone_ns(b->profile, s);
	const uint32_t kind =
		sp_peak_walk_kind(b->walk, s->size_bytes, s->period_bytes);
	const uint32_t object = kind << 1 | sp_peak_measures(b->profile, s);

	if (kind == UINT32_MAX)
		return -ENOMEM;
	if (event == SP_SAMPLE_BORN)
		sp_peak_walk_birth(b->walk, object, s->born_ns);
	else if (gone_ns != SP_NEVER)
		sp_peak_walk_free(b->walk, object, gone_ns);
	return 0;
}

/* The largest period of what is selected. */
static uint64_t largest_period(const struct births *b)
{
	const struct sp_profile *p = b->profile;
	uint64_t period_bytes = p->period_bytes;

	for (size_t i = 0; i < sp_alike_n(p); i++) {
		const struct sp_sample *s = sp_alike_at(p, i).one;

		if (s->period_bytes > period_bytes && has_birth(b, s))
			period_bytes = s->period_bytes;
	}
	return period_bytes;
}

int sp_peak(const struct sp_profile *profile,
	    const struct sp_selection *selection, double confidence,
	    struct sp_peak *ret, struct sp_error *err)
{
	struct sp_selection of = *selection;
	struct births births = {.profile = profile, .selection = &of};
	int r = -ENOMEM;

	if (profile->peak &&
	    sp_selection_is_same(selection, profile->found_of)) {
		*ret = *profile->peak;
		return 0;
	}
	of.view = SP_VIEW_ALLOC;
	of.has_survivors = true;
	births.walk =
		sp_peak_walk_new(profile, largest_period(&births), confidence);
	if (births.walk)
		r = sp_profile_walk(profile, has_birth, &births, take_event,
				    &births, err);
	if (r >= 0)
		sp_peak_walk_end(births.walk, ret);
	sp_peak_walk_destroy(births.walk);
	return r == -ENOMEM ? sp_error_memory(err, profile->path) : r;
}
