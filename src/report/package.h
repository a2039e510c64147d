/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The directory in which dpkg lists the files of packages. */
#define SP_PACKAGE_LISTS "/var/lib/dpkg/info"

#define SP_PACKAGE_NAME_MAX 128

/*
 * The package with the debug symbols of the file at `path`, from the lists in
 * the directory `lists`: "libsqlite3-0-dbgsym", "libc6-dbg".  False if no
 * installed package has the file; nothing is asked of files where packages have
 * none, as in /home.
 */
bool sp_package_of_debug(const char *lists, const char *path,
			 char name[SP_PACKAGE_NAME_MAX]);

/* Where packages and the servers of systems have nothing, as in /home? */
bool sp_package_is_users_own(const char *path);

/* The directory in which the system's settings are. */
#define SP_PACKAGE_ETC "/etc"

/*
 * The command that installs these packages with debug symbols, for root to
 * paste: on Debian and Ubuntu they are in an archive that has to be named
 * first, unless it is in the settings of apt below `etc` already.
 */
void sp_package_print_install(FILE *out, const char *etc,
			      const char (*names)[SP_PACKAGE_NAME_MAX],
			      size_t n);

/* The server of the system with these settings that has debug files
 * (debuginfod). */
const char *sp_package_server(const char *etc);
