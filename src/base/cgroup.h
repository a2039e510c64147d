/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where groups are mounted by custom, with the group's name behind it. */
#define SP_CGROUP_ROOT(is_v1)                                                  \
	((is_v1) ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup")

/*
 * The group in the text of /proc/PID/cgroup whose memory is limited: the one of
 * the controller "memory" of the first version, else that of the second.  How
 * long it is; *ret_group points into the text, and no 0 is behind it.  0: there
 * is none, or it lies outside of what the process can see.
 */
size_t sp_cgroup_memory(const char *text, const char **ret_group,
			bool *ret_is_v1);
