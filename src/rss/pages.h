/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rss/maps.h"

/*
 * The pages of a process and their content, read by another process.  If the
 * process changes them meanwhile, that is no error: each page is as it was at
 * some moment of the call.
 */
struct sp_rss_pages;

/* NULL without memory.  What may not be read is as if it were not resident.
 * Borrows nothing. */
struct sp_rss_pages *sp_rss_pages_new(const struct sp_rss_maps *maps);
void sp_rss_pages_free(struct sp_rss_pages *pages);

uint64_t sp_rss_pages_size(const struct sp_rss_pages *pages);

/* May the pages be asked for, and their content be read? */
bool sp_rss_pages_can_ask(const struct sp_rss_pages *pages);
bool sp_rss_pages_can_read(const struct sp_rss_pages *pages);

/* Bytes of [start, end) in pages that are resident. */
uint64_t sp_rss_pages_resident(struct sp_rss_pages *pages, uint64_t start,
			       uint64_t end);

/* The first resident page at or after `start`, before `end`, or `end`. */
uint64_t sp_rss_pages_next(struct sp_rss_pages *pages, uint64_t start,
			   uint64_t end);

/* Bytes at that address; false if not all can be read.  Who serves them is
 * waited for as base/patience.h says, and once. */
bool sp_rss_pages_read(struct sp_rss_pages *pages, uint64_t at, void *to,
		       size_t bytes);

/* The address that had no answer; 0: there is none. */
uint64_t sp_rss_pages_silent(const struct sp_rss_pages *pages);

/*
 * Look for pages that are zero all over in the huge pages of a mapping: the
 * kernel made them with the huge page, and nobody has written to them but
 * zeros.  From then on they count as not resident.  Nothing is found where the
 * kernel does not say which pages are huge.  0 or -ENOMEM.
 */
int sp_rss_pages_find_zero(struct sp_rss_pages *pages,
			   const struct sp_rss_map *map);

/* Bytes of [start, end) in the pages found by that. */
uint64_t sp_rss_pages_zero(const struct sp_rss_pages *pages, uint64_t start,
			   uint64_t end);
