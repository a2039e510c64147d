/* SPDX-License-Identifier: MIT */
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* Hashes stay in the cells, so that growing needs nothing of the owner. */
int sp_index_grow(struct sp_index *index)
{
	const size_t n_cells = index->n_cells ? 2 * index->n_cells : 256;
	struct sp_index bigger = {.n_cells = n_cells};

	if (n_cells > UINT32_MAX)
		return -ENOMEM;
	bigger.cells = calloc(n_cells, sizeof(*bigger.cells));
	if (!bigger.cells)
		return -ENOMEM;
	for (size_t i = 0; i < index->n_cells; i++) {
		const struct sp_index_cell cell = index->cells[i];
		size_t at = cell.hash & (n_cells - 1);

		if (!cell.at)
			continue;
		while (bigger.cells[at].at)
			at = (at + 1) & (n_cells - 1);
		bigger.cells[at] = cell;
	}
	bigger.n = index->n;
	free(index->cells);
	*index = bigger;
	return 0;
}

void sp_index_done(struct sp_index *index)
{
	free(index->cells);
	*index = (struct sp_index){0};
}

uint64_t sp_index_key(const void *address)
{
	uint64_t key;

	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key))
		key = (uintptr_t)address;
	return key;
}
