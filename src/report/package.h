/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* The directory in which dpkg lists the files of packages. */
#define SP_PACKAGE_LISTS "/var/lib/dpkg/info"

#define SP_PACKAGE_NAME_MAX 128

/*
 * The package with the debug symbols of the file at `path`, from the lists in
 * the directory `lists`: "libsqlite3-0-dbgsym", "libc6-dbg".  False if no
 * installed package has the file.
 */
bool sp_package_of_debug(const char *lists, const char *path,
			 char name[SP_PACKAGE_NAME_MAX]);
