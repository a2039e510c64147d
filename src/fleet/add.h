/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "fleet/db.h"
#include "symbols/symbolizer.h"

enum sp_fleet_added {
	SP_FLEET_ADDED,
	SP_FLEET_UPDATED, /* an earlier state of its process was there */
	SP_FLEET_SAME,    /* it was there, or a later state of it */
};

/*
 * Put a profile into the database, with the names of its functions: all of it,
 * or nothing.  A file is known by its id, so that any copy of it, sent any
 * number of times, counts once.  Profiles of running or killed processes and
 * damaged files are added, and marked so; a file that was cut short is -EINVAL.
 * It needs as much memory as sp_profile_read() without `every_sample`.  The
 * rows may wait for sp_fleet_flush(), which fleet/batch.h calls. 0 and *ret;
 * -EALREADY: a copy of the file is waiting; other negative errno and *err.
 */
int sp_fleet_add(struct sp_fleet_db *db, const char *path,
		 const struct sp_symbolizer_options *symbols,
		 enum sp_fleet_added *ret, struct sp_error *err);
