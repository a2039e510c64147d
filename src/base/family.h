/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The processes that descend from one, as /proc shows them: offline code only.
 * Each is named after its parent.  One that begins or ends meanwhile may be
 * left out, and one that gets another parent meanwhile be named twice.
 */
struct sp_family {
	uint64_t *pids; /* without the first */
	size_t n;
};

/*
 * 0, with what was found until `until_ns` (sp_clock_ns()), or -ENOMEM.  Looks
 * at the descendants alone; a kernel without CONFIG_PROC_CHILDREN has to be
 * asked about every process.  Free it in any case.
 */
int sp_family_find(uint64_t pid, uint64_t until_ns, struct sp_family *ret);

/* The two ways: by the children of every thread (-ENOSYS: the kernel does not
 * list them), and by the parent of every process. */
int sp_family_by_children(uint64_t pid, uint64_t until_ns,
			  struct sp_family *ret);
int sp_family_by_parents(uint64_t pid, uint64_t until_ns,
			 struct sp_family *ret);

/* Does the process `pid` descend from `from`, in at most 1,000 steps? */
bool sp_family_has(uint64_t from, uint64_t pid);

void sp_family_free(struct sp_family *family);
