/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "fleet/choose.h"
#include "fleet/db.h"
#include "model/profile.h"

/* The limit of parts in a profile (struct sp_sample). */
#define SP_FLEET_PROCESSES_MAX 65535u

/* One for each of a profile's `parts`: what the profile itself does not store.
 */
struct sp_fleet_part {
	uint64_t process; /* in the database */
	double fraction;  /* probability with which it was recorded, (0, 1] */
	uint64_t draw;    /* 0: it was not drawn */
	uint64_t coins; /* that say which of its samples choose: stats/peak.h */
};

/* Objects that were born in [from, to). */
struct sp_fleet_span {
	uint64_t from_unix_ns;
	uint64_t to_unix_ns;
};

/* Are both ends full hours, or unlimited (0, INT64_MAX)? */
bool sp_fleet_span_is_hours(const struct sp_fleet_span *span);

/*
 * The chosen processes as one profile, as if their files were reported together
 * (read/join.h): parts in the order of their starts, every sample by itself,
 * names embedded.
 *
 * Unless `hours` is NULL, the profile has the samples that were born in these
 * hours as groups of the rollup (fleet/hours.h).  Groups have no times and no
 * threads (`is_timeless`), and the profile then has nothing else with a time.
 * Processes that were drawn, or whose samples were discarded, are loaded with
 * all samples, because the rollup would change their answers.
 *
 * 0, *ret and *ret_parts, to be freed (sp_profile_free(), free()); -EINVAL and
 * *err if there are too many, or they were sampled by different laws; -EAGAIN
 * if some were changed meanwhile; -EUCLEAN and *err if the database does not
 * make sense; other negative errno and *err.
 */
int sp_fleet_load(struct sp_fleet_db *db, const struct sp_fleet_chosen *chosen,
		  const struct sp_fleet_span *hours, struct sp_profile **ret,
		  struct sp_fleet_part **ret_parts, struct sp_error *err);

/* Called with one profile after the other, borrowed. 0 to continue, or negative
 * errno and *err to stop. */
typedef int sp_fleet_each_fn(void *arg, const struct sp_profile *profile,
			     const struct sp_fleet_part *part,
			     struct sp_error *err);

/*
 * Each of the chosen processes as a profile by itself, in their order, with all
 * of its samples.  One query asks for as many processes as have a few hundred
 * thousand samples together.  Returns what sp_fleet_load() returns.
 */
int sp_fleet_load_each(struct sp_fleet_db *db,
		       const struct sp_fleet_chosen *chosen,
		       sp_fleet_each_fn *take, void *arg, struct sp_error *err);
