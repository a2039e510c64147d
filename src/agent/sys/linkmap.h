/* SPDX-License-Identifier: MIT */
#pragma once

#include <elf.h>
#include <link.h>
#include <stdbool.h>

/*
 * The dynamic loader's list of objects and their symbol tables, read without
 * the loader's functions: dlsym allocates and leaves dlerror() set when a
 * symbol is missing, and takes the loader's lock.
 *
 * Context: cold.  The list is stable while the process starts (the first
 * allocation happens inside the loader) and may be walked later only where a
 * concurrent dlopen is tolerable.
 */

/* The executable, first of the list, or NULL if the loader is unknown. */
const struct link_map *sp_linkmap_first(void);

/* What the loader tells debuggers: its list, and whether it is taking objects
 * out of it; NULL if the loader is unknown. */
const struct r_debug *sp_linkmap_debug(void);

/* The program headers of what the kernel executed, or NULL: the executable's,
 * unless a loader was called as a command. */
const ElfW(Phdr) * sp_linkmap_executable(unsigned long *ret_n);

/* This library; NULL while the list is not known. */
const struct link_map *sp_linkmap_self(void);

/*
 * Does it stay for as long as the process runs, since the executable needs it,
 * directly or not?  So does this library.  Ask for the objects in the order of
 * the list, with one *kept that was all zeros, once or again.  It has the names
 * that the objects so far need, in their own memory: what is beyond its room is
 * not taken for kept.
 */
#define SP_LINKMAP_NEEDED 4096u
struct sp_linkmap_kept {
	const char *needed[SP_LINKMAP_NEEDED]; /* hashed; NULL: empty */
	unsigned int n;
};
bool sp_linkmap_is_kept(struct sp_linkmap_kept *kept,
			const struct link_map *map) __attribute__((nonnull));

/*
 * Address of the function `name` that `map` defines in its default version
 * (IFUNCs resolved), or NULL.
 */
void *sp_linkmap_find(const struct link_map *map, const char *name);

/* An entry of the symbol table of `map` that defines the function `name`, in
 * any version: the first, or the one that comes behind `after`.  NULL: there is
 * no other. */
const ElfW(Sym) * sp_linkmap_symbol(const struct link_map *map,
				    const char *name, const ElfW(Sym) * after);

/* The variable of that name that `map` defines, or NULL. */
const void *sp_linkmap_variable(const struct link_map *map, const char *name);

/* The first definition behind this library in load order, which is what
 * RTLD_NEXT means for a preloaded one; *ret_provider (may be NULL) is the
 * object that defines it. */
void *sp_linkmap_next(const char *name, const struct link_map **ret_provider);

/* The first definition in load order at all: what an unbound call of the
 * program reaches. */
void *sp_linkmap_global(const char *name, const struct link_map **ret_provider);

/* What the C library itself defines: a sanitizer in the program, and a library
 * that is preloaded, may have a function of the same name, which works for the
 * program and not for us. */
void *sp_linkmap_libc(const char *name);

/* The value of a dynamic section entry, relocated if the loader has not done
 * so; 0 if there is none. */
uintptr_t sp_linkmap_dynamic(const struct link_map *map, ElfW(Sxword) tag);
