/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "model/profile.h"

/*
 * Modules and stacks of several profiles in one, each once.  Memory is
 * proportional to the distinct ones.
 */

struct sp_codemap {
	struct sp_profile *profile; /* that gets them; borrowed */
	struct sp_index modules;
	struct sp_index stacks;
	uint64_t key; /* random: no file can choose hashes that collide */
	size_t modules_room, stacks_room;
};

/* The id of a module that no file describes: what frames in it are is not
 * known. */
#define SP_CODEMAP_NO_MODULE UINT32_MAX

/* `profile` has no module and no stack yet. */
void sp_codemap_init(struct sp_codemap *map, struct sp_profile *profile);

/*
 * *ret_id is the id of the module that is the same: of the same path, build id,
 * size and link address.  A new one is copied, and keeps its address.  0 or
 * -ENOMEM.
 */
int sp_codemap_add_module(struct sp_codemap *map,
			  const struct sp_module *module, uint32_t *ret_id);

/*
 * *ret_position is where in profile->stacks the stack with the same flags and
 * frames is; these have the ids of sp_codemap_add_module().  A new one is
 * copied.  0 or -ENOMEM.
 */
int sp_codemap_add_stack(struct sp_codemap *map, const struct sp_stack *stack,
			 uint32_t *ret_position);

/*
 * Two processes may have had different modules at one address.  In a format
 * that knows one list of mappings for all that would be ambiguous: move the
 * later ones behind the last.  0 or -ENOMEM.
 */
int sp_codemap_spread(const struct sp_codemap *map);

void sp_codemap_done(struct sp_codemap *map);
