/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/index.h"
#include "db/db.h"
#include "model/profile.h"

/*
 * The rollup: of a process, what of a call stack was sampled in an hour, by
 * size and period.  A row says how many; all that an estimate is made of
 * (bytes, objects, variances, cross terms) is that number times what size and
 * period say, so that rows add up exactly, in any order and on any engine.
 */
struct sp_fleet_hour_key {
	uint64_t hour;  /* of birth, since 1970 */
	uint64_t stack; /* in the database */
	uint64_t size_bytes;
	uint64_t period_bytes;
	bool is_alive; /* at the end */
};

struct sp_fleet_hour {
	struct sp_fleet_hour_key key;
	uint64_t samples;
	uint64_t tail_bytes; /* sum of sizes less offsets */
};

#define SP_FLEET_HOUR_NS 3600000000000u

/* Rows that are counted until they are written: at most SP_FLEET_HOURS_MAX, so
 * that a key may be written more than once.  Zero-initialise, but for `db` and
 * `process`. */
struct sp_fleet_hours {
	struct sp_fleet_db *db;
	uint64_t process;
	uint64_t key; /* random */
	struct sp_fleet_hour *rows;
	size_t n, room;
	struct sp_index index;
	uint64_t written; /* rows: each has its number */
};

#define SP_FLEET_HOURS_MAX 65536u

/* Count a sample of a profile, with the id of its stack.  0; negative errno and
 * *err. */
int sp_fleet_hours_add(struct sp_fleet_hours *hours,
		       const struct sp_profile *profile,
		       const struct sp_sample *sample, uint64_t stack,
		       struct sp_error *err);

/* Write what was counted.  0; negative errno and *err. */
int sp_fleet_hours_write(struct sp_fleet_hours *hours, struct sp_error *err);

void sp_fleet_hours_done(struct sp_fleet_hours *hours);
