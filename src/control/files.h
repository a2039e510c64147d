/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "control/launch.h"

/*
 * Where profiles go, and which are there.  `out` is a value of SAMPLEPROF_OUT,
 * or NULL for the default.
 */

/* The directory, with a slash at its end; "" is the present one.  False if it
 * has a part that differs by process, or is too long. */
bool sp_files_directory(const char *out, char dir[SP_LAUNCH_PATH_MAX]);

/*
 * Can a profile be written there?  0; -EEXIST: `out` is one name, and that is
 * taken, so that the profile would get another; or what the kernel says of the
 * directory; with *err.
 */
int sp_files_check(const char *out, struct sp_error *err);

struct sp_files {
	char **paths; /* ascending */
	size_t n;
};

/*
 * The profiles in a directory (as of sp_files_directory) of processes that
 * began at since_unix_ns or later.  0: of all, and packed files, which may turn
 * out to be no profiles.  0, or negative errno and *err.
 */
int sp_files_list(const char *dir, uint64_t since_unix_ns, struct sp_files *ret,
		  struct sp_error *err);
void sp_files_free(struct sp_files *files);
