/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "fleet/db.h"
#include "model/profile.h"
#include "symbols/symbolizer.h"

/*
 * Modules, call stacks and names, each stored once for the whole fleet.  Their
 * ids are hashes of their contents, so that machines assign the same ids
 * without talking to each other.  A collision is detected.
 */

/* Module ids of a frame outside of all modules, and of a frame in a module that
 * the profile does not describe. */
#define SP_FLEET_ANONYMOUS 0u
#define SP_FLEET_NO_MODULE 1u

/* A frame of the column stacks.frames: two little-endian words. */
#define SP_FLEET_FRAME_BYTES 16u

/* Put the code of a profile, whose number in the database is `process`. 0 and
 * *ret_stacks, the id for each of its stacks, to be freed (free()); negative
 * errno and *err. */
int sp_fleet_put_code(struct sp_fleet_db *db, const struct sp_profile *profile,
		      uint64_t process,
		      const struct sp_symbolizer_options *symbols,
		      uint64_t **ret_stacks, struct sp_error *err);
