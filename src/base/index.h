/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A hash index: positions in an array of the owner, which hashes and compares
 * its elements.  Open addressing with linear probing; nothing is ever taken
 *out. Zero-initialise.
 *
 *	struct sp_index_probe probe;
 *
 *	if (sp_index_reserve(&index) < 0)
 *		return -ENOMEM;
 *	probe = sp_index_begin(hash);
 *	while (sp_index_next(&index, &probe))
 *		if (is_wanted(&array[probe.position]))
 *			return probe.position;
 *	...append to array, which may fail...
 *	sp_index_put(&index, &probe, position);
 */
struct sp_index {
	struct sp_index_cell {
		uint32_t hash;
		uint32_t at; /* 1 + position; 0: free */
	} * cells;
	size_t n_cells; /* a power of two, at most half full, or 0 */
	size_t n;
};

/* Positions of one hash in turn; in the end the cell where it belongs. */
struct sp_index_probe {
	size_t cell;
	uint32_t hash;
	uint32_t position;
};

/* Room for one more, of at most 2^30.  0 or -ENOMEM. */
int sp_index_grow(struct sp_index *index);
static inline int sp_index_reserve(struct sp_index *index)
{
	return 2 * (index->n + 1) <= index->n_cells ? 0 : sp_index_grow(index);
}

/* The bits of sp_hash_word() that every bit of its input reaches. */
static inline struct sp_index_probe sp_index_begin(uint64_t hash)
{
	const uint32_t h = (uint32_t)(hash >> 16);

	return (struct sp_index_probe){.cell = h, .hash = h};
}

/* True: `position` may be of that hash.  Else there is no other. */
static inline bool sp_index_next(const struct sp_index *index,
				 struct sp_index_probe *probe)
{
	if (!index->n_cells)
		return false;
	for (;; probe->cell++) {
		const struct sp_index_cell *cell =
			&index->cells[probe->cell & (index->n_cells - 1)];

		if (!cell->at)
			return false;
		if (cell->hash == probe->hash) {
			probe->position = cell->at - 1;
			probe->cell++;
			return true;
		}
	}
}

/* After sp_index_reserve(), and sp_index_next() that was false since then. */
static inline void sp_index_put(struct sp_index *index,
				const struct sp_index_probe *probe,
				size_t position)
{
	index->cells[probe->cell & (index->n_cells - 1)] =
		(struct sp_index_cell){probe->hash, (uint32_t)position + 1};
	index->n++;
}

void sp_index_done(struct sp_index *index);

/* A random number for hashes of untrusted data: no file can choose what
 * collides.  Without random numbers the address will do. */
uint64_t sp_index_key(const void *address);
