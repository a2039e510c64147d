/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "fleet/load.h"
#include "report/aggregate.h"
#include "stats/two_stage.h"

/*
 * Figures of a fleet of which only a share of the processes was recorded: each
 * is an estimate for all processes, from both stages of sampling
 * (stats/two_stage.h).
 */
struct sp_fleet_row {
	const struct sp_aggregate_function *function;
	struct sp_two_stage flat;
	struct sp_two_stage cum;
};

struct sp_fleet_drawn {
	const struct sp_aggregate *aggregate; /* borrowed */
	struct sp_fleet_row
		*rows; /* with samples in the view; most flat bytes first */
	size_t n_rows;
	struct sp_two_stage view; /* all of the view */
	/* Estimates from exact totals, which are known for each recorded unit.
	 */
	struct sp_two_stage processes;
	struct sp_two_stage exact_bytes;
	struct sp_two_stage exact_objects;
	size_t n_units; /* processes drawn together are one unit */
};

/* Was any of the n > 0 processes drawn at random? */
bool sp_fleet_is_drawn(const struct sp_fleet_part *parts, size_t n);

/*
 * The functions of an aggregate over the processes `parts`.  The view must not
 * be SP_VIEW_PEAK, which is a mean of two moments. 0, to be released; -ENOMEM,
 * -EINVAL and *err.
 */
int sp_fleet_drawn_init(struct sp_fleet_drawn *drawn,
			const struct sp_aggregate *aggregate,
			const struct sp_fleet_part *parts,
			struct sp_error *err);
void sp_fleet_drawn_done(struct sp_fleet_drawn *drawn);

/* The first `top` rows (0: all) as text, or all rows as JSON with the keys of
 * the report. */
void sp_fleet_drawn_print(FILE *out, const struct sp_fleet_drawn *drawn,
			  uint64_t top);
void sp_fleet_drawn_json(FILE *out, const struct sp_fleet_drawn *drawn);
