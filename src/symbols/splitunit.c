/* SPDX-License-Identifier: MIT */
#include "symbols/splitunit.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/served.h"

static const char *name_of(Dwarf_Die *skeleton)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(
		dwarf_attr(skeleton, DW_AT_dwo_name, &attribute));

	if (name)
		return name;
	return dwarf_formstring(
		dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attribute));
}

/* Is it a regular file that no process serves, or nothing?  libdw opens it by
 * its name.  Takes `path`; NULL: memory is short. */
static bool is_harmless(char *path, bool *is_there)
{
	const int place =
		path ? sp_patience_open(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0)
		     : -ENOMEM;
	struct stat st;
	bool is = place < 0 && place != -ENOMEM && place != -ETIMEDOUT;

	if (place >= 0) {
		is = sp_patience_know(place, &st) == 0 && S_ISREG(st.st_mode) &&
		     !sp_served_is(-1, place);
		*is_there |= is;
		close(place);
	}
	free(path);
	return is;
}

static char *join(const char *directory, size_t bytes, const char *name)
{
	char *path;

	if (name[0] == '/')
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)bytes, directory, name) < 0
		       ? NULL
		       : path;
}

bool sp_splitunit_find(Dwarf_Die *skeleton, const char *beside, Dwarf_Die *ret)
{
	const char *name = name_of(skeleton), *slash, *directory;
	Dwarf_Attribute attribute;
	bool is_there = false;
	Dwarf_Die split = {.addr = NULL};

	if (!name)
		return false;
	directory = dwarf_formstring(
		dwarf_attr(skeleton, DW_AT_comp_dir, &attribute));
	slash = strrchr(beside, '/');
	if (!is_harmless(join(slash ? beside : ".",
			      slash ? (size_t)(slash - beside) : 1, name),
			 &is_there) ||
	    (directory && !is_harmless(join(directory, strlen(directory), name),
				       &is_there)) ||
	    !is_there)
		return false;
	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, &split, NULL, NULL,
			  NULL) != 0 ||
	    !split.addr)
		return false;
	*ret = split;
	return true;
}

bool sp_splitunit_lack(Dwarf_Die *skeleton, const char *beside, char *text,
		       size_t room)
{
	const char *name = name_of(skeleton);
	char *package;
	struct stat st;

	if (!name || asprintf(&package, "%s.dwp", beside) < 0)
		return false;
	if (sp_patience_stat(AT_FDCWD, package, &st) == 0)
		snprintf(text, room,
			 "whose inlined functions are missing: they are in "
			 "%.200s, which this report cannot read; keep the "
			 "*.dwo files, or build it without -gsplit-dwarf",
			 package);
	else
		snprintf(text, room,
			 "whose inlined functions are missing: they are in "
			 "%.200s, which is not there, of another build, or "
			 "served by a process (FUSE); keep the *.dwo files "
			 "where they were built",
			 name);
	free(package);
	return true;
}
