/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/error.h"
#include "model/profile.h"

/*
 * Names of code that a runtime made while the program ran: what node, CPython,
 * the JVM and others write for perf.  Two kinds of files:
 *
 *	perf-PID.map  a line for each function: start and size in hex, name
 *	jit-PID.dump  records of code that was made, and that moved
 *
 * A runtime puts new code where old code was.  The last entry of an address
 * speaks for it; if an earlier one had another name, it is marked.
 *
 * Zero-initialise; add files or their contents; seal; find.
 */
struct sp_jit_entry {
	uint64_t start;
	uint64_t end; /* one past the last; > start */
	const char *name;
	const char *file; /* NULL: not known */
	uint32_t line;    /* of the function; 0: not known */
};

struct sp_jit_piece {
	uint64_t start;
	uint32_t entry; /* UINT32_MAX: none until the next piece */
	bool is_reused;
};

struct sp_jitmap {
	struct sp_jit_entry *entries; /* by time */
	size_t n_entries, entries_room;
	struct sp_jit_piece *pieces; /* by start, once sealed */
	size_t n_pieces;
	struct sp_blocks texts;
	char problem[200]; /* why a file was not used; "": no trouble */
};

/* More entries than any runtime writes; later ones are left out. */
#define SP_JITMAP_ENTRIES_MAX ((size_t)1 << 22)

/* What an address stands for; texts are the map's. */
struct sp_jit_symbol {
	const char *function;
	const char *file; /* NULL: not known */
	uint32_t line;    /* 0: not known */
	bool is_reused;   /* other code was there before */
};

/*
 * The contents of a file, untrusted.  What cannot be understood is left out:
 * lines of a map, records of a dump from the first bad one on.  0, -ENOMEM, or
 * -EBADMSG if a dump has no header of this byte order and version.
 */
int sp_jitmap_add_map(struct sp_jitmap *map, const char *text, size_t bytes);
int sp_jitmap_add_dump(struct sp_jitmap *map, const uint8_t *data,
		       size_t bytes);

/*
 * The files of the profile's process, if they are on this machine: the same
 * host, an owner who is the profile's or root, written while the process ran.
 * Then sealed.  A file that is there and is not used leaves a `problem`.  0 or
 * -ENOMEM.
 */
int sp_jitmap_open(struct sp_jitmap *map, const struct sp_profile *profile);

/* 0 or -ENOMEM. */
int sp_jitmap_seal(struct sp_jitmap *map);

/* In a sealed map; false: nothing is known of it. */
bool sp_jitmap_find(const struct sp_jitmap *map, uint64_t address,
		    struct sp_jit_symbol *ret);

void sp_jitmap_done(struct sp_jitmap *map);
