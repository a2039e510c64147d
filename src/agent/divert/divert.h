/* SPDX-License-Identifier: MIT */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/unwind/loaded.h"

/*
 * An allocator that is linked into the executable, or into a library for that
 * alone, is reached by no interposed call: the calls are direct.  So the
 * entries of its functions lead to us.
 *
 * A family is the functions that belong together under a prefix: none, or one
 * that ends in "je_", or "_rjem_", or "mi_".  All of them are diverted, or
 * none.
 */
enum sp_divert_does {
	SP_DIVERT_ALLOCATES,
	SP_DIVERT_STORES, /* the object's address, where the first argument is
			   */
	SP_DIVERT_COPIES, /* a text */
	SP_DIVERT_MOVES,
	SP_DIVERT_RESIZES, /* in place, or not at all */
	SP_DIVERT_FREES,
	SP_DIVERT_ANSWERS, /* what RESIZES asks; not diverted */
};

struct sp_divert_name {
	const char *name;
	uint8_t bytes; /* of the name */
	uint8_t does, entry;
	int8_t size, times, old;
	bool is_mi; /* mimalloc's: only with that prefix */
};

#define SP_DIVERT_NAMES 98u
#define SP_DIVERT_NAME  48u /* bytes of the longest, at most */
extern const struct sp_divert_name sp_divert_names[SP_DIVERT_NAMES]
	__attribute__((visibility("hidden")));

typedef uintptr_t sp_divert_below(uintptr_t, uintptr_t, uintptr_t, uintptr_t,
				  uintptr_t, uintptr_t);

struct sp_divert_function {
	const struct sp_divert_name *name;
	sp_divert_below *below; /* the function as it was */
	sp_divert_below *answers;
	uintptr_t entry; /* 0: the family has none of that name */
	size_t bytes;    /* of its code */
};

#define SP_DIVERT_PREFIX 32u
struct sp_divert_family {
	struct sp_loaded object; /* no map: the place is empty */
	char prefix[SP_DIVERT_PREFIX];
	struct sp_divert_function functions[SP_DIVERT_NAMES];
	bool is_diverted;
	bool is_ambiguous; /* two functions have one name */
	bool is_local;     /* without a prefix, its malloc may be of one file */
	/* Why it is not: a name without the prefix, and what of that. */
	const char *culprit, *why;
	uintptr_t room; /* its stubs and trampolines; 0: there are none */
	bool is_new;    /* nobody was told yet */
	bool was_used;  /* perhaps: it was there before us */
};

#define SP_DIVERT_FAMILIES 8 /* of all objects */
struct sp_divert_families {
	struct sp_divert_family list[SP_DIVERT_FAMILIES];
	/* The first one for which there was no room, with as much of its prefix
	 * as fits. */
	bool is_more;
	char more[SP_DIVERT_PREFIX];
};

/*
 * Where the entries lead.  `enter` gets the calls: it is jumped to as the
 * function was, but the address of its struct sp_divert_function is in r11, and
 * what was in r11 is 16 bytes below the stack pointer.  The same with less work
 * where the first argument is the size of what is allocated (enter_sized), or
 * what is freed (enter_free).  `loaded` is called in the place of the loader's
 * function that tells debuggers of a change of its list.  All keep all
 * registers.
 */
struct sp_divert_hooks {
	void (*enter)(void), (*enter_sized)(void), (*enter_free)(void);
	void (*loaded)(void);
};

/* Ours: hooks/interpose_divert_x86_64.c. */
extern const struct sp_divert_hooks sp_divert_hooks
	__attribute__((visibility("hidden")));

/* Find the families of what is loaded, and divert them.  True: one is.
 * Context: cold, at the start, while there is one thread. */
bool sp_divert_begin(const struct sp_divert_hooks *hooks);

/*
 * The same in a program that runs already; the command that attaches is to
 * write the entries (format/attach.h).  What was found before, and is still
 * there, stays as it is.  Context: cold, under the loader's lock.
 */
bool sp_divert_attach(const struct sp_divert_hooks *hooks);

/* No object that is loaded later is looked at.  Context: as above. */
void sp_divert_detach(void);

/* Is it the address of a function that is diverted, or is to be? */
bool sp_divert_is_entry(uintptr_t address);

/* The loader's list has changed: forget the families of what is gone, and look
 * at what is new.  True: there is a family, of which is_new says it.  Context:
 * cold, in the loader, under its lock. */
bool sp_divert_look(void);

/* Those that were found; by its names, one is jemalloc's. */
struct sp_divert_families *sp_divert_found(void);
bool sp_divert_is_jemalloc(const struct sp_divert_family *family);
