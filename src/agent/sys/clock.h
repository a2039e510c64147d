/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/sys/arch.h"

/*
 * Read the clock by the function that the kernel maps into every process: no
 * system call, and not the clock_gettime of the program, which may be a
 * library's that allocates or locks.  Called once, before there are threads;
 * without it, or if there is none, a clock is read by system call.
 */
void sp_clock_find(void);

/* A counter of the processor that goes on about as fast as it runs: cheaper
 * than a clock, and fit only to tell that little time has passed. */
static inline uint64_t sp_clock_ticks(void)
{
	return sp_arch_ticks();
}

/* The monotonic clock, in nanoseconds. */
uint64_t sp_clock_now_ns(void);

/* That and the time of day since 1970 at one moment, as closely as they can be
 * read together. */
struct sp_clock_both {
	uint64_t now_ns, wall_ns;
};

struct sp_clock_both sp_clock_both(void);
