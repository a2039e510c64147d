/* SPDX-License-Identifier: MIT */
#pragma once

#include "rss/ledger.h"
#include "resident/objects.h"
#include "resident/parts.h"

/*
 * The rows of the heap and of other anonymous memory, of what the allocator
 * has counted (memory->allocator is SP_ALLOCATOR_UNKNOWN: nothing) and what was
 * sampled.  They add up to what is resident of the parts that they are of.
 */
void sp_rss_heap_fill(const struct sp_rss_parts *parts,
		      const struct sp_control_memory *memory,
		      const struct sp_rss_objects *objects,
		      struct sp_rss_row *rows);
