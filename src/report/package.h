/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* Where dpkg keeps which files belong to which package. */
#define SP_PACKAGE_LISTS "/var/lib/dpkg/info"

#define SP_PACKAGE_NAME_MAX 128

/*
 * The package with the debug symbols of that file, by the lists in the
 * directory: "libsqlite3-0-dbgsym", "libc6-dbg".  False if no package has the
 * file, as far as this machine tells.
 */
bool sp_package_of_debug(const char *lists, const char *path,
			 char name[SP_PACKAGE_NAME_MAX]);
