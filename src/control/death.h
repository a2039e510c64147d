/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * How a process ended that this one has waited for.  The process itself cannot
 * record that in its profile.
 */

/* How often the kernel has killed a process for memory so far. */
struct sp_death_kills {
	uint64_t group;   /* kills in the control group of this process */
	uint64_t machine; /* kills on the whole machine */
	bool is_group_known;
	bool is_known; /* at least one of them */
};

void sp_death_count_kills(struct sp_death_kills *ret);

/*
 * The SP_END_* of a process with that status of waitpid().  A SIGKILL counts as
 * the kernel's if there was a kill for memory since `before` in the group of
 * this process; where that is not known, on the machine.  *is_elsewhere: there
 * was one in another group, of anybody, or of the process if it had left ours.
 */
uint64_t sp_death_kind(int status, const struct sp_death_kills *before,
		       bool *is_elsewhere);

/*
 * Store `kind` in the profile of the process `pid`, which has ended, unless the
 * file already says how it ended, or belongs to another process. 0; negative
 * errno and *err if it could not be written.
 */
int sp_death_store(const char *path, pid_t pid, uint64_t kind,
		   struct sp_error *err);
