/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The home of a function is the file that defines it, if other files may have a
 * function of the same name: a static function, one of an unnamed namespace, a
 * function of a script.  It is the end of the function's full name (identity of
 * struct sp_symbol):
 *
 *	make(int) [in a.c]          the file, or as much of its path as no other
 *	                            file of the module shares
 *	make(int) [in a.c+0x1139]   and the address where it begins, if a.c
 *alone make(int) [in +0x1139]      does not tell, or if no file is known
 *
 * An address is of one build; all else stays from build to build.
 */
struct sp_home {
	size_t name_bytes; /* of the name in front; of all of it without a home
			    */
	const char *text;  /* within the name; NULL: it has no home */
	size_t bytes;
	size_t file_bytes; /* without the address */
};

struct sp_home sp_home_of(const char *full);

/* The full name, to be freed by the caller; NULL without memory. `file` may be
 * NULL; address 0 is none.  The name is copied if it gets neither. */
char *sp_home_join(const char *name, const char *file, uint64_t address);

/* The name without its address, or with neither home nor address; to be freed
 * by the caller, NULL without memory. */
char *sp_home_without_address(const char *full);
char *sp_home_without(const char *full);

/* The last `parts` parts of a path of n bytes; all of it, if it has no more. */
const char *sp_home_tail(const char *path, size_t n, size_t parts);

/* The number of parts that the ends of two paths share. */
size_t sp_home_common(const char *a, size_t n_a, const char *b, size_t n_b);
