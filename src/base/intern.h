/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/*
 * Numbers 0, 1, ... for distinct strings of bytes, in the order of their first
 * use: the tables to which exported files refer.  Zero-initialise.
 */
struct sp_intern {
	char *bytes; /* of all entries, each followed by a NUL, and aligned */
	size_t n_bytes, bytes_room;
	struct sp_intern_entry *entries;
	size_t n_entries, entries_room;
	struct sp_index index; /* of entries */
};

struct sp_intern_entry {
	uint64_t hash;
	size_t at;
	size_t length;
};

/* 0 and *ret_number, or -ENOMEM. If n_entries grew, the string was new. */
int sp_intern_add(struct sp_intern *intern, const void *bytes, size_t n,
		  uint32_t *ret_number);

/* Its number, or UINT32_MAX if it was never added. */
uint32_t sp_intern_find(const struct sp_intern *intern, const void *bytes,
			size_t n);

/* The bytes with that number, and a NUL, aligned for numbers; valid until the
 * next sp_intern_add(). */
const char *sp_intern_bytes(const struct sp_intern *intern, uint32_t number);
#define SP_INTERN_AT(intern, number, type)                                     \
	((const type *)(const void *)sp_intern_bytes(intern, number))

void sp_intern_done(struct sp_intern *intern);
