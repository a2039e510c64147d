/* SPDX-License-Identifier: MIT */
#pragma once

#include <limits.h>

/*
 * The files that SQLite writes, the database and those beside it, as
 * base/place.h has it: no link of another user is followed, and none of another
 * user's files is written to that lie where everybody may put them.  New ones
 * are for their owner alone.
 */

/* From now on, for all databases of this process. */
void sp_sqlite_guard_files(void);

/* What was refused first since then; `why` is "": nothing. */
struct sp_sqlite_refusal {
	char name[NAME_MAX + 1]; /* without directories */
	char why[200];
};

extern struct sp_sqlite_refusal sp_sqlite_refusal;
