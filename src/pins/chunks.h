/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What lies beside an object of glibc's malloc, from the headers around it: a
 * chunk says how long it is and whether the one before it is in use, and a free
 * one has its length at its end as well.  The program goes on meanwhile, so a
 * length counts only if two headers agree on it.
 */

/* Bytes at that address; false if not all can be read. */
typedef bool sp_rss_read_fn(void *arg, uint64_t at, void *to, size_t bytes);

enum sp_rss_beside_state {
	SP_RSS_BESIDE_KNOWN,
	SP_RSS_BESIDE_LARGE, /* it has a mapping of its own: no neighbours */
	SP_RSS_BESIDE_GONE,  /* it is not there any more */
	SP_RSS_BESIDE_TORN,  /* headers do not agree */
};

/* Chunks by their addresses; a length of 0: there is no free one. */
struct sp_rss_beside {
	enum sp_rss_beside_state state;
	uint64_t start, end;   /* of the object's own */
	uint64_t before_bytes; /* free, and ends at `start` */
	uint64_t behind_bytes; /* free, and begins at `end` */
	bool is_last;          /* what is behind is the end of its arena */
	uint64_t last_bytes;   /* of that, which is in no hole */
};

/* Of the object of `bytes` >= 1 at that address. */
struct sp_rss_beside sp_rss_chunks_look(sp_rss_read_fn *read, void *arg,
					uint64_t address, uint64_t bytes);

/* Of a free chunk: the pages that malloc_trim(0) gives back, if they are
 * resident; *ret_end - *ret_start is 0 if there are none. */
void sp_rss_chunks_trim(uint64_t start, uint64_t bytes, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end);
