/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/labels.h"
#include "fleet/db.h"

/* Which processes of a database: those that match all conditions. */

#define SP_FLEET_LABELS_MAX 32u

struct sp_fleet_filter {
	struct sp_label labels[SP_FLEET_LABELS_MAX];
	size_t n_labels;
	/* A process has none of these. */
	struct sp_label without[SP_FLEET_LABELS_MAX];
	size_t n_without;
	const char *host; /* NULL: any */
	/* The process ran at some moment between these. */
	uint64_t from_unix_ns;
	uint64_t to_unix_ns; /* INT64_MAX: no limit */
};

/* Processes by their numbers in the database, in the order of their starts. */
struct sp_fleet_chosen {
	uint64_t *processes;
	uint64_t *samples; /* how many each of them has; NULL: not known */
	size_t n;
};

/* Those that match, to be released.  0; -ENOENT and *err if there are none;
 * other negative errno and *err. */
int sp_fleet_choose(struct sp_fleet_db *db,
		    const struct sp_fleet_filter *filter,
		    struct sp_fleet_chosen *ret, struct sp_error *err);
void sp_fleet_chosen_done(struct sp_fleet_chosen *chosen);
