/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * Times of allocations and frees in a file that has all of them.  What comes
 * later, as the allocator or any other synchronisation makes sure, has a
 * greater time: an object is freed after it was allocated, and its address
 * comes back after that.  The clock is read about once a microsecond; in
 * between allocations advance the time by 2 ns.
 *
 * Nanoseconds since the start, as sp_writer_time().  Context: any.
 */

/* An object was allocated.  No two have the same time. */
uint64_t sp_stamp_allocation(void);

/* An object is about to be freed. */
uint64_t sp_stamp_free(void);

/* Later than all that happened before, by the clock. */
uint64_t sp_stamp_now(void);
