/* SPDX-License-Identifier: MIT */
#include "symbols/splitunit.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* Is it a regular file, or nothing?  Takes `path`; NULL: memory is short. */
static bool is_harmless(char *path, bool *is_there)
{
	struct stat st;
	bool is = path != NULL;

	if (path && stat(path, &st) == 0) {
		is = S_ISREG(st.st_mode);
		*is_there |= is;
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

void sp_splitunit_lack(Dwarf_Die *skeleton, const char *beside, char *text,
		       size_t room)
{
	const char *name = name_of(skeleton);
	char *package;
	struct stat st;

	if (!name || asprintf(&package, "%s.dwp", beside) < 0)
		return;
	if (stat(package, &st) == 0)
		snprintf(text, room,
			 "whose inlined functions are missing: they are in "
			 "%.200s, which this report cannot read; keep the "
			 "*.dwo files, or build it without -gsplit-dwarf",
			 package);
	else
		snprintf(text, room,
			 "whose inlined functions are missing: they are in "
			 "%.200s, which is not there, or of another build; "
			 "keep the *.dwo files where they were built",
			 name);
	free(package);
}
