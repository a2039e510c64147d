/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * What a target holds, counted by itself, and notes of it at points of time
 * around which it does nothing for a while.  Nothing here allocates.
 */
#define NOINLINE __attribute__((noinline))

static uint64_t held_bytes, held_objects, most_bytes;

struct live_point {
	uint64_t unix_ns, bytes, objects;
};

static struct live_point points[64];
static unsigned int n_points;

static inline void held_more(size_t n)
{
	__atomic_fetch_add(&held_bytes, n ? n : 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&held_objects, 1, __ATOMIC_RELAXED);
	if (held_bytes > most_bytes)
		most_bytes = held_bytes;
}

static inline void held_less(size_t n)
{
	__atomic_fetch_sub(&held_bytes, n ? n : 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&held_objects, 1, __ATOMIC_RELAXED);
}

static inline void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

/* Note what is held now.  No other thread may be busy. */
static inline void note_point(void)
{
	struct live_point *point = &points[n_points++];
	struct timespec t;

	pause_ms(1);
	clock_gettime(CLOCK_REALTIME, &t);
	point->unix_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	point->bytes = held_bytes;
	point->objects = held_objects;
	pause_ms(1);
}

/* "point PID TIME BYTES OBJECTS" for each, "most PID BYTES". */
static inline void print_points(void)
{
	char line[160];
	int n;

	for (unsigned int i = 0; i <= n_points; i++) {
		if (i < n_points)
			n = snprintf(line, sizeof(line),
				     "point %d %llu %llu %llu\n", (int)getpid(),
				     (unsigned long long)points[i].unix_ns,
				     (unsigned long long)points[i].bytes,
				     (unsigned long long)points[i].objects);
		else
			n = snprintf(line, sizeof(line), "most %d %llu\n",
				     (int)getpid(),
				     (unsigned long long)most_bytes);
		if (write(STDOUT_FILENO, line, (size_t)n) != n)
			_exit(70);
	}
}

/* The same numbers in every run. */
static inline uint32_t next_random(void)
{
	static uint64_t state = 88172645463325252u;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}
