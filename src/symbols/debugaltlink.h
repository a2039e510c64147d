/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>

/*
 * The debug file that dwz makes for several files to share.  A
 * .gnu_debugaltlink names it, and it may be the only place of a function's
 * name. libdw alone would open any path in such a link, even a FIFO.
 */
struct sp_debugaltlink {
	Dwarf *dwarf; /* NULL: none was asked for */
	Elf *elf;
	int fd; /* -1: none */
};

/*
 * Give `dwarf` its alternate file if it asks for one: that of the right build
 * id below one of the colon-separated `roots`, as ROOT/.build-id/xx/yyyy.debug,
 * or as ROOT/.dwz/REST for a link with such a path, or a relative one in
 * the directory of `beside`.  If there is none, `dwarf` gets
 * an empty one.
 *
 * Returns 0, and *ret to be closed after `dwarf`; or -ENOMEM, and `dwarf` must
 * not be queried.
 */
int sp_debugaltlink_open(Dwarf *dwarf, const char *roots, const char *beside,
			 struct sp_debugaltlink *ret);
void sp_debugaltlink_close(struct sp_debugaltlink *altlink);
