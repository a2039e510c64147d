/* SPDX-License-Identifier: MIT */
#include "read/every_sample.h"

#include <errno.h>

#include "base/array.h"

int sp_every_sample_add(struct sp_profile *p, size_t *room,
			const struct sp_sample *s)
{
	if (p->n_samples == UINT32_MAX ||
	    sp_array_reserve((void **)&p->samples, room, p->n_samples,
			     sizeof(*s)))
		return -ENOMEM;
	p->samples[p->n_samples++] = *s;
	return 0;
}

void sp_every_sample_end(struct sp_profile *p, uint64_t window_ns)
{
	size_t kept = 0;

	sp_profile_sort_samples(p);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];

		if ((kept && p->samples[kept - 1].id == s->id) ||
		    (p->window_ns && s->freed_ns <= window_ns))
			continue;
		sp_profile_count_samples(p, s->thread, s->size_bytes, 1);
		p->samples[kept++] = *s;
	}
	p->n_samples = kept;
}
