/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * How much memory the process may have: what its control group (of either
 * version) and the groups above it allow, and its address space.  The kernel
 * kills a process of a group that is at its limit; at the limit of the address
 * space malloc fails.  Groups are looked for where they are mounted by custom,
 * /sys/fs/cgroup and /sys/fs/cgroup/memory; elsewhere none is found.
 */

#define SP_MEMORY_LIMIT_NONE       UINT64_MAX
#define SP_MEMORY_LIMIT_FILE_BYTES 512

struct sp_memory_limit {
	uint64_t group_bytes; /* the smallest, or SP_MEMORY_LIMIT_NONE */
	char group_file[SP_MEMORY_LIMIT_FILE_BYTES]; /* which has it; or "" */
	uint64_t address_space_bytes; /* or SP_MEMORY_LIMIT_NONE */
};

/* As it is now.  Opens some files.  Context: cold, one thread. */
void sp_memory_limit_find(struct sp_memory_limit *ret);

/* So much of the address space may a file take, whose chunks stay mapped, and
 * as much our tables: a quarter of what is left, and not less than 1 MiB. Opens
 * a file if there is a limit; SP_MEMORY_LIMIT_NONE: there is none.  Context: as
 * above. */
uint64_t sp_memory_limit_of_file(const struct sp_memory_limit *limit);

/* Reads the limit of that group again, which opens one file.  Returns the last
 * value if the file cannot be read.  Context: once in 100 ms, with the resident
 * memory. */
uint64_t sp_memory_limit_again(const struct sp_memory_limit *limit);

/*
 * For sp_memory_limit_find and its test: the smallest limit in the files `name`
 * of the directory `root` joined with `group` ("/a/b"), and of those above it
 * up to `root`.  Updates *ret if one is smaller than what it has.
 */
void sp_memory_limit_climb(struct sp_memory_limit *ret, const char *root,
			   const char *group, size_t group_bytes,
			   const char *name);
