/* SPDX-License-Identifier: MIT */
/*
 * What the live set costs with 10 to 10 million live samples: time of an
 * insert, a take and a take of what is not there, the longest insert while the
 * set grows (in processor time, so what the kernel clears is in it) and how
 * many took more than 50 us, the same of the turns of a loop that does nothing
 * for as long but read the clock and touch as many fresh pages, memory, and how
 * many other addresses hit the filter.
 *
 *     bench_liveset [LIVE...]
 *
 * Instructions: valgrind --tool=callgrind --toggle-collect=sp_liveset_insert
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/file/filter.h"
#include "agent/file/liveset.h"
#include "agent/thread/thread.h"
#include "base/rng.h"

_Thread_local struct sp_thread sp_thread;

#define OPERATIONS 2000000u
#define SPREAD     16u /* addresses for each that is in the set */
#define LONG_NS    50e3
#define PAGE       4096u

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

/* Processor time: others may be busy. */
static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Memory of its own, as the page tables have it: statm is not exact. */
static double resident_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Anonymous: %ld kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return (double)kib * 1024;
}

/* Turns of a loop, in ns. */
struct turns {
	double before, longest;
	unsigned long n_long;
};

static void end_turn(struct turns *t)
{
	const double now = now_ns(), took = now - t->before;

	if (took > t->longest)
		t->longest = took;
	t->n_long += took > LONG_NS;
	t->before = now;
}

static struct turns fill(const struct family *f, uint64_t live)
{
	struct sp_live s = {1, 2, 3, 1}, old;
	struct turns t = {.before = now_ns()};

	for (uint64_t k = 0; k < live; k++) {
		sp_liveset_insert(address(f, SPREAD * k), &s, &old);
		end_turn(&t);
	}
	return t;
}

static size_t page_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (size_t)usage.ru_minflt;
}

/* What the machine alone makes of that time, and of so many page faults. */
static struct turns idle(double duration_ns, size_t pages)
{
	char *map = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const double begin = now_ns();
	struct turns t = {.before = begin};
	size_t touched = 0;

	if (map == MAP_FAILED ||
	    madvise(map, (pages + 1) * PAGE, MADV_NOHUGEPAGE))
		exit(1);
	while (t.before < begin + duration_ns) {
		const double part = (t.before - begin) / duration_ns;

		if (touched < (size_t)(part * (double)pages))
			map[touched++ * PAGE] = 1;
		end_turn(&t);
	}
	munmap(map, (pages + 1) * PAGE);
	return t;
}

static void drain(const struct family *f, uint64_t live)
{
	struct sp_live s;

	for (uint64_t k = 0; k < live; k++)
		sp_liveset_take(address(f, SPREAD * k), &s);
}

/* Take entries out, and insert them again, a sixteenth at a time. */
static void measure_time(const struct family *f, uint64_t live)
{
	struct sp_live s = {1, 2, 3, 1}, old;
	double t[4], took[3] = {0};
	uint64_t part = live < 16 ? 1 : live / 16, n = 0, found = 0;

	while (n < OPERATIONS) {
		const uint64_t from = n % (live / part * part);

		t[0] = now_ns();
		for (uint64_t k = from; k < from + part; k++)
			found += sp_liveset_take(address(f, SPREAD * k), &s);
		t[1] = now_ns();
		for (uint64_t k = from; k < from + part; k++)
			found += sp_liveset_may_have(address(f, SPREAD * k)) &&
				 sp_liveset_take(address(f, SPREAD * k), &s);
		t[2] = now_ns();
		for (uint64_t k = from; k < from + part; k++)
			sp_liveset_insert(address(f, SPREAD * k), &s, &old);
		t[3] = now_ns();
		for (int i = 0; i < 3; i++)
			took[i] += t[i + 1] - t[i];
		n += part;
	}
	if (found != n)
		exit(1);
	printf(" %7.0f %7.0f %7.0f", took[2] / (double)n, took[0] / (double)n,
	       took[1] / (double)n);
}

static double measure_hits(const struct family *f, uint64_t live)
{
	uint64_t n = 0, hits = 0;

	for (uint64_t k = 0; k < SPREAD * live && n < OPERATIONS; k++) {
		if (k % SPREAD == 0)
			continue;
		n++;
		hits += sp_filter_may_have(address(f, k));
	}
	return 100.0 * (double)hits / (double)n;
}

/* In a process of its own: the set does not become smaller. */
static void measure(uint64_t live)
{
	const double before = resident_bytes();
	const size_t faults = page_faults();
	struct turns filled, rest;
	double bytes, begin;

	if (!sp_liveset_init())
		exit(1);
	begin = now_ns();
	filled = fill(&families[0], live);
	bytes = (resident_bytes() - before) / (double)live;
	rest = idle(filled.before - begin, page_faults() - faults);
	printf("%9" PRIu64, live);
	measure_time(&families[0], live);
	printf(" %8.1f %5lu %8.1f %5lu %8.1f", filled.longest / 1e3,
	       filled.n_long, rest.longest / 1e3, rest.n_long, bytes);
	drain(&families[0], live);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		fill(&families[i], live);
		printf(" %6.2f", measure_hits(&families[i], live));
		drain(&families[i], live);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	uint64_t live = 10;

	printf("     live  insert    take  absent  longest  long  pages alone"
	       "    bytes  %% of others that hit\n"
	       "              ns      ns      ns       us              us   "
	       "     each  random  32 B  48 B  page  2 MiB\n");
	for (int i = 1; argc < 2 ? i <= 7 : i < argc; i++, live *= 10) {
		fflush(stdout);
		if (argc > 1)
			live = strtoull(argv[i], NULL, 10);
		if (fork() == 0) {
			measure(live);
			return 0;
		}
		wait(NULL);
	}
	return 0;
}
