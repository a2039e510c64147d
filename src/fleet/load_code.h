/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "fleet/choose.h"
#include "fleet/db.h"
#include "model/profile.h"

/* Call stacks of a database in a profile.  Zero-initialise. */
struct sp_fleet_code {
	uint64_t *stacks; /* id of each of the profile's */
	size_t room;
	struct sp_index by_id;
};

/* Load the stacks of the chosen processes that the query `sql` returns, with
 * their modules and names, into a profile that has none yet. 0; negative errno
 * and *err, -EUCLEAN if the database does not make sense. */
int sp_fleet_code_load(struct sp_fleet_code *code, struct sp_fleet_db *db,
		       const struct sp_fleet_chosen *chosen, const char *sql,
		       struct sp_profile *profile, struct sp_error *err);

/* *ret is the position of the stack with that id; false: there is none. */
bool sp_fleet_code_find(const struct sp_fleet_code *code, uint64_t id,
			uint32_t *ret);

void sp_fleet_code_done(struct sp_fleet_code *code);
