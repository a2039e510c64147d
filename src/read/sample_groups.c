/* SPDX-License-Identifier: MIT */
#include "read/sample_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

static int reserve_hint(struct sp_sample_groups *g, uint32_t stack)
{
	size_t n = g->n_hints ? g->n_hints : 1024;
	uint32_t *grown;

	if (stack < g->n_hints)
		return 0;
	while (n <= stack)
		n *= 2;
	grown = realloc(g->hints, n * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + g->n_hints, 0, (n - g->n_hints) * sizeof(*grown));
	g->hints = grown;
	g->n_hints = n;
	return 0;
}

uint32_t sp_sample_groups_search(struct sp_sample_groups *g,
				 const struct sp_sample_groups_key *key)
{
	struct sp_index_probe probe;
	uint64_t h;

	if (sp_index_reserve(&g->group_index) < 0 ||
	    reserve_hint(g, key->stack) < 0)
		return UINT32_MAX;
	h = sp_hash_word(g->key, key->size_bytes);
	h = sp_hash_word(h, key->period_bytes);
	h = sp_hash_word(h, (uint64_t)key->stack << 32 | key->thread);
	if (key->stretch)
		h = sp_hash_word(h, key->stretch);
	probe = sp_index_begin(h);
	while (sp_index_next(&g->group_index, &probe))
		if (sp_sample_groups_same(&g->groups[probe.position].key,
					  key)) {
			g->hints[key->stack] = probe.position + 1;
			return probe.position;
		}
	if (sp_array_reserve((void **)&g->groups, &g->groups_room, g->n_groups,
			     sizeof(*g->groups)))
		return UINT32_MAX;
	g->groups[g->n_groups] = (struct sp_sample_groups_group){
		.key = *key, .kind = UINT32_MAX};
	sp_index_put(&g->group_index, &probe, g->n_groups);
	return (uint32_t)g->n_groups++;
}

int sp_sample_groups_find_class(struct sp_sample_groups *g, uint32_t group,
				uint32_t class)
{
	struct sp_index_probe probe = sp_index_begin(
		sp_hash_word(g->key, (uint64_t)group << 32 | class));
	uint32_t *last = &g->groups[group].last;

	if (sp_index_reserve(&g->class_index) < 0)
		return -ENOMEM;
	while (sp_index_next(&g->class_index, &probe)) {
		const struct sp_sample_groups_class *c =
			&g->classes[probe.position];

		if (c->group != group || c->class != class)
			continue;
		*last = probe.position + 1;
		return 0;
	}
	if (sp_array_reserve((void **)&g->classes, &g->classes_room,
			     g->n_classes, sizeof(*g->classes)))
		return -ENOMEM;
	sp_index_put(&g->class_index, &probe, g->n_classes);
	g->classes[g->n_classes++] =
		(struct sp_sample_groups_class){.group = group, .class = class};
	*last = (uint32_t)g->n_classes;
	return 0;
}

void sp_sample_groups_end(struct sp_sample_groups *g)
{
	sp_index_done(&g->group_index);
	sp_index_done(&g->class_index);
	free(g->hints);
	g->hints = NULL;
	g->n_hints = 0;
}

void sp_sample_groups_done(struct sp_sample_groups *g)
{
	sp_sample_groups_end(g);
	free(g->groups);
	free(g->classes);
	*g = (struct sp_sample_groups){0};
}
