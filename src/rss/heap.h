/* SPDX-License-Identifier: MIT */
#pragma once

#include "rss/ledger.h"
#include "rss/objects.h"
#include "rss/parts.h"

/*
 * The rows of the heap and of other anonymous memory, from the allocator's
 * counts (none if memory->allocator is SP_ALLOCATOR_UNKNOWN) and from samples.
 * They add up to the resident bytes of their parts of memory.  If the profile
 * may lack live objects (objects->before), what the allocator counts as alive
 * beyond those of the profile, and beyond what the caches of `threads` threads
 * hold at most, is a row of its own.
 */
void sp_rss_heap_fill(const struct sp_rss_parts *parts,
		      const struct sp_control_memory *memory,
		      const struct sp_rss_objects *objects, uint64_t threads,
		      struct sp_rss_row *rows);
