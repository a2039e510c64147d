/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>

/*
 * The debug file that others share, as dwz makes it: a .gnu_debugaltlink names
 * it, and names of functions may be there alone.  libdw left to itself opens
 * whatever path such a link has, be it a FIFO.
 */
struct sp_debugaltlink {
	Dwarf *dwarf; /* NULL: none was asked for */
	Elf *elf;
	int fd; /* -1: none */
};

/*
 * Give `dwarf` its alternate file if it asks for one: that of the right build
 * id below one of the colon-separated `roots`, as ROOT/.build-id/xx/yyyy.debug,
 * or as ROOT/.dwz/REST for a link with such a path.  If there is none it gets
 * an empty one.
 *
 * Returns 0, and *ret to be closed after `dwarf`; or -ENOMEM, and nothing may
 * be asked of `dwarf`.
 */
int sp_debugaltlink_open(Dwarf *dwarf, const char *roots,
			 struct sp_debugaltlink *ret);
void sp_debugaltlink_close(struct sp_debugaltlink *altlink);
