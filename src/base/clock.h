/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <time.h>

/* In nanoseconds.  For the offline code; the agent has agent/sys/clock.h. */
static inline uint64_t sp_clock_read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For lengths of time. */
static inline uint64_t sp_clock_ns(void)
{
	return sp_clock_read_ns(CLOCK_MONOTONIC);
}

/* Since 1970. */
static inline uint64_t sp_clock_unix_ns(void)
{
	return sp_clock_read_ns(CLOCK_REALTIME);
}
