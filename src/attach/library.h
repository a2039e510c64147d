/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "control/launch.h"
#include "attach/tracee.h"

/* Our library on its way into another process: by a file in memory, so that it
 * need not see our files, nor its user be able to read them. */
struct sp_library {
	char path[SP_LAUNCH_PATH_MAX];
	void *bytes;
	size_t n;
	uint64_t function; /* SP_ATTACH_FUNCTION in it */
};

struct sp_library_there {
	int fd;       /* of the process; -1: it opens the path */
	bool is_copy; /* which is there for that alone */
	uint64_t inode;
	char path[SP_LAUNCH_PATH_MAX];
};

/* 0, or negative errno and *err. */
int sp_library_read(struct sp_library *library, struct sp_error *err);
void sp_library_free(struct sp_library *library);

/* Give it to the process of `t`; `scratch` is memory there, for a name.  The
 * descriptor is to be closed there. */
void sp_library_hand_over(const struct sp_library *library, struct sp_tracee *t,
			  uint64_t scratch, struct sp_library_there *ret);

/* Nothing of it is left but what the process has mapped. */
void sp_library_clean_up(pid_t pid, const struct sp_library_there *there);

/* Where its function is once it has been loaded; 0: it was not. */
uint64_t sp_library_find(const struct sp_library *library, pid_t pid,
			 const struct sp_library_there *there);

/* Where the process has mapped our own library, of the same build, at `start`:
 * its file here; else -1.  `name` is the mapping's. */
int sp_library_open_same(pid_t pid, uint64_t start, const char *name);
