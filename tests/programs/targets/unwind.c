/* SPDX-License-Identifier: MIT */
/*
 * Built with frame pointers.
 *
 *   unwind stacks   allocate in stacks of many shapes, in two threads
 *   unwind callback allocate when called back by the C library
 *   unwind paint    print how many bytes of stack allocating and freeing takes:
 *                   the first time, and once everything is known
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static void *volatile sink;

/* ---- stacks ---- */

static NOINLINE int leaf(int kind)
{
	void *p = NULL;

	switch (kind % 6) {
	case 0:
		p = malloc(100);
		break;
	case 1:
		p = calloc(3, 50);
		break;
	case 2:
		p = realloc(malloc(20), 200);
		break;
	case 3:
		if (posix_memalign(&p, 64, 300) != 0)
			return -1;
		break;
	case 4:
		p = aligned_alloc(32, 320);
		break;
	case 5:
		p = reallocarray(NULL, 7, 40);
		break;
	}
	sink = p;
	free(p);
	return kind;
}

static NOINLINE int even(int depth, int kind);

static NOINLINE int odd(int depth, int kind)
{
	volatile char pad[200];

	pad[depth] = 1;
	return depth ? even(depth - 1, kind) + pad[depth] : leaf(kind);
}

static NOINLINE int even(int depth, int kind)
{
	return depth ? odd(depth - 1, kind) + 1 : leaf(kind);
}

static NOINLINE int by_pointer(int (*function)(int, int), int depth, int kind)
{
	return function(depth, kind) + 1;
}

static NOINLINE void allocate_in_many_ways(void)
{
	for (int kind = 0; kind < 6; kind++) {
		for (int depth = 0; depth < 60; depth++) {
			odd(depth, kind);
			by_pointer(even, depth, kind);
		}
	}
}

static void *run_thread(void *arg)
{
	allocate_in_many_ways();
	return arg;
}

static int make_stacks(void)
{
	pthread_t thread;

	allocate_in_many_ways();
	if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	return 0;
}

/* ---- callback ---- */

static int compare(const void *a, const void *b)
{
	sink = malloc(123);
	free(sink);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void sort(void)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof(numbers[0]), compare);
}

/* ---- paint ---- */

#define PAINT_BYTES (128 * 1024)
#define PAINT       0x5a

static void allocate(void)
{
	sink = malloc(1000);
}

static void release(void)
{
	free(sink);
}

/* Bytes that were written to below this frame's end, in the area that the
 * caller has painted below its own. */
static NOINLINE size_t measure(void (*work)(void))
{
	volatile unsigned char *here = __builtin_frame_address(0);
	volatile unsigned char *low = here - PAINT_BYTES;
	size_t unused = 0;

	/* Not by a function, which would need a frame in there. */
	for (volatile unsigned char *p = low; p < here - 256; p++)
		*p = PAINT;
	work();
	while (low[unused] == PAINT)
		unused++;
	return PAINT_BYTES - unused;
}

static void *paint(void *arg)
{
	size_t first, last = 0, last_free = 0;

	first = measure(allocate);
	measure(release);
	for (int i = 0; i < 10; i++) {
		last = measure(allocate);
		last_free = measure(release);
	}
	printf("first %zu\nlater %zu\nfree %zu\n", first, last, last_free);
	return arg;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "stacks") == 0)
		return make_stacks();
	if (argc == 2 && strcmp(argv[1], "callback") == 0) {
		sort();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "paint") == 0) {
		paint(NULL);
		return 0;
	}
	fputs("usage: unwind stacks|callback|paint\n", stderr);
	return 2;
}
