/* SPDX-License-Identifier: MIT */
/*
 * What the live set costs with 200,000 live samples: time of an insert, a take
 * and a filter hit that is none, false hits, memory.
 *
 *     bench_liveset [LIVE]
 *
 * Instructions: valgrind --tool=callgrind --toggle-collect=sp_liveset_insert
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "agent/file/filter.h"
#include "agent/file/liveset.h"
#include "agent/thread/thread.h"
#include "base/rng.h"

_Thread_local struct sp_thread sp_thread;

#define LIVE_DEFAULT 200000u
#define SPREAD       16u /* addresses for each that is in the set */

struct family {
	const char *name;
	uint64_t start;
	uint64_t stride; /* 0: at random */
};

static const struct family families[] = {
	{"random", 0, 0},
	{"32-byte chunks", 0x555555559010, 32},
	{"48-byte chunks", 0x555555559010, 48},
	{"pages", 0x7f0000000000, 4096},
	{"2 MiB", 0x100000000000, 2 << 20},
};

static const void *address(const struct family *f, uint64_t k)
{
	struct sp_rng rng;

	if (f->stride)
		return (const void *)(uintptr_t)(f->start + k * f->stride);
	sp_rng_init(&rng, 61, k);
	return (const void *)(uintptr_t)(sp_rng_next(&rng) >> 17 & ~15ull);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long size, resident = 0;

	if (f && fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident;
}

static void fill(const struct family *f, uint64_t live)
{
	struct sp_live s = {1, 2, 3, 4}, old;

	for (uint64_t k = 0; k < live; k++)
		sp_liveset_insert(address(f, SPREAD * k), &s, &old);
}

static void drain(const struct family *f, uint64_t live)
{
	struct sp_live s;

	for (uint64_t k = 0; k < live; k++)
		sp_liveset_take(address(f, SPREAD * k), &s);
}

/* Replace all entries by others, a sixteenth at a time. */
static void measure_time(const struct family *f, uint64_t live)
{
	struct sp_live s = {1, 2, 3, 4}, old;
	double t[4], took[3] = {0};
	uint64_t part = live / 16, found = 0;

	for (uint64_t from = 0; from + part <= live; from += part) {
		t[0] = now_ns();
		for (uint64_t k = from; k < from + part; k++)
			found += sp_liveset_take(address(f, SPREAD * k), &s);
		t[1] = now_ns();
		for (uint64_t k = from; k < from + part; k++)
			found += sp_liveset_take(address(f, SPREAD * k), &s);
		t[2] = now_ns();
		for (uint64_t k = from; k < from + part; k++)
			sp_liveset_insert(address(f, SPREAD * k), &s, &old);
		t[3] = now_ns();
		for (int i = 0; i < 3; i++)
			took[i] += t[i + 1] - t[i];
	}
	if (found != live / 16 * 16)
		exit(1);
	printf("insert %.0f ns, take %.0f ns, take of what is not there "
	       "%.0f ns\n",
	       took[2] / (double)found, took[0] / (double)found,
	       took[1] / (double)found);
}

static void measure_hits(const struct family *f, uint64_t live)
{
	uint64_t n = 0, hits = 0;
	double t = now_ns();

	for (uint64_t k = 0; k < SPREAD * live; k++) {
		if (k % SPREAD == 0)
			continue;
		n++;
		hits += sp_filter_may_have(address(f, k));
	}
	printf("%-16s %.2f %% of the others hit, %.1f ns per look\n", f->name,
	       100.0 * (double)hits / (double)n, (now_ns() - t) / (double)n);
}

int main(int argc, char **argv)
{
	uint64_t live = argc > 1 ? strtoull(argv[1], NULL, 10) : LIVE_DEFAULT;
	long before;

	before = resident_pages();
	if (!sp_liveset_init())
		return 1;
	fill(&families[0], live);
	printf("%" PRIu64 " live samples: %.1f bytes each\n", live,
	       (double)(resident_pages() - before) *
		       (double)sysconf(_SC_PAGESIZE) / (double)live);
	measure_time(&families[0], live);
	drain(&families[0], live);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		fill(&families[i], live);
		measure_hits(&families[i], live);
		drain(&families[i], live);
	}
	return 0;
}
