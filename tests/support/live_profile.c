/* SPDX-License-Identifier: MIT */
#include "support/live_profile.h"

#include <stdlib.h>

void live_profile_init(struct live_profile *live, uint64_t period_bytes,
		       uint64_t duration_ns)
{
	*live = (struct live_profile){
		.profile =
			{
				.path = "in memory",
				.period_bytes = period_bytes,
				.duration_ns = duration_ns,
				.has_frees = true,
				.n_stacks = 1,
				.n_parts = 1,
			},
	};
	live->profile.stacks = &live->stack;
	live->part = (struct sp_part){.stop_ns = SP_NEVER};
	live->profile.parts = &live->part;
}

struct sp_sample *live_profile_add(struct live_profile *live, uint64_t born_ns,
				   uint64_t freed_ns, uint64_t size_bytes)
{
	struct sp_profile *p = &live->profile;

	if (p->n_samples == live->room) {
		live->room = 2 * live->room + 64;
		p->samples =
			realloc(p->samples, live->room * sizeof(*p->samples));
		if (!p->samples)
			abort();
	}
	p->samples[p->n_samples] = (struct sp_sample){
		.id = p->n_samples,
		.born_ns = born_ns,
		.freed_ns = freed_ns,
		.size_bytes = size_bytes,
		.offset_bytes = size_bytes - 1,
		.period_bytes = p->period_bytes,
		.age_bytes = SP_UNKNOWN,
		.thread = UINT32_MAX,
		.freed_by = UINT32_MAX,
	};
	return &p->samples[p->n_samples++];
}

void live_profile_clear(struct live_profile *live)
{
	live->profile.n_samples = 0;
}

void live_profile_free(struct live_profile *live)
{
	free(live->profile.samples);
}
