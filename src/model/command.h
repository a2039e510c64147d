/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * Arguments, each ended by a NUL (the last by `bytes` if not), as one line that
 * a shell takes.  `out` has sp_command_room(bytes) bytes; a byte after the last
 * argument is a NUL.
 */
size_t sp_command_room(size_t bytes);
void sp_command_join(const char *arguments, size_t bytes, char *out);
