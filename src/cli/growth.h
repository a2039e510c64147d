/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"
#include "model/profile.h"
#include "read/load.h"

/*
 * Of a process that was killed for memory: a line of the head that says how
 * much of what was alive at the end was allocated at last, and by which
 * function most.  That is in the last 2 s, or the last fifth if it ran for less
 * than 10 s; or since RSS has grown by its last tenth, if that took longer.
 * Nothing of any other process.  Reads the file once more.  0; negative errno
 * and *err.
 */
int sp_growth_print(FILE *out, const struct sp_options *options,
		    const struct sp_profile *profile, sp_progress_fn *progress,
		    void *progress_arg, struct sp_error *err);
