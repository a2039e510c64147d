/* SPDX-License-Identifier: MIT */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

static struct sp_index_probe begin_probe(const struct sp_idmap *map,
					 uint32_t id)
{
	return sp_index_begin(sp_hash_word(map->key, id));
}

uint32_t sp_idmap_find_large(const struct sp_idmap *map, uint32_t id)
{
	struct sp_index_probe probe = begin_probe(map, id);

	while (sp_index_next(&map->index, &probe))
		if (map->large[probe.position].id == id)
			return map->large[probe.position].index;
	return UINT32_MAX;
}

/* Is there room for that id in the array, or can there be: at most four times
 * as much as there are ids?  Those that came too early for that stay where they
 * are. */
static bool is_small(struct sp_idmap *map, uint32_t id)
{
	size_t n = map->n_small ? map->n_small : 64;
	uint32_t *grown;

	if (id < map->n_small)
		return true;
	while (n <= id)
		n *= 2;
	if (n > 64 && n / 4 > map->n_ids)
		return false;
	grown = realloc(map->small, n * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + map->n_small, 0, (n - map->n_small) * sizeof(*grown));
	map->small = grown;
	map->n_small = n;
	return true;
}

int sp_idmap_add(struct sp_idmap *map, uint32_t id, uint32_t index)
{
	struct sp_index_probe probe;

	map->n_ids++;
	if (is_small(map, id)) {
		map->small[id] = index + 1;
		return 0;
	}
	if (!map->key)
		map->key = sp_index_key(map);
	if (sp_index_reserve(&map->index) < 0 ||
	    sp_array_reserve((void **)&map->large, &map->large_room,
			     map->index.n, sizeof(*map->large)))
		return -ENOMEM;
	probe = begin_probe(map, id);
	while (sp_index_next(&map->index, &probe))
		;
	map->large[map->index.n] = (struct sp_idmap_large){id, index};
	sp_index_put(&map->index, &probe, map->index.n);
	return 0;
}

void sp_idmap_done(struct sp_idmap *map)
{
	free(map->small);
	free(map->large);
	sp_index_done(&map->index);
	*map = (struct sp_idmap){0};
}
