/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "fleet/choose.h"
#include "db/db.h"
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

/* Of what was allocated from then on, and before. */
struct sp_fleet_span {
	uint64_t from_unix_ns;
	uint64_t to_unix_ns;
};

/* Does it begin and end where hours do, or nowhere (0, INT64_MAX)? */
bool sp_fleet_span_is_hours(const struct sp_fleet_span *span);

/*
 * The chosen processes as one profile, as if their files were reported together
 * (read/join.h): parts in the order of their starts, every sample by itself,
 * names embedded.
 *
 * Unless `hours` is NULL, the samples that were born in these hours are groups
 * of the rollup (fleet/hours.h), which have no times and no threads
 * (`is_timeless`), and there is nothing else that has a time.  Where that would
 * change an answer, all samples are there nevertheless: of processes that were
 * drawn or whose samples were discarded.
 *
 * 0, *ret and *ret_parts, to be freed (sp_profile_free(), free()); -EINVAL and
 * *err if there are too many, or they were sampled by different laws; -EAGAIN
 * if some were changed meanwhile; -EUCLEAN and *err if the database does not
 * make sense; other negative errno and *err.
 */
int sp_fleet_load(struct sp_fleet_db *db, const struct sp_fleet_chosen *chosen,
		  const struct sp_fleet_span *hours, struct sp_profile **ret,
		  struct sp_fleet_part **ret_parts, struct sp_error *err);

/* Takes one of several profiles, borrowed; 0, or negative errno and *err, which
 * ends it. */
typedef int sp_fleet_each_fn(void *arg, const struct sp_profile *profile,
			     const struct sp_fleet_part *part,
			     struct sp_error *err);

/*
 * Each of the chosen processes as a profile by itself, in their order, with all
 * of its samples.  They are asked for together, as many as a few hundred
 * thousand samples are of.  Results as those of sp_fleet_load().
 */
int sp_fleet_load_each(struct sp_fleet_db *db,
		       const struct sp_fleet_chosen *chosen,
		       sp_fleet_each_fn *take, void *arg, struct sp_error *err);
