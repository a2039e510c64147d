/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "report/aggregate.h"

/* Notes that view_notes.c collects from several modules. */
struct sp_view_notes {
	FILE *out;
	unsigned int count;
};

/* Begin a note; the caller writes the rest of the line. */
FILE *sp_view_note(struct sp_view_notes *notes);

/* Is the part worth a note?  It is from a thousandth of the whole on. */
bool sp_view_note_matters(double part, double whole);

/* A note on functions of the rows that have no names: their modules, why, and
 * the remedy.  No note if memory is short. */
void sp_view_note_unnamed(struct sp_view_notes *notes,
			  const struct sp_aggregate *aggregate);

/* A note on memory that the runtime of a language does not take from malloc.
 * `aggregate` may be NULL. */
void sp_view_note_runtime(struct sp_view_notes *notes,
			  const struct sp_profile *profile,
			  const struct sp_aggregate *aggregate);

/* A note on an allocator that the program brings along, and that is not seen.
 */
void sp_view_note_brought(struct sp_view_notes *notes,
			  const struct sp_profile *profile);
