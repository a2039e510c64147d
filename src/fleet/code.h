/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "db/db.h"
#include "model/profile.h"
#include "symbols/symbolizer.h"

/*
 * Modules, call stacks and names, each once for the whole fleet.  Their ids are
 * hashes of what they are, so that machines that do not know of each other give
 * the same; an id that stands for something else is noticed.
 */

/* Of a frame outside of modules, and of one in a module that nothing
 * describes. */
#define SP_FLEET_ANONYMOUS 0u
#define SP_FLEET_NO_MODULE 1u

/* A frame of the column stacks.frames: two little-endian words. */
#define SP_FLEET_FRAME_BYTES 16u

/* Put all of a profile's, of which the number in the database is `process`.  0
 * and *ret_stacks, the id for each of its stacks, to be freed (free());
 * negative errno and *err. */
int sp_fleet_put_code(struct sp_fleet_db *db, const struct sp_profile *profile,
		      uint64_t process,
		      const struct sp_symbolizer_options *symbols,
		      uint64_t **ret_stacks, struct sp_error *err);
