/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "report/aggregate.h"

/* Notes on the way: what view_notes.c puts together from several sources. */
struct sp_view_notes {
	FILE *out;
	unsigned int count;
};

/* Begin a note; the caller writes the rest of the line. */
FILE *sp_view_note(struct sp_view_notes *notes);

/* Is it enough to be worth a note?  A thousandth is. */
bool sp_view_note_matters(double part, double whole);

/* Functions of the rows that have no names: of which modules, why, and what
 * would give them names.  Without memory nothing is said. */
void sp_view_note_unnamed(struct sp_view_notes *notes,
			  const struct sp_aggregate *aggregate);

/* What the runtime of a language does not take from malloc; `aggregate` may be
 * NULL. */
void sp_view_note_runtime(struct sp_view_notes *notes,
			  const struct sp_profile *profile,
			  const struct sp_aggregate *aggregate);
