/* SPDX-License-Identifier: MIT */
#include "pack/living.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/index.h"

void sp_living_init(struct sp_living *l)
{
	*l = (struct sp_living){.key = sp_index_key(l)};
}

/* Neighbours in id, which live at the same time, are neighbours here. */
static size_t home_of(const struct sp_living *l, uint64_t id)
{
	const uint64_t h = sp_hash_word(l->key, id >> 3) >> 16;

	return (h << 3 | (id & 7)) & (l->n_cells - 1);
}

/* The cell of an id, or the free one where it belongs. */
static struct sp_living_sample *find_cell(const struct sp_living *l,
					  uint64_t id)
{
	size_t i = home_of(l, id);

	while (l->cells[i].group && l->cells[i].id != id)
		i = (i + 1) & (l->n_cells - 1);
	return &l->cells[i];
}

struct sp_living_sample *sp_living_find(const struct sp_living *l, uint64_t id)
{
	struct sp_living_sample *cell = l->n ? find_cell(l, id) : NULL;

	return cell && cell->group ? cell : NULL;
}

static int grow(struct sp_living *l)
{
	struct sp_living bigger = {
		.key = l->key,
		.n_cells = l->n_cells ? 2 * l->n_cells : 1024,
		.n = l->n,
	};

	bigger.cells = calloc(bigger.n_cells, sizeof(*bigger.cells));
	if (!bigger.cells)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_cells; i++)
		if (l->cells[i].group)
			*find_cell(&bigger, l->cells[i].id) = l->cells[i];
	free(l->cells);
	*l = bigger;
	return 0;
}

int sp_living_add(struct sp_living *l, const struct sp_living_sample *sample)
{
	struct sp_living_sample *cell;

	if (2 * (l->n + 1) > l->n_cells && grow(l) < 0)
		return -ENOMEM;
	cell = find_cell(l, sample->id);
	if (cell->group)
		return -EEXIST;
	*cell = *sample;
	l->n++;
	return 0;
}

/* Those behind it move up, so that every one is still found from its home. */
void sp_living_drop(struct sp_living *l, struct sp_living_sample *sample)
{
	const size_t mask = l->n_cells - 1;
	size_t hole = (size_t)(sample - l->cells);

	for (size_t i = (hole + 1) & mask; l->cells[i].group;
	     i = (i + 1) & mask) {
		const size_t home = home_of(l, l->cells[i].id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		l->cells[hole] = l->cells[i];
		hole = i;
	}
	l->cells[hole].group = 0;
	l->n--;
}

void sp_living_done(struct sp_living *l)
{
	free(l->cells);
	*l = (struct sp_living){0};
}
