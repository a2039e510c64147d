/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>

/*
 * Units whose functions are in a file of their own (-gsplit-dwarf, *.dwo).
 * libdw opens that file by its name, which is untrusted: so it is not asked if
 * anything but a regular file is there.
 *
 * `skeleton` is the unit in the file at `beside`; *ret is what it stands for.
 * False: its file is not there, or is of another build.
 */
bool sp_splitunit_find(Dwarf_Die *skeleton, const char *beside, Dwarf_Die *ret);

/* What is missing then, in sp_debuginfo_lack()'s words; nothing is written if
 * it is no skeleton. */
bool sp_splitunit_lack(Dwarf_Die *skeleton, const char *beside, char *text,
		       size_t room);
