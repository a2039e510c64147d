/* SPDX-License-Identifier: MIT */
#ifndef SP_CONTROL_FILES_H
#define SP_CONTROL_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "control/launch.h"

/*
 * The profiles that a run has left where SAMPLEPROF_OUT says.
 */
struct sp_files {
	char path[SP_LAUNCH_PATH_MAX]; /* of process `pid`; "" if none */
	size_t others; /* profiles of processes that began since then */
};

/*
 * Look for profiles of processes that began at since_unix_ns or later, in the
 * directory of `out` (a value of SAMPLEPROF_OUT, or NULL for the default).
 * Nothing is found where that has a part that differs by process.
 */
void sp_files_find(struct sp_files *ret, const char *out, uint64_t pid,
		   uint64_t since_unix_ns);

#endif
