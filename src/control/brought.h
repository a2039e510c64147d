/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Does a file of the process bring an allocator along that is not seen, because
 * it has no symbols?  "jemalloc in FILE", which may be cut.  The executable,
 * and files outside the directories of the system's libraries, are looked at.
 */
#define SP_BROUGHT_TEXT 160u

bool sp_brought_by_process(uint64_t pid, char text[SP_BROUGHT_TEXT]);
