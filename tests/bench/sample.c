/* SPDX-License-Identifier: MIT */
/*
 * What one sample is made of, in a loop at a known depth.
 *
 *   sample pairs DEPTH COUNT     malloc and free of 64 bytes
 *   sample paths DEPTH COUNT     the same 10 calls deeper, by one of 1,024
 *                                paths
 *   sample stacks DEPTH COUNT    the same 16 calls deeper, by one of 65,536
 *   sample unwind DEPTH COUNT    unw_backtrace of libunwind, nothing else
 *   sample frames DEPTH COUNT    following frame pointers, nothing else
 *   sample stalls DEPTH COUNT    the first malloc of main, and the first in an
 *                                object that was loaded just now
 *
 * Prints nanoseconds of processor time per round, or of each call.  DEPTH is
 * the number of functions from main to the loop.  Built with frame pointers.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAMES_MAX  1024
#define PATH_CALLS  10
#define STACK_CALLS 16
#define LOOP        __attribute__((noinline))

typedef int backtrace_fn(void **pcs, int max);
typedef void work_fn(long count);

struct frame {
	const struct frame *up;
	void *pc;
};

static void *volatile sink;
static void *pcs[FRAMES_MAX];
static backtrace_fn *unw_backtrace_fn;

static LOOP void make_pairs(long count)
{
	for (long i = 0; i < count; i++) {
		sink = malloc(64);
		free(sink);
	}
}

/* Two calls, to return to different places. */
static LOOP void follow_path(unsigned int path, int calls)
{
	if (calls == 0) {
		sink = malloc(64);
		free(sink);
	} else if (path & 1) {
		follow_path(path >> 1, calls - 1);
		sink = NULL;
	} else {
		follow_path(path >> 1, calls - 1);
		sink = pcs;
	}
}

static LOOP void follow_random(int calls, long count)
{
	unsigned int random = 1;

	for (long i = 0; i < count; i++) {
		random = random * 1103515245u + 12345u;
		follow_path(random >> 16, calls);
	}
	sink = NULL;
}

static LOOP void make_paths(long count)
{
	follow_random(PATH_CALLS, count);
	sink = NULL;
}

static LOOP void make_stacks(long count)
{
	follow_random(STACK_CALLS, count);
	sink = NULL;
}

static LOOP void unwind(long count)
{
	for (long i = 0; i < count; i++)
		unw_backtrace_fn(pcs, FRAMES_MAX);
}

static LOOP void follow_frames(long count)
{
	for (long i = 0; i < count; i++) {
		const struct frame *f = __builtin_frame_address(0);
		int n = 0;

		/* Up to main, whose own caller has no frame pointer. */
		for (; f->up > f && n < FRAMES_MAX; f = f->up)
			pcs[n++] = f->pc;
		sink = pcs[n - 1];
	}
}

static LOOP void at_depth(int depth, work_fn *work, long count)
{
	if (depth > 1)
		at_depth(depth - 1, work, count);
	else
		work(count);
	sink = NULL; /* not a tail call: every level keeps its frame */
}

/* ---- stalls ---- */

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* libstdc++ allocates for an exception: an object that nobody knew, and a
 * function of it that nobody has walked through. */
static void time_stalls(long count)
{
	double start = now_ns(CLOCK_THREAD_CPUTIME_ID), first;
	void *(*allocate)(size_t), *library, *address;

	sink = malloc((size_t)count);
	first = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	address = library ? dlsym(library, "__cxa_allocate_exception") : NULL;
	memcpy(&allocate, &address, sizeof(address));
	if (!address) {
		fputs("sample: libstdc++.so.6 cannot be loaded\n", stderr);
		exit(1);
	}
	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	sink = allocate(8);
	printf("%.0f %.0f\n", first, now_ns(CLOCK_THREAD_CPUTIME_ID) - start);
}

/* ---- which ---- */

static work_fn *find_work(const char *name)
{
	void *library, *address;

	if (strcmp(name, "pairs") == 0)
		return make_pairs;
	if (strcmp(name, "paths") == 0)
		return make_paths;
	if (strcmp(name, "stacks") == 0)
		return make_stacks;
	if (strcmp(name, "frames") == 0)
		return follow_frames;
	if (strcmp(name, "unwind") != 0)
		return NULL;
	library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	address = library ? dlsym(library, "unw_backtrace") : NULL;
	memcpy(&unw_backtrace_fn, &address, sizeof(address));
	return address ? unwind : NULL;
}

int main(int argc, char **argv)
{
	bool stalls = argc == 4 && strcmp(argv[1], "stalls") == 0;
	work_fn *work = argc != 4 ? NULL
			: stalls  ? time_stalls
				  : find_work(argv[1]);
	int depth = work ? atoi(argv[2]) : 0;
	long count = work ? strtol(argv[3], NULL, 10) : 0;
	double start;

	if (depth < 1 || count < 1) {
		fputs("usage: sample pairs|paths|stacks|unwind|frames|stalls "
		      "DEPTH "
		      "COUNT\n",
		      stderr);
		return 2;
	}
	at_depth(depth, work, stalls ? count : 100); /* caches fill */
	if (stalls)
		return 0;
	start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	at_depth(depth, work, count);
	printf("%.3f\n",
	       (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / (double)count);
	return 0;
}
