/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/index.h"
#include "fleet/db.h"
#include "model/profile.h"

/*
 * The rollup: the number of a process's samples by hour, call stack, size and
 * period.  Everything that an estimate needs (bytes, objects, variances, cross
 * terms) is that number times a function of size and period.  So rows add up
 * exactly, in any order and on any engine.
 */
struct sp_fleet_hour_key {
	uint64_t hour;  /* of birth, hours since 1970 */
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

/* Rows in memory until they are written: at most SP_FLEET_HOURS_MAX, so that a
 * key may be written more than once.  Zero-initialise, then set `db` and
 * `process`. */
struct sp_fleet_hours {
	struct sp_fleet_db *db;
	uint64_t process;
	uint64_t key; /* random */
	struct sp_fleet_hour *rows;
	size_t n, room;
	struct sp_index index;
	uint64_t written; /* rows so far: the number of the next one */
};

#define SP_FLEET_HOURS_MAX 65536u

/* Count a sample of a profile, with the id of its stack.  0; negative errno and
 * *err. */
int sp_fleet_hours_add(struct sp_fleet_hours *hours,
		       const struct sp_profile *profile,
		       const struct sp_sample *sample, uint64_t stack,
		       struct sp_error *err);

/* Write the rows in memory. 0; negative errno and *err. */
int sp_fleet_hours_write(struct sp_fleet_hours *hours, struct sp_error *err);

void sp_fleet_hours_done(struct sp_fleet_hours *hours);
