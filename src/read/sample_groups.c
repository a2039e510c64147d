/* SPDX-License-Identifier: MIT */
#include "read/sample_groups.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/saturate.h"

static bool same_key(const struct sp_sample_groups_key *a,
		     const struct sp_sample_groups_key *b)
{
	return a->stack == b->stack && a->size_bytes == b->size_bytes &&
	       a->thread == b->thread && a->period_bytes == b->period_bytes &&
	       a->entry == b->entry && a->half == b->half &&
	       a->stretch == b->stretch;
}

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

uint32_t sp_sample_groups_find(struct sp_sample_groups *g,
			       const struct sp_sample_groups_key *key)
{
	struct sp_index_probe probe;
	uint64_t h;

	if (key->stack < g->n_hints && g->hints[key->stack] &&
	    same_key(&g->groups[g->hints[key->stack] - 1].key, key))
		return g->hints[key->stack] - 1;
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
		if (same_key(&g->groups[probe.position].key, key)) {
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

static struct sp_sample_groups_class *find_class(struct sp_sample_groups *g,
						 uint32_t group, uint32_t class)
{
	struct sp_index_probe probe = sp_index_begin(
		sp_hash_word(g->key, (uint64_t)group << 32 | class));
	struct sp_sample_groups_class *c;

	if (sp_index_reserve(&g->class_index) < 0)
		return NULL;
	while (sp_index_next(&g->class_index, &probe)) {
		c = &g->classes[probe.position];
		if (c->group == group && c->class == class)
			return c;
	}
	if (sp_array_reserve((void **)&g->classes, &g->classes_room,
			     g->n_classes, sizeof(*g->classes)))
		return NULL;
	sp_index_put(&g->class_index, &probe, g->n_classes);
	c = &g->classes[g->n_classes++];
	*c = (struct sp_sample_groups_class){.group = group, .class = class};
	return c;
}

int sp_sample_groups_add(struct sp_sample_groups *g, uint32_t group,
			 uint32_t class, uint64_t tail_bytes, uint64_t lived_ns)
{
	uint32_t *last = &g->groups[group].last;
	struct sp_sample_groups_class *c;

	if (!*last || g->classes[*last - 1].class != class) {
		c = find_class(g, group, class);
		if (!c)
			return -ENOMEM;
		*last = (uint32_t)(c - g->classes) + 1;
	}
	c = &g->classes[*last - 1];
	c->samples++;
	sp_sat_add(&c->tail_bytes, tail_bytes);
	sp_sat_add(&c->lived_ns, lived_ns);
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
