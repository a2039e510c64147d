/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * What the kernel calls the file of the object that the loader calls `name` and
 * that is mapped at that address, if the name is relative, or of this process
 * alone (/proc/self/fd/3): with " (deleted)" if the file has no name any more.
 * "": the name is good, or nothing is known, also where a sandbox may forbid to
 * ask.  It is there until the next call; one thread at a time.
 *
 * Context: sampled; it opens, reads and closes a file of the kernel.
 */
const char *sp_mapname_find(const char *name, uintptr_t address);
