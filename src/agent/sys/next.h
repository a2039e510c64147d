/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The allocator below: for every entry point the definition that the program
 * would have reached without us, or what does the same without calling the
 * program's malloc in its turn.  All are looked up at once, by the first call
 * of anything, through the loader's tables (linkmap.h) and without allocating.
 *
 * A member is NULL if nothing below defines it, except that malloc, calloc,
 * realloc and free are always set once sp_next_resolve has returned true.
 */
struct sp_next {
#define SP_NEXT(member, symbol, ret, args) ret(*member) args;
#include "agent/sys/next.def"
#undef SP_NEXT
	/*
	 * Which operators are to be counted here: those of an object that has a
	 * malloc itself, this one or another.  The others (libstdc++'s) call
	 * malloc, where they are counted.  Of other functions: those of the
	 * object that defines malloc.
	 */
#define SP_NEXT(member, symbol, ret, args) bool member##_is_own;
#include "agent/sys/next.def"
#undef SP_NEXT
	/* What the program itself reaches: another, if a malloc stands before
	 * this library.  Its objects are not of the allocator below. */
	void (*free_before)(void *);
	void *(*realloc_before)(void *, size_t);
};

extern struct sp_next sp_next __attribute__((visibility("hidden")));

/* Look everything up unless done.  False: no allocator below is known yet;
 * nothing may be called.  Context: any; the first call is made by the loader
 * before there are threads. */
bool sp_next_resolve(void);

/* The same for a library that a running program has loaded: the allocator below
 * is the one that the program reaches, wherever it stands.  Context: cold, by
 * one thread, before any of our functions is called. */
bool sp_next_resolve_last(void);

/* The object that provides malloc below; NULL before sp_next_resolve. */
struct link_map;
const struct link_map *sp_next_provider_map(void);

/* Path of the object that provides malloc below, "" if unknown. */
const char *sp_next_provider(void);
