/* SPDX-License-Identifier: MIT */
/*
 * tower: call paths of every kind of frame to one function that allocates, for
 * any compiler, level and debug information.  Each line it prints is a path:
 * how many allocations, then the functions from the innermost; those with "~"
 * are inlined.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define TIMES    40

/* Keeps a caller in the stack: a call in tail position would replace it. */
#define STAY() __asm__ volatile("" : : : "memory")

static void *volatile kept;

static NOINLINE void leaf(size_t n)
{
	kept = malloc(n);
	STAY();
}

static inline __attribute__((always_inline)) void inlined(size_t n)
{
	leaf(n + 1);
	STAY();
}

static NOINLINE void by_inlined(size_t n)
{
	inlined(n);
	STAY();
}

/* A frame that only a frame pointer finds. */
static NOINLINE void by_alloca(size_t n)
{
	char *room = alloca(n);

	room[0] = 1;
	kept = room;
	leaf(n);
	STAY();
}

static NOINLINE void by_aligned(size_t n)
{
	_Alignas(64) char room[128];

	room[n & 63] = 1;
	kept = room;
	leaf(n);
	STAY();
}

static NOINLINE void by_large(size_t n)
{
	char room[100000];

	room[n] = 1;
	kept = room;
	leaf(n);
	STAY();
}

/* More arguments than registers: some are pushed. */
static NOINLINE size_t by_many(size_t a, size_t b, size_t c, size_t d, size_t e,
			       size_t f, size_t g, size_t h)
{
	leaf(a + b + c + d);
	STAY();
	return e + f + g + h;
}

/* Registers that it has to save. */
static NOINLINE size_t by_saved(size_t n)
{
	size_t sum = n;

	for (size_t i = 0; i < 1; i++) {
		const size_t a = by_many(n, 1, 2, 3, i, sum, n + i, n ^ sum);

		sum += a * (n + i) + (a ^ sum);
	}
	STAY();
	return sum;
}

static NOINLINE void by_itself(size_t n, int depth)
{
	if (depth)
		by_itself(n + 1, depth - 1);
	else
		leaf(n);
	STAY();
}

static int by_pointer(const void *a, const void *b)
{
	leaf(70);
	STAY();
	return (a > b) - (a < b);
}

static void (*volatile chosen)(size_t) = by_inlined;

static NOINLINE void take(void)
{
	int pair[2] = {2, 1};

	by_alloca(50);
	by_aligned(51);
	by_large(52);
	kept = (void *)by_saved(53);
	by_itself(54, 3);
	qsort(pair, 2, sizeof(*pair), by_pointer);
	chosen(55);
	STAY();
}

static void *run_thread(void *arg)
{
	for (int i = 0; i < TIMES; i++)
		take();
	STAY();
	return arg;
}

int main(void)
{
	static const char *const paths[] = {
		"by_alloca",
		"by_aligned",
		"by_large",
		"by_many by_saved",
		"by_itself by_itself by_itself by_itself",
		"by_pointer",
		"~inlined by_inlined"};
	pthread_t thread;

	for (int i = 0; i < TIMES; i++)
		take();
	if (pthread_create(&thread, NULL, run_thread, NULL) ||
	    pthread_join(thread, NULL))
		return 71;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		printf("%d leaf %s take main\n", TIMES, paths[i]);
		printf("%d leaf %s take run_thread\n", TIMES, paths[i]);
	}
	return 0;
}
