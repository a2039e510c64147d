/* SPDX-License-Identifier: MIT */
#include "read/alike.h"

#include <errno.h>

#include "base/index.h"

/*
 * Into alike[i] the stack of the smallest id that is like stack i: of the first
 * of these that at once, of the others the first until the end.  0; 1 if each
 * stack is the only one, or -ENOMEM.
 */
static int find_alike(const struct sp_profile *p, struct sp_index *index,
		      uint32_t *alike)
{
	const uint64_t key = sp_index_key(p);
	int r = 1;

	for (uint32_t i = 0; i < p->n_stacks; i++) {
		const struct sp_stack *s = &p->stacks[i];
		struct sp_index_probe probe =
			sp_index_begin(sp_stack_hash(key, s));

		alike[i] = i;
		if (!s->n_frames)
			continue;
		if (sp_index_reserve(index) < 0)
			return -ENOMEM;
		while (alike[i] == i && sp_index_next(index, &probe))
			if (sp_stack_is_same(&p->stacks[probe.position], s))
				alike[i] = probe.position;
		if (alike[i] == i) {
			sp_index_put(index, &probe, i);
			continue;
		}
		r = 0;
		if (s->id < p->stacks[alike[alike[i]]].id)
			alike[alike[i]] = i;
	}
	for (uint32_t i = 0; i < p->n_stacks; i++)
		if (alike[i] < i)
			alike[i] = alike[alike[i]];
	return r;
}

int sp_profile_join_stacks(struct sp_profile *p)
{
	struct sp_index index = {0};
	uint32_t *alike =
		sp_blocks_get(&p->storage, (p->n_stacks + 1) * sizeof(*alike));
	int r = alike ? find_alike(p, &index, alike) : -ENOMEM;

	sp_index_done(&index);
	if (r < 0)
		return r;
	p->parts->stacks = alike;
	p->parts->n_stacks = p->n_stacks;
	if (r)
		return 0;
	for (size_t i = 0; i < p->n_samples; i++)
		p->samples[i].stack = alike[p->samples[i].stack];
	for (size_t i = 0; i < p->n_groups; i++)
		p->groups[i].one.stack = alike[p->groups[i].one.stack];
	return 0;
}
