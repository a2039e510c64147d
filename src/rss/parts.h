/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/layout.h"
#include "rss/maps.h"
#include "rss/pages.h"

/*
 * What the mappings of a process are for.  A mapping may be of several parts:
 * the kernel makes one of neighbours that are alike.
 */
enum sp_rss_kind {
	SP_RSS_HEAP,    /* where the C library's malloc makes its objects */
	SP_RSS_LARGE,   /* objects that it maps by themselves */
	SP_RSS_OTHER,   /* anonymous, and nothing else is known */
	SP_RSS_THREADS, /* stacks of threads */
	SP_RSS_STACK,   /* of the main thread */
	SP_RSS_CODE,    /* program and libraries as they are in their files */
	SP_RSS_DATA,    /* their variables */
	SP_RSS_FILES,   /* other files */
	SP_RSS_SHARED,  /* memory that processes share */
	SP_RSS_OURS,    /* the profile, the library and its memory */
	SP_RSS_KINDS
};

struct sp_rss_part {
	uint64_t start, end; /* addresses, of one mapping */
	enum sp_rss_kind kind;
	bool has_objects; /* of the profile: set by rss/objects.c */
};

struct sp_rss_parts {
	struct sp_rss_part *list; /* by ascending addresses */
	size_t n, room;
	/* Sums by kind, in bytes.  `rss` adds up to that of the mappings; pages
	 * of zeros in huge pages are in it. */
	uint64_t bytes[SP_RSS_KINDS], rss[SP_RSS_KINDS], swap[SP_RSS_KINDS];
	uint64_t zero[SP_RSS_KINDS];
	uint64_t stacks; /* of threads, found */
};

/* What is known beforehand. */
struct sp_rss_hints {
	uint64_t profile_inode; /* of the file that is being written; or 0 */
	const struct sp_control_range *ours; /* memory of the library */
	size_t n_ours;
	bool is_32_bit;
	/* Bytes of objects that glibc has mapped by themselves; SP_UNKNOWN. */
	uint64_t large_bytes;
	bool is_glibc; /* its malloc is used, as far as one can tell */
};

/* 0 and *ret, to be freed in any case; -ENOMEM. */
int sp_rss_parts_find(const struct sp_rss_maps *maps,
		      struct sp_rss_pages *pages,
		      const struct sp_rss_hints *hints,
		      struct sp_rss_parts *ret);
void sp_rss_parts_free(struct sp_rss_parts *parts);

/* The part that has the address; NULL: none. */
struct sp_rss_part *sp_rss_parts_at(const struct sp_rss_parts *parts,
				    uint64_t address);

/* ---- what finds parts of a mapping ---- */

/* A part is added; they may come in any order.  0 or -ENOMEM. */
int sp_rss_parts_add(struct sp_rss_parts *parts, uint64_t start, uint64_t end,
		     enum sp_rss_kind kind);

/* Stacks of threads in the anonymous mapping maps->list[i]. */
int sp_rss_stacks_find(const struct sp_rss_maps *maps, size_t i,
		       struct sp_rss_pages *pages, bool is_32_bit,
		       struct sp_rss_parts *parts);

/*
 * Objects that glibc has mapped by themselves, in [start, end) of an anonymous
 * mapping, by their headers.  `left_bytes` are those that are still to be found
 * and become less.
 */
int sp_rss_blocks_find(struct sp_rss_pages *pages, uint64_t start, uint64_t end,
		       uint64_t *left_bytes, struct sp_rss_parts *parts);

/* Is it a heap of one of glibc's arenas but the main one, by its header? */
bool sp_rss_blocks_is_arena(const struct sp_rss_map *map,
			    struct sp_rss_pages *pages);
