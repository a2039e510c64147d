/* SPDX-License-Identifier: MIT */
#include "read/groups.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/saturate.h"

#define AT_MOST (UINT32_MAX - 1)

/* Hashes stay in the cells, so that growing needs nothing else. */
static int reserve(struct sp_groups_index *index, size_t used)
{
	const size_t n = index->n_cells ? 2 * index->n_cells : 1024;
	struct sp_groups_cell *cells;

	if (2 * (used + 1) <= index->n_cells)
		return 0;
	cells = calloc(n, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < index->n_cells; i++) {
		const struct sp_groups_cell cell = index->cells[i];
		size_t at = cell.hash & (n - 1);

		if (!cell.at)
			continue;
		while (cells[at].at)
			at = (at + 1) & (n - 1);
		cells[at] = cell;
	}
	free(index->cells);
	index->cells = cells;
	index->n_cells = n;
	return 0;
}

static bool same_key(const struct sp_groups_key *a,
		     const struct sp_groups_key *b)
{
	return a->stack == b->stack && a->size_bytes == b->size_bytes &&
	       a->thread == b->thread && a->period_bytes == b->period_bytes &&
	       a->entry == b->entry && a->half == b->half;
}

static int reserve_hint(struct sp_groups *g, uint32_t stack)
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

uint32_t sp_groups_find(struct sp_groups *g, const struct sp_groups_key *key)
{
	struct sp_groups_index *index = &g->group_index;
	struct sp_groups_cell *cell;
	uint64_t h;
	size_t i;

	if (key->stack < g->n_hints && g->hints[key->stack] &&
	    same_key(&g->groups[g->hints[key->stack] - 1].key, key))
		return g->hints[key->stack] - 1;
	if (reserve(index, g->n_groups) < 0 || reserve_hint(g, key->stack) < 0)
		return UINT32_MAX;
	h = sp_hash_word(g->key, key->size_bytes);
	h = sp_hash_word(h, key->period_bytes);
	h = sp_hash_word(h, (uint64_t)key->stack << 32 | key->thread) >> 16;
	for (i = h & (index->n_cells - 1);;
	     i = (i + 1) & (index->n_cells - 1)) {
		cell = &index->cells[i];
		if (!cell->at)
			break;
		if (cell->hash == (uint32_t)h &&
		    same_key(&g->groups[cell->at - 1].key, key)) {
			g->hints[key->stack] = cell->at;
			return cell->at - 1;
		}
	}
	if (g->n_groups >= AT_MOST ||
	    sp_array_reserve((void **)&g->groups, &g->groups_room, g->n_groups,
			     sizeof(*g->groups)))
		return UINT32_MAX;
	g->groups[g->n_groups] =
		(struct sp_groups_group){.key = *key, .kind = UINT32_MAX};
	*cell = (struct sp_groups_cell){(uint32_t)h, (uint32_t)g->n_groups + 1};
	return (uint32_t)g->n_groups++;
}

static struct sp_groups_class *find_class(struct sp_groups *g, uint32_t group,
					  uint32_t class)
{
	struct sp_groups_index *index = &g->class_index;
	struct sp_groups_class *c;
	struct sp_groups_cell *cell;
	uint64_t h;
	size_t i;

	if (reserve(index, g->n_classes) < 0)
		return NULL;
	h = sp_hash_word(g->key, (uint64_t)group << 32 | class) >> 16;
	for (i = h & (index->n_cells - 1);;
	     i = (i + 1) & (index->n_cells - 1)) {
		cell = &index->cells[i];
		if (!cell->at)
			break;
		c = &g->classes[cell->at - 1];
		if (cell->hash == (uint32_t)h && c->group == group &&
		    c->class == class)
			return c;
	}
	if (g->n_classes >= AT_MOST ||
	    sp_array_reserve((void **)&g->classes, &g->classes_room,
			     g->n_classes, sizeof(*g->classes)))
		return NULL;
	c = &g->classes[g->n_classes++];
	*c = (struct sp_groups_class){.group = group, .class = class};
	*cell = (struct sp_groups_cell){(uint32_t)h, (uint32_t)g->n_classes};
	return c;
}

int sp_groups_add(struct sp_groups *g, uint32_t group, uint32_t class,
		  uint64_t tail_bytes, uint64_t lived_ns)
{
	uint32_t *last = &g->groups[group].last;
	struct sp_groups_class *c;

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

void sp_groups_done(struct sp_groups *g)
{
	free(g->groups);
	free(g->hints);
	free(g->classes);
	free(g->group_index.cells);
	free(g->class_index.cells);
	*g = (struct sp_groups){0};
}
