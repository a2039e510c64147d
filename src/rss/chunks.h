/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The neighbours of an object of glibc's malloc, from the headers around it.  A
 * chunk has its length, and a bit that says whether the chunk before it is in
 * use.  A free chunk has its length at its end as well.  The program runs
 * meanwhile, so a length counts only if two headers agree.
 */

/* Copy `bytes` from address `at`; false if not all can be read. */
typedef bool sp_rss_read_fn(void *arg, uint64_t at, void *to, size_t bytes);

enum sp_rss_beside_state {
	SP_RSS_BESIDE_KNOWN,
	SP_RSS_BESIDE_LARGE, /* it has a mapping of its own: no neighbours */
	SP_RSS_BESIDE_GONE,  /* it was freed */
	SP_RSS_BESIDE_TORN,  /* headers do not agree */
};

/* Addresses and lengths of chunks; length 0: no free chunk. */
struct sp_rss_beside {
	enum sp_rss_beside_state state;
	uint64_t start, end;   /* of the object's own chunk */
	uint64_t before_bytes; /* free, and ends at `start` */
	uint64_t behind_bytes; /* free, and begins at `end` */
	bool is_last;          /* the chunk behind is the top of its arena */
	uint64_t last_bytes;   /* free bytes of the top, which is no hole */
};

/* For the object of `bytes` >= 1 at that address. */
struct sp_rss_beside sp_rss_chunks_look(sp_rss_read_fn *read, void *arg,
					uint64_t address, uint64_t bytes);

/* The pages of a free chunk that malloc_trim(0) returns to the kernel, if they
 * are resident: from *ret_start to *ret_end, which are equal if there are none.
 */
void sp_rss_chunks_trim(uint64_t start, uint64_t bytes, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end);
