/* SPDX-License-Identifier: MIT */
#pragma once

#include "fleet/choose.h"
#include "fleet/load.h"
#include "fleet/load_code.h"

/* What the parts of sp_fleet_load() have in common. */

/* Where a part's samples and threads are among those of the profile. */
struct place {
	size_t first_sample, n_samples; /* so many it has */
	size_t filled;                  /* so many are there by now */
	uint64_t last_sample;           /* its number, if any is there */
	size_t first_thread, n_threads;
	bool may_have_rss;
};

/* A part by the number of its process. */
struct numbered {
	uint64_t process;
	size_t part;
};

struct loader {
	struct sp_fleet_db *db;
	const struct sp_fleet_chosen *chosen;
	const struct sp_fleet_span *hours; /* NULL: every sample */
	struct sp_profile *p;
	struct sp_fleet_part *parts;
	struct place *places;        /* of each part */
	struct numbered *by_process; /* sorted */
	size_t parts_room, ours_room, places_room, threads_room, groups_room;
	struct sp_fleet_code code;
	struct sp_error *err;
};

int sp_fleet_load_fail_memory(struct loader *l);
/* The database changed meanwhile, or has not all: -EAGAIN. */
int sp_fleet_load_fail_changed(struct loader *l);

/* Some of the chosen processes, from that one on: a list of them. */
struct sp_fleet_value sp_fleet_load_list(const struct loader *l, size_t from);

/* Takes a row of what was asked for. */
typedef int sp_fleet_take_fn(struct loader *l, struct sp_fleet_rows *rows);

/* Asks for the rows of all chosen processes, list by list. */
int sp_fleet_load_table(struct loader *l, const char *sql,
			sp_fleet_take_fn *take);

/* The part of the process in the first column; negative errno and *err. */
int sp_fleet_load_find_part(struct loader *l, struct sp_fleet_rows *rows,
			    size_t *ret);

/* Resident memory, phases and snapshots of all parts. */
int sp_fleet_load_times(struct loader *l);

/* What was sampled, as groups of no time. */
int sp_fleet_load_hours(struct loader *l);

/* Exact totals, losses, threads and, unless hours do, samples of all parts,
 * which have their places. */
int sp_fleet_load_rows(struct loader *l);
