/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/aggregate.h"
#include "text/json.h"

/* The notes below the tables of the text report. */

/*
 * What limits the figures: no samples, exact totals that could not be used,
 * losses, damage, missing symbols.  `aggregate` is NULL if nothing was
 * symbolized.
 */
void sp_view_notes_print(FILE *out, const struct sp_analysis *analysis,
			 const struct sp_aggregate *aggregate);

/* The same for programs: "notes", each without the mark before it, and
 * "remedies", the commands below them; null without memory. */
void sp_view_notes_json(struct sp_json *json,
			const struct sp_analysis *analysis,
			const struct sp_aggregate *aggregate);

/* How complete the file is. */
void sp_view_notes_print_completeness(FILE *out,
				      const struct sp_profile *profile);
