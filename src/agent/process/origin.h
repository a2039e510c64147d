/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where a process comes from, as the kernel says.  Read once, when the process
 * starts: later it may have entered a sandbox.  Context: cold, one thread. */

#define SP_ORIGIN_HOST_BYTES      65
#define SP_ORIGIN_CONTAINER_BYTES 65

/* The path of the executable, cut to size - 1 bytes; "": not known. */
void sp_origin_read_exe(char *path, size_t size);

/* The command line, a zero byte behind each argument, cut to `size` - 1 bytes:
 * its bytes; negative errno: there is no /proc. */
long sp_origin_read_arguments(char *text, size_t size);

/* The node's name; untouched if the kernel does not say it. */
void sp_origin_read_host(char host[SP_ORIGIN_HOST_BYTES]);

/* The id of the container, 64 hexadecimal digits; "": it is in none, or in one
 * that cannot be seen from inside. */
void sp_origin_read_container(char id[SP_ORIGIN_CONTAINER_BYTES]);

/* Was the parent started under us?  Then this process is one of possibly
 * thousands that no setting names. */
bool sp_origin_parent_is_profiled(void);

/* Was it, with that "NAME=VALUE" in its environment?  Then it has said what is
 * wrong with it. */
bool sp_origin_parent_has_said(const char *variable);
