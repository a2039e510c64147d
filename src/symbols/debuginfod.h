/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "symbols/elffile.h"

/*
 * Debug files from the servers in $DEBUGINFOD_URLS, through libdebuginfod,
 * which is opened when it is first needed and keeps a cache of its own.
 */

/* Can it be used? 0; -EINVAL if no server is named, -ENOSYS if the library is
 * missing, or -EPERM if its cache would be in another user's directory, with a
 * remedy in *err. */
int sp_debuginfod_check(struct sp_error *err);

/* The path below which its cache is, and the environment variable that says
 * so; NULL: none does. */
const char *sp_debuginfod_cache(const char **ret_name);

/*
 * Fetch the debug file of build id `id`, and check its build id.  Returns a
 * descriptor that the caller closes and *ret_path (freed by the caller), or a
 * negative errno: -ENOENT if no server has it.
 */
int sp_debuginfod_find(const struct sp_build_id *id, char **ret_path);
