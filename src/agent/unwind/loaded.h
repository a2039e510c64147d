/* SPDX-License-Identifier: MIT */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the loader has in memory now, asked without its lock: by _dl_find_object
 * where there is one (glibc 2.35), else by a walk along its list (linkmap.h),
 * which other threads may be changing.
 *
 * Everything here points into the loader's memory and the object's own, which
 * is there as long as the object is.
 */
struct sp_loaded {
	const struct link_map *map;
	uintptr_t bias;
	const char *name;
	const ElfW(Phdr) * phdr;
	unsigned int n_phdr;
};

/* Find out how this loader can be asked.  Context: cold, before main. */
void sp_loaded_init(void);

/* Objects stay where they are, whatever dlclose is asked (musl). */
bool sp_loaded_is_for_good(void);

/* Name and program headers of a node of the loader's list; false: no ELF header
 * is in memory.  Context: sampled. */
bool sp_loaded_describe(const struct link_map *map, struct sp_loaded *ret);

/* The object that `pc` is in a segment of, but not the executable; false also
 * if that cannot be known now, which is counted.  Context: sampled. */
bool sp_loaded_find(uintptr_t pc, struct sp_loaded *ret);

/* The node of the object of that name and bias that the loader has at `pc`, an
 * address of it; then its program headers can be read.  NULL: it is gone.
 * Context: sampled. */
const struct link_map *sp_loaded_still(const struct sp_loaded *was,
				       uintptr_t pc);

/* Is one of the loadable segments at [from, from + bytes)? */
bool sp_loaded_covers(const struct sp_loaded *loaded, uintptr_t from,
		      size_t bytes);
