/* SPDX-License-Identifier: MIT */
/*
 * Built with frame pointers.
 *
 *   unwind stacks   allocate in stacks of many shapes, in two threads
 *   unwind callback allocate when called back by the C library
 *   unwind large    allocate below frames of 2 and of 24 MiB, on three stacks
 *   unwind paint    print how many bytes of stack allocating and freeing takes:
 *                   the first time, and once everything is known
 */
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

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

/* ---- large ---- */

#define LARGE_STACK_BYTES (32ul << 20)

static NOINLINE void large(size_t bytes)
{
	char *room = alloca(bytes);

	room[0] = 1;
	leaf(0);
	__asm__ volatile("" : : "r"(room) : "memory");
}

/* One whose size the compiler knows. */
static NOINLINE void large_array(void)
{
	char room[(2 << 20) + 8];

	__asm__ volatile("" : : "r"(room) : "memory");
	leaf(0);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static NOINLINE void large_frames(void)
{
	large(2ul << 20);
	large_array();
	large(24ul << 20);
	leaf(0);
}

static NOINLINE void in_main(void)
{
	large_frames();
	sink = NULL;
}

static void *in_thread(void *arg)
{
	large_frames();
	return arg;
}

static ucontext_t main_context, coroutine;

static void in_coroutine(void)
{
	large_frames();
	sink = NULL;
}

static int make_large_frames(void)
{
	struct rlimit limit;
	pthread_attr_t attributes;
	pthread_t thread;

	getrlimit(RLIMIT_STACK, &limit);
	if (limit.rlim_max < LARGE_STACK_BYTES)
		return 77;
	if (limit.rlim_cur < LARGE_STACK_BYTES)
		limit.rlim_cur = LARGE_STACK_BYTES;
	setrlimit(RLIMIT_STACK, &limit);
	in_main();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, LARGE_STACK_BYTES);
	if (pthread_create(&thread, &attributes, in_thread, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	if (getcontext(&coroutine) != 0)
		return 1;
	coroutine.uc_stack.ss_size = LARGE_STACK_BYTES;
	coroutine.uc_stack.ss_sp =
		mmap(NULL, LARGE_STACK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, in_coroutine, 0);
	return coroutine.uc_stack.ss_sp == MAP_FAILED ||
	       swapcontext(&main_context, &coroutine) != 0;
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
	if (argc == 2 && strcmp(argv[1], "large") == 0)
		return make_large_frames();
	if (argc == 2 && strcmp(argv[1], "paint") == 0) {
		paint(NULL);
		return 0;
	}
	fputs("usage: unwind stacks|callback|large|paint\n", stderr);
	return 2;
}
