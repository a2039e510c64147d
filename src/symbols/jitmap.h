/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/error.h"
#include "model/profile.h"

/*
 * Names of code that a runtime generated while the program ran. node, CPython,
 * the JVM and others write them for perf, in two kinds of files:
 *
 * perf-PID.map a line for each function: start and size in hex, name
 * jit-PID.dump records of code that was made, and that moved
 *
 * A runtime reuses addresses of old code.  The last entry of an address counts;
 * if an earlier one had another name, the address is marked as reused.
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

/* Limit of entries, more than any runtime writes; later ones are left out. */
#define SP_JITMAP_ENTRIES_MAX ((size_t)1 << 22)

/* The symbol of an address; texts are owned by the map. */
struct sp_jit_symbol {
	const char *function;
	const char *file; /* NULL: not known */
	uint32_t line;    /* 0: not known */
	bool is_reused;   /* other code was there before */
};

/*
 * Add the contents of a file, untrusted.  Bad lines of a map are skipped, and
 * records of a dump from the first bad one on. 0; -ENOMEM; or -EBADMSG if a
 * dump has no header of this byte order and version.
 */
int sp_jitmap_add_map(struct sp_jitmap *map, const char *text, size_t bytes);
int sp_jitmap_add_dump(struct sp_jitmap *map, const uint8_t *data,
		       size_t bytes);

/*
 * Add the files of the profile's process, if they are on this machine, and seal
 * the map.  A file is used if the host is the same, its owner is the profile's
 * or root, and it was written while the process ran.  If a file exists but is
 * not used, `problem` says why. 0 or -ENOMEM.
 */
int sp_jitmap_open(struct sp_jitmap *map, const struct sp_profile *profile);

/* 0 or -ENOMEM. */
int sp_jitmap_seal(struct sp_jitmap *map);

/* In a sealed map; false: nothing is known of it. */
bool sp_jitmap_find(const struct sp_jitmap *map, uint64_t address,
		    struct sp_jit_symbol *ret);

void sp_jitmap_done(struct sp_jitmap *map);
