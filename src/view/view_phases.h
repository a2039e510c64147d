/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/analysis.h"
#include "report/phases.h"
#include "text/json.h"

/*
 * The phases that the program named, with their exact totals and the estimates
 * from samples; nothing if it named none.  At most `rows`; 0: all. 0; -ENOMEM
 * and *err.
 */
int sp_view_phases_print(FILE *out, const struct sp_analysis *analysis,
			 size_t rows, struct sp_error *err);

/* --by phase: the view's estimate for each phase. 0; -ENOMEM and *err. */
int sp_view_phases_print_view(FILE *out, const struct sp_analysis *analysis,
			      struct sp_error *err);
int sp_view_phases_csv(FILE *out, const struct sp_analysis *analysis,
		       struct sp_error *err);

/* Members "phases", "stretches" and "snapshots" of an open object. */
void sp_view_phases_json(struct sp_json *json,
			 const struct sp_analysis *analysis,
			 const struct sp_phases *phases);
