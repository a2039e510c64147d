/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_SYS_REAL_H
#define SP_AGENT_SYS_REAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The allocator below: for every entry point the definition that the program
 * would have reached without us, or what does the same without calling the
 * program's malloc in its turn.  All are looked up at once, by the first call
 * of anything, through the loader's tables (linkmap.h) and without allocating.
 *
 * A member is NULL if nothing below defines it, except that malloc, calloc,
 * realloc and free are always set once sp_real_resolve has returned true.
 */
struct sp_real {
#define SP_REAL(member, symbol, ret, args) ret(*member) args;
#include "agent/sys/real.def"
#undef SP_REAL
	/*
	 * Which operators are to be counted here: those defined by the object
	 * that defines malloc.  The others (libstdc++'s) call malloc, where
	 * they are counted.
	 */
#define SP_REAL(member, symbol, ret, args) bool member##_is_own;
#include "agent/sys/real.def"
#undef SP_REAL
};

extern struct sp_real sp_real __attribute__((visibility("hidden")));

/* Look everything up unless done.  False: no allocator below is known yet;
 * nothing may be called.  Context: any; the first call is made by the loader
 * before there are threads. */
bool sp_real_resolve(void);

/* Path of the object that provides malloc below, "" if unknown. */
const char *sp_real_provider(void);

#endif
