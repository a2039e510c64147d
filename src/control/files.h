/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "control/launch.h"

/*
 * Where profiles are written, and which exist.  `out` is a value of
 * SAMPLEPROF_OUT, or NULL for the default.
 */

/* The directory, with a slash at its end; "" is the current one.  False if a
 * part of it differs by process, or it is too long. */
bool sp_files_directory(const char *out, char dir[SP_LAUNCH_PATH_MAX]);

/*
 * Can a profile be written there? 0; -EEXIST: `out` is a single name, which
 * exists, so that the profile would get another name; or the errno of creating
 * a file in the directory; with *err.
 */
int sp_files_check(const char *out, struct sp_error *err);

struct sp_files {
	char **paths; /* ascending */
	size_t n;
};

/*
 * The profiles in a directory (from sp_files_directory()) of processes that
 * began at since_unix_ns or later.  If that is 0: the profiles of all
 * processes, and packed files, which need not be profiles.  Returns 0, or
 * negative errno and *err.
 */
int sp_files_list(const char *dir, uint64_t since_unix_ns, struct sp_files *ret,
		  struct sp_error *err);
void sp_files_free(struct sp_files *files);
