/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rss/pages.h"

/*
 * What an object takes of the allocator's memory beyond what the program asked
 * for.  glibc's header of an object is part of that, since it is per object.
 * Asked from outside for objects that are alive: no allocation pays for it.
 */
enum sp_rss_rule {
	SP_RSS_RULE_NONE, /* not known */
	SP_RSS_RULE_GLIBC,
	SP_RSS_RULE_DOUBLING, /* behind the classes: four each doubling */
	SP_RSS_RULE_PAGES,    /* behind them: as far apart as the last two */
};

struct sp_rss_rounding {
	enum sp_rss_rule rule;
	const uint32_t *classes; /* ascending, of the last two rules */
	size_t n;
	/* Of glibc: headers that were read, and of these such as glibc makes.
	 */
	uint64_t objects, headers;
};

/* Where an object is with all that it takes; `end` is 0 if that is not known.
 */
struct sp_rss_extent {
	uint64_t start, end;
};

/* The object of `bytes` >= 1 at that address. */
struct sp_rss_extent sp_rss_rounding_of(struct sp_rss_rounding *rounding,
					struct sp_rss_pages *pages,
					uint64_t address, uint64_t bytes);

/* After the last object: were these objects of that allocator?  glibc's may be
 * a guess, which the headers confirm. */
bool sp_rss_rounding_is_right(const struct sp_rss_rounding *rounding);
