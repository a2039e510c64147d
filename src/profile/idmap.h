/* SPDX-License-Identifier: MIT */
#ifndef SP_PROFILE_IDMAP_H
#define SP_PROFILE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From the ids of a file (any 32-bit number, untrusted) to array indexes:
 * open addressing, memory proportional to the ids present.  Zero-initialise.
 */
struct sp_idmap {
	struct sp_idmap_cell {
		bool used;
		uint32_t id;
		uint32_t index;
	} * cells;
	size_t n_cells;      /* a power of two, or 0 */
	uint64_t multiplier; /* random: no file can choose ids that collide */
	size_t n_used;
};

/* The index of id, or UINT32_MAX. */
uint32_t sp_idmap_find(const struct sp_idmap *map, uint32_t id);

/* Add an id that is not there.  0 or -ENOMEM. */
int sp_idmap_add(struct sp_idmap *map, uint32_t id, uint32_t index);

void sp_idmap_done(struct sp_idmap *map);

#endif
