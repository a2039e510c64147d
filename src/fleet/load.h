/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "fleet/db.h"
#include "model/profile.h"

/* More are not parts of one profile (struct sp_sample). */
#define SP_FLEET_PROCESSES_MAX 65535u

/* By position in a profile's `parts`, of what the profile has no place for. */
struct sp_fleet_part {
	uint64_t process; /* in the database */
	double fraction;  /* probability with which it was recorded, (0, 1] */
	uint64_t draw;    /* 0: it was not drawn */
	uint64_t coins;   /* of its samples: stats/peak.h */
};

/*
 * The processes of temp.chosen as one profile, as if their files were reported
 * together (read/join.h): parts in the order of their starts, every sample by
 * itself, names embedded.  Resident memory, phases and snapshots are not there.
 * 0, *ret and *ret_parts, to be freed (sp_profile_free(), free()); -EINVAL and
 * *err if there are too many, or they were sampled by different laws; -EUCLEAN
 * and *err if the database does not make sense; other negative errno and *err.
 */
int sp_fleet_load(struct sp_fleet_db *db, struct sp_profile **ret,
		  struct sp_fleet_part **ret_parts, struct sp_error *err);
