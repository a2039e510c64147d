/* SPDX-License-Identifier: MIT */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"

static size_t first_cell(const struct sp_idmap *map, uint32_t id)
{
	return (id * map->multiplier >> 32) & (map->n_cells - 1);
}

uint32_t sp_idmap_find_large(const struct sp_idmap *map, uint32_t id)
{
	if (!map->n_cells)
		return UINT32_MAX;
	for (size_t i = first_cell(map, id);;
	     i = (i + 1) & (map->n_cells - 1)) {
		const struct sp_idmap_cell *cell = &map->cells[i];

		if (!cell->used)
			return UINT32_MAX;
		if (cell->id == id)
			return cell->index;
	}
}

static void insert(struct sp_idmap *map, uint32_t id, uint32_t index)
{
	size_t i = first_cell(map, id);

	while (map->cells[i].used)
		i = (i + 1) & (map->n_cells - 1);
	map->cells[i] = (struct sp_idmap_cell){true, id, index};
	map->n_used++;
}

static int grow(struct sp_idmap *map)
{
	struct sp_idmap bigger = *map;

	bigger.n_used = 0;
	bigger.n_cells = map->n_cells ? map->n_cells * 2 : 64;
	if (!bigger.multiplier) {
		/* Without random numbers the address of the map will do. */
		if (getrandom(&bigger.multiplier, sizeof(bigger.multiplier),
			      GRND_NONBLOCK) != sizeof(bigger.multiplier))
			bigger.multiplier = (uintptr_t)map * SP_HASH_MULTIPLIER;
		bigger.multiplier |= 1;
	}
	bigger.cells = calloc(bigger.n_cells, sizeof(*bigger.cells));
	if (!bigger.cells)
		return -ENOMEM;
	for (size_t i = 0; i < map->n_cells; i++)
		if (map->cells[i].used)
			insert(&bigger, map->cells[i].id, map->cells[i].index);
	free(map->cells);
	*map = bigger;
	return 0;
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
	map->n_ids++;
	if (is_small(map, id)) {
		map->small[id] = index + 1;
		return 0;
	}
	/* At most three quarters full, so that every search ends soon. */
	if (map->n_used >= map->n_cells / 4 * 3) {
		int err = grow(map);

		if (err)
			return err;
	}
	insert(map, id, index);
	return 0;
}

void sp_idmap_done(struct sp_idmap *map)
{
	free(map->small);
	free(map->cells);
	*map = (struct sp_idmap){0};
}
