/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/*
 * From the ids of a file (any 32-bit number, untrusted) to array indexes, in
 * memory proportional to the ids present.  Writers count from 1: small ids
 * index an array; a hash index finds large ones. Zero-initialise.
 */
struct sp_idmap {
	uint32_t *small; /* 1 + index by id; 0: not there */
	size_t n_small;
	size_t n_ids; /* in both */
	struct sp_idmap_large {
		uint32_t id;
		uint32_t index;
	} * large;
	size_t large_room;
	struct sp_index index; /* of `large` */
	uint64_t key;          /* random: no file can choose ids that collide */
};

/* The index of id, or UINT32_MAX. */
uint32_t sp_idmap_find_large(const struct sp_idmap *map, uint32_t id);
static inline uint32_t sp_idmap_find(const struct sp_idmap *map, uint32_t id)
{
	if (id < map->n_small && map->small[id])
		return map->small[id] - 1;
	return sp_idmap_find_large(map, id);
}

/* Add an id that is not there, with an index < UINT32_MAX.  0 or -ENOMEM. */
int sp_idmap_add(struct sp_idmap *map, uint32_t id, uint32_t index);

void sp_idmap_done(struct sp_idmap *map);
