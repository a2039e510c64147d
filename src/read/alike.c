/* SPDX-License-Identifier: MIT */
#include "read/alike.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"

static bool is_alike(const struct sp_stack *a, const struct sp_stack *b)
{
	if (a->flags != b->flags || a->n_frames != b->n_frames)
		return false;
	for (uint32_t i = 0; i < a->n_frames; i++)
		if (a->frames[i].module != b->frames[i].module ||
		    a->frames[i].offset != b->frames[i].offset)
			return false;
	return true;
}

static uint64_t hash_stack(uint64_t key, const struct sp_stack *s)
{
	uint64_t h = sp_hash_word(key, s->flags);

	for (uint32_t i = 0; i < s->n_frames; i++) {
		h = sp_hash_word(h, s->frames[i].module);
		h = sp_hash_word(h, s->frames[i].offset);
	}
	return h;
}

static void keep_smaller(const struct sp_profile *p, uint32_t *slot, uint32_t i)
{
	if (!*slot || p->stacks[i].id < p->stacks[*slot - 1].id)
		*slot = i + 1;
}

/* Into alike[i] the stack of the smallest id that is like stack i; false: each
 * is the only one.  The slots, a power of two, are zero. */
static bool find_alike(const struct sp_profile *p, uint32_t *alike,
		       uint32_t *slots, size_t n_slots)
{
	uint64_t key = 0;
	bool is_any = false;

	/* No file can choose hashes that collide.  Without random numbers the
	 * address will do. */
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key))
		key = (uintptr_t)p;
	for (size_t i = 0; i < p->n_stacks; i++) {
		const struct sp_stack *s = &p->stacks[i];
		size_t at = hash_stack(key, s) & (n_slots - 1);

		alike[i] = UINT32_MAX;
		if (!s->n_frames)
			continue;
		while (slots[at] && !is_alike(&p->stacks[slots[at] - 1], s))
			at = (at + 1) & (n_slots - 1);
		is_any |= slots[at];
		keep_smaller(p, &slots[at], (uint32_t)i);
		alike[i] = (uint32_t)at;
	}
	for (size_t i = 0; i < p->n_stacks; i++)
		alike[i] = alike[i] == UINT32_MAX ? (uint32_t)i
						  : slots[alike[i]] - 1;
	return is_any;
}

int sp_profile_join_stacks(struct sp_profile *p)
{
	size_t n_slots = 64;
	uint32_t *slots, *alike;

	while (n_slots / 2 < p->n_stacks)
		n_slots *= 2;
	slots = calloc(n_slots, sizeof(*slots));
	alike = sp_blocks_get(&p->storage, (p->n_stacks + 1) * sizeof(*alike));
	if (!slots || !alike) {
		free(slots);
		return -ENOMEM;
	}
	if (find_alike(p, alike, slots, n_slots)) {
		p->alike = alike;
		for (size_t i = 0; i < p->n_samples; i++)
			p->samples[i].stack = alike[p->samples[i].stack];
		for (size_t i = 0; i < p->n_groups; i++)
			p->groups[i].one.stack = alike[p->groups[i].one.stack];
	}
	free(slots);
	return 0;
}
