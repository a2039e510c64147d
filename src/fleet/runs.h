/* SPDX-License-Identifier: MIT */
#pragma once

#include "compare/inputs.h"
#include "fleet/options.h"

/* Both sides of a comparison from a database: each process is a run. */
struct sp_fleet_runs {
	struct sp_fleet_db *db;
	const struct sp_fleet_options *options;
	double fraction[2]; /* of the old and the new side; 0: not yet known */
};

/* As sp_inputs_load(), of that side; `arg` is a struct sp_fleet_runs. */
int sp_fleet_runs_load(void *arg, struct sp_inputs *inputs, bool is_new,
		       struct sp_error *err);
